//! Observing a controller: its requests, its metrics and its HTTP pages.

use anyhow::{Context as _, Result};
use serde_json::Value;
use testbed::{AuditEvent, ControlPlane, Mark};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Scenario;

/// Sends a GET request, and returns the response: status line, headers, body.
pub(crate) async fn ask(listen: &str, path: &str) -> Result<String> {
    ask_as(listen, path, None).await
}

/// Does the same with a bearer token.
pub(crate) async fn ask_as(listen: &str, path: &str, token: Option<&str>) -> Result<String> {
    let mut stream = TcpStream::connect(listen).await?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {listen}\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

impl Scenario {
    /// Returns the present moment in the audit log.
    pub(crate) fn mark() -> Result<Mark> {
        ControlPlane::shared().mark()
    }

    /// Returns the requests of the scenario's controller since `mark`, except those for Events and heartbeats.
    pub(crate) fn requests_since(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        let mut events = self.cluster.audit_since(mark)?;
        // Every installation renews its heartbeat Lease every five minutes.
        let is_heartbeat = |event: &AuditEvent| {
            event.resource == "leases" && event.name.starts_with("installation-")
        };
        events.retain(|event| {
            event.user == self.identity.user() && event.resource != "events" && !is_heartbeat(event)
        });
        Ok(events)
    }

    /// Returns the writes of the controller since `mark`, except those of Events. Refused requests are included.
    pub(crate) fn writes_since(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        let mut events = self.requests_since(mark)?;
        events.retain(AuditEvent::is_write);
        Ok(events)
    }

    /// Sends a GET request to the controller's own HTTP server, and returns the response: status line, headers, body.
    pub(crate) async fn http(&self, path: &str) -> Result<String> {
        ask(&self.listen, path).await
    }

    /// Returns the JSON document that the controller serves at a path.
    pub(crate) async fn page(&self, path: &str) -> Result<Value> {
        let answer = self.http(path).await?;
        let (_, body) = answer
            .split_once("\r\n\r\n")
            .context("an answer without a body")?;
        Ok(serde_json::from_str(body)?)
    }

    /// Returns the controller's metrics.
    pub(crate) async fn metrics(&self) -> Result<Metrics> {
        self.http("/metrics").await.map(Metrics)
    }

    /// Returns the controller's metric series of that name with all these labels, as `name{labels} value`.
    pub(crate) async fn series(&self, name: &str, labels: &[(&str, &str)]) -> Result<Vec<String>> {
        Ok(self.metrics().await?.series(name, labels))
    }

    /// Returns the sum of those series; 0 if there is none.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        self.metrics().await?.sum(name, labels)
    }

    /// Returns the number of passes of an operator so far.
    pub(crate) async fn passes(&self, operator: &str) -> Result<f64> {
        self.metrics().await?.passes(operator)
    }
}

/// The metrics of a controller at one moment: values that belong together come from the same response.
pub(crate) struct Metrics(String);

impl Metrics {
    /// Returns the series of that name with all these labels, as `name{labels} value`.
    pub(crate) fn series(&self, name: &str, labels: &[(&str, &str)]) -> Vec<String> {
        let wanted: Vec<_> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let is_wanted = |line: &&str| {
            let series = line
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']));
            series && wanted.iter().all(|label| line.contains(label))
        };
        (self.0.lines().filter(is_wanted))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the sum of those series; 0 if there is none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let mut sum = 0.0;
        for line in self.series(name, labels) {
            let value = line.rsplit(' ').next();
            let value = value.context("a series without a value")?.parse::<f64>();
            sum += value.with_context(|| format!("no number in {line}"))?;
        }
        Ok(sum)
    }

    /// Returns the number of passes of an operator so far.
    pub(crate) fn passes(&self, operator: &str) -> Result<f64> {
        self.sum("orkestra_reconcile_total", &[("crd", operator)])
    }
}
