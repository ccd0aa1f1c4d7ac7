//! The harness' own requests. They use plain paths and bodies, so that client code adds nothing to the measured times.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use kube::Client;
use serde_json::Value;

/// The number of concurrent requests of the harness.
pub(crate) const WORKERS: usize = 32;
/// The longest time that one request may take.
const LIMIT: Duration = Duration::from_mins(1);

/// A write request.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    verb: Verb,
    path: String,
    body: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Apply,
    Create,
    Merge,
    Delete,
}

impl Write {
    /// Returns a server-side apply of `object` at `path`. It is forced: it takes over fields of other field managers.
    pub(crate) fn apply(path: &str, object: &Value) -> Self {
        let path = format!("{path}?fieldManager=bench&force=true");
        Self::with(Verb::Apply, path, object)
    }

    /// Returns a POST of `object` to the collection at `path`.
    pub(crate) fn create(path: &str, object: &Value) -> Self {
        Self::with(Verb::Create, format!("{path}?fieldManager=bench"), object)
    }

    /// Returns a merge patch of the object at `path`.
    pub(crate) fn merge(path: &str, changes: &Value) -> Self {
        Self::with(Verb::Merge, format!("{path}?fieldManager=bench"), changes)
    }

    /// Returns a deletion of the object at `path`.
    pub(crate) fn delete(path: &str) -> Self {
        Self {
            verb: Verb::Delete,
            path: path.to_owned(),
            body: Vec::new(),
        }
    }

    fn with(verb: Verb, path: String, body: &Value) -> Self {
        Self {
            verb,
            path,
            body: body.to_string().into_bytes(),
        }
    }

    /// Sends the request and waits for the complete answer.
    pub(crate) async fn send(&self, client: &Client) -> Result<()> {
        let (method, kind) = match self.verb {
            Verb::Apply => (Method::PATCH, "application/apply-patch+yaml"),
            Verb::Create => (Method::POST, "application/json"),
            Verb::Merge => (Method::PATCH, "application/merge-patch+json"),
            Verb::Delete => (Method::DELETE, "application/json"),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(&self.path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(self.body.clone())?;
        tokio::time::timeout(LIMIT, client.request_text(request))
            .await
            .with_context(|| format!("no answer within {LIMIT:?}"))
            .and_then(|answer| Ok(answer?))
            .with_context(|| format!("{:?} {}", self.verb, self.path))?;
        Ok(())
    }
}

/// Sends all writes, [`WORKERS`] at a time, and returns the time that it took.
pub(crate) async fn send_all(client: &Client, writes: &[Write]) -> Result<Duration> {
    let started = Instant::now();
    futures::stream::iter(writes)
        .map(|write| write.send(client))
        .buffer_unordered(WORKERS)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    Ok(started.elapsed())
}

/// Returns the JSON at `path`.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value> {
    let request = http::Request::get(path).body(Vec::new())?;
    let answer = tokio::time::timeout(LIMIT, client.request(request))
        .await
        .with_context(|| format!("GET {path}: no answer within {LIMIT:?}"))?;
    answer.with_context(|| format!("GET {path}"))
}

/// Returns the number of objects in the collection at `path`, counted page by page.
pub(crate) async fn count(client: &Client, path: &str) -> Result<usize> {
    let (mut seen, mut token) = (0, String::new());
    loop {
        let page = get(client, &format!("{path}?limit=500&continue={token}")).await?;
        seen += page["items"].as_array().map_or(0, Vec::len);
        match page["metadata"]["continue"].as_str() {
            None | Some("") => return Ok(seen),
            Some(next) => next.clone_into(&mut token),
        }
    }
}

/// Returns the text at a JSON pointer, or an empty text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the object's name.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}
