//! The requests to the API server and their users, read from its audit log.

use std::collections::HashSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// Logs every request, without bodies. A request is logged when it is answered; a watch when it starts. The log line for the end
/// of a watch is skipped by the reader.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

/// One request that the API server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// `ResponseComplete`, `ResponseStarted` for a watch, `Panic`.
    pub stage: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for other paths the HTTP method in small letters.
    pub verb: String,
    /// The user that sent the request.
    pub user: String,
    /// The client's `User-Agent`; empty if it sent none.
    pub user_agent: String,
    /// The resource's API group, empty for core.
    pub group: String,
    /// The resource's plural name; empty for a path such as `/version`.
    pub resource: String,
    /// `status`, `scale` or another subresource; empty if the request was for the object itself.
    pub subresource: String,
    /// The object's namespace; empty if it has none.
    pub namespace: String,
    /// The object's name; empty if the request named none.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The reason of a refusal; empty if the request was not refused.
    pub message: String,
    /// The path and query as the client sent them.
    pub uri: String,
    /// The time at which the API server received the request.
    pub timestamp: jiff::Timestamp,
}

impl AuditEvent {
    /// Returns true if the request is a write.
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }
}

/// A moment in the audit log. A reader that starts at it skips all requests that were received before.
///
/// A request may be logged after the moment although it was received before: the client of the log has seen its effect, but not
/// its end. So the time at which a request was received decides, by the clock of the machine on which both processes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The number of events that were read before.
    events: usize,
    /// In microseconds, as in the log.
    at: jiff::Timestamp,
}

/// The part of the log that was read so far.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    /// The number of bytes read so far; always the end of a line.
    offset: u64,
    events: Vec<AuditEvent>,
    /// Audit ids of long-running requests whose start is among `events`.
    started: HashSet<String>,
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            offset: 0,
            events: Vec::new(),
            started: HashSet::new(),
        }
    }

    /// Reads new lines and returns the moment.
    pub(crate) fn mark(&mut self) -> Result<Mark> {
        let at = jiff::Timestamp::from_microsecond(jiff::Timestamp::now().as_microsecond())?;
        self.read()?;
        Ok(Mark {
            events: self.events.len(),
            at,
        })
    }

    /// Reads new lines and returns the requests that were received after `mark`.
    pub(crate) fn since(&mut self, mark: Mark) -> Result<Vec<AuditEvent>> {
        self.read()?;
        let mut events = self.events.get(mark.events..).unwrap_or_default().to_vec();
        events.retain(|event| event.timestamp >= mark.at);
        Ok(events)
    }

    /// Reads new lines and returns all requests.
    pub(crate) fn all(&mut self) -> Result<Vec<AuditEvent>> {
        self.read()?;
        Ok(self.events.clone())
    }

    fn read(&mut self) -> Result<()> {
        let mut file = std::fs::File::open(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut added = Vec::new();
        file.read_to_end(&mut added)?;
        // The last line may be incomplete: the API server may still be writing it.
        let end = added
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        for line in added[..end]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let line: Line =
                serde_json::from_slice(line).context("an unexpected line of the audit log")?;
            if line.stage == "ResponseStarted" {
                self.started.insert(line.audit_id.clone());
            } else if self.started.remove(&line.audit_id) {
                continue;
            }
            self.events.push(line.into());
        }
        self.offset += u64::try_from(end)?;
        Ok(())
    }
}

/// A line of the audit log.
///
/// Source: `audit.k8s.io/v1`, Event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: jiff::Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
    message: String,
}

impl From<Line> for AuditEvent {
    fn from(line: Line) -> Self {
        Self {
            stage: line.stage,
            verb: line.verb,
            user: line.user.username,
            user_agent: line.user_agent,
            group: line.object_ref.api_group,
            resource: line.object_ref.resource,
            subresource: line.object_ref.subresource,
            namespace: line.object_ref.namespace,
            name: line.object_ref.name,
            code: line.response_status.code,
            message: line.response_status.message,
            uri: line.request_uri,
            timestamp: line.request_received_timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, stage: &str, verb: &str, time: &str) -> String {
        format!(
            r#"{{"kind":"Event","auditID":"{id}","stage":"{stage}","requestURI":"/api/v1/pods?watch=true","verb":"{verb}","user":{{"username":"clerk"}},"objectRef":{{"resource":"pods","apiVersion":"v1"}},"responseStatus":{{"metadata":{{}},"code":200}},"requestReceivedTimestamp":"{time}"}}"#
        )
    }

    fn verbs(events: Vec<AuditEvent>) -> Vec<String> {
        events.into_iter().map(|event| event.verb).collect()
    }

    const BEFORE: &str = "2026-01-02T03:04:05.000006Z";
    const AFTER: &str = "2126-01-02T03:04:05.000006Z";

    #[test]
    fn a_watch_counts_once_and_a_half_line_waits_for_its_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("audit.log");
        let second = line("b", "ResponseComplete", "list", AFTER);
        let (head, tail) = second.split_at(40);
        let first = line("a", "ResponseStarted", "watch", BEFORE);
        std::fs::write(&path, format!("{first}\n{head}")).expect("the log");
        let mut log = AuditLog::new(path.clone());
        let mark = log.mark().expect("the log");
        assert_eq!(mark.events, 1);
        let end = line("a", "ResponseComplete", "watch", BEFORE);
        std::fs::write(&path, format!("{first}\n{head}{tail}\n{end}\n")).expect("the log");
        assert_eq!(verbs(log.since(mark).expect("the log")), ["list"]);
        assert_eq!(verbs(log.all().expect("the log")), ["watch", "list"]);
    }

    #[test]
    fn a_request_that_was_received_before_the_mark_and_logged_after_it_is_not_since() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "").expect("the log");
        let mut log = AuditLog::new(path.clone());
        let mark = log.mark().expect("the log");
        let late = line("a", "ResponseComplete", "patch", BEFORE);
        let new = line("b", "ResponseComplete", "list", AFTER);
        std::fs::write(&path, format!("{late}\n{new}\n")).expect("the log");
        assert_eq!(verbs(log.since(mark).expect("the log")), ["list"]);
    }
}
