//! Observing a controller: its requests, its metrics and its HTTP pages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{AuditEvent, ControlPlane, Mark, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{LIMIT, Scenario};
use crate::waters;

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
    /// Returns the current end of the audit log.
    pub(crate) fn mark() -> Result<Mark> {
        ControlPlane::shared().mark()
    }

    /// Waits until the audit log contains all requests that were answered before. The log is written in order, so the test sends
    /// a request of its own and waits until the log contains it.
    pub(crate) async fn until_logged(&self) -> Result<()> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let uri = format!("/version?sentinel={number}-{}", self.namespace);
        let mark = self.cluster.mark()?;
        let request = http::Request::get(&uri).body(Vec::new())?;
        self.client.request_text(request).await?;
        eventually("the audit log is written", LIMIT, async || {
            let events = self.cluster.audit_since(mark)?;
            Ok(events.iter().any(|event| event.uri == uri).then_some(()))
        })
        .await
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

    /// Waits until the controller has written nothing but Events for `window`: pods run, the last counts are reported, and all
    /// writes are in the audit log.
    pub(crate) async fn until_settled(&self, window: Duration, limit: Duration) -> Result<()> {
        eventually("the writes end", limit, async || {
            let mark = self.cluster.mark()?;
            tokio::time::sleep(window).await;
            self.until_logged().await?;
            let writes = self.writes_since(mark)?;
            let lines = waters::lines(&writes);
            ensure!(writes.is_empty(), "still written:\n{lines}");
            Ok(Some(()))
        })
        .await
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

    /// Returns the controller's metric series of that name with all these labels, as `name{labels} value`.
    pub(crate) async fn series(&self, name: &str, labels: &[(&str, &str)]) -> Result<Vec<String>> {
        let answer = self.http("/metrics").await?;
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
        Ok(answer
            .lines()
            .filter(is_wanted)
            .map(str::to_owned)
            .collect())
    }

    /// Returns the sum of those series; 0 if there is none.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let mut sum = 0.0;
        for line in self.series(name, labels).await? {
            let value = line
                .rsplit(' ')
                .next()
                .context("a series without a value")?;
            sum += value
                .parse::<f64>()
                .with_context(|| format!("no number in {line}"))?;
        }
        Ok(sum)
    }

    /// Returns the number of passes of an operator so far.
    pub(crate) async fn passes(&self, operator: &str) -> Result<f64> {
        self.metric("orkestra_reconcile_total", &[("crd", operator)])
            .await
    }
}
