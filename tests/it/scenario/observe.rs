//! What a controller does and says: its requests, its metrics, its pages.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{AuditEvent, ControlPlane, Mark, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Scenario;
use crate::waters;

/// The answer to a GET at an address: status line, headers, body.
pub(crate) async fn ask(listen: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(listen).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

impl Scenario {
    /// The present end of the audit log.
    pub(crate) fn mark() -> Result<Mark> {
        ControlPlane::shared().mark()
    }

    /// What the scenario's controller has asked for since `mark`, Events apart.
    pub(crate) fn requests_since(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        let mut events = self.cluster.audit_since(mark)?;
        events.retain(|event| event.user == self.identity.user() && event.resource != "events");
        Ok(events)
    }

    /// What it has written since `mark`, Events apart: refused requests count too.
    pub(crate) fn writes_since(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        let mut events = self.requests_since(mark)?;
        events.retain(AuditEvent::is_write);
        Ok(events)
    }

    /// Waits until it has written nothing for `window`, Events apart: pods have come up, the last counts are told, and what was seen
    /// written is in the audit log too.
    pub(crate) async fn until_settled(&self, window: Duration, limit: Duration) -> Result<()> {
        eventually("the writes end", limit, async || {
            let mark = Self::mark()?;
            tokio::time::sleep(window).await;
            let writes = self.writes_since(mark)?;
            let lines = waters::lines(&writes);
            ensure!(writes.is_empty(), "still written:\n{lines}");
            Ok(Some(()))
        })
        .await
    }

    /// The answer to a GET of the controller's own pages: status line, headers, body.
    pub(crate) async fn http(&self, path: &str) -> Result<String> {
        ask(&self.listen, path).await
    }

    /// The JSON that the controller answers at a path.
    pub(crate) async fn page(&self, path: &str) -> Result<Value> {
        let answer = self.http(path).await?;
        let (_, body) = answer
            .split_once("\r\n\r\n")
            .context("an answer without a body")?;
        Ok(serde_json::from_str(body)?)
    }

    /// The controller's metric series of that name that have all the labels, as `name{labels} value`.
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

    /// The sum of those series; 0 if there is none.
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

    /// Passes of the operator of that name so far.
    pub(crate) async fn passes(&self, operator: &str) -> Result<f64> {
        self.metric("orkestra_reconcile_total", &[("crd", operator)])
            .await
    }
}
