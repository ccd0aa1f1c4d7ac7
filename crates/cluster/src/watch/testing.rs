//! A scripted API server behind the real client, for unit tests. It panics where a test makes a mistake.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "support for tests: a panic fails the test"
)]

use std::{collections::VecDeque, convert::Infallible, io, sync::Arc, time::Duration};

use axum::body::Body;
use futures::{StreamExt, channel::mpsc};
use http::{Request, Response};
use orkestra_object::value::Node;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::requests::Cluster;

type Chunk = Result<String, io::Error>;

/// The server; clones share it.
#[derive(Clone)]
pub struct Server(Arc<Mutex<Inner>>);

struct Inner {
    /// Responses to requests that are not watches.
    answers: VecDeque<(u16, String)>,
    /// The response if there are no more.
    last: Option<(u16, String)>,
    /// The response to requests that are not watches and whose URI contains that text.
    at: Option<(&'static str, u16, String)>,
    /// The resourceVersion that comparisons of states receive.
    state: u64,
    comparisons: usize,
    /// Responses to watches; if there are none, silence.
    watches: VecDeque<Watch>,
    requests: Vec<SeenRequest>,
    /// Keeps silent watches open.
    silent: Vec<mpsc::UnboundedSender<Chunk>>,
}

enum Watch {
    Refused(u16, String),
    Open(mpsc::UnboundedReceiver<Chunk>),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// When it arrived, on tokio's clock.
    pub at: Instant,
    /// The HTTP method, in capitals.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The content type of the body; empty without one.
    pub content_type: String,
    /// The body.
    pub body: String,
}

/// Writes events into a watch; dropping it ends the watch.
pub struct Feed(mpsc::UnboundedSender<Chunk>);

impl Feed {
    /// Sends an event of type `event` about `object`, which is JSON.
    pub fn send(&self, event: &str, object: &str) {
        let _ = self.0.unbounded_send(Ok(format!(
            "{{\"type\":\"{event}\",\"object\":{object}}}\n"
        )));
    }

    /// Sends raw bytes, which need not end a line.
    pub fn send_raw(&self, text: &str) {
        let _ = self.0.unbounded_send(Ok(text.to_owned()));
    }

    /// Breaks the connection.
    pub fn break_off(self) {
        let _ = self
            .0
            .unbounded_send(Err(io::Error::other("connection reset")));
    }

    /// True if the client has closed the watch.
    pub fn is_deserted(&self) -> bool {
        self.0.is_closed()
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server without answers.
    pub fn new() -> Self {
        let inner = Inner {
            answers: VecDeque::new(),
            last: None,
            at: None,
            state: u64::MAX,
            comparisons: 0,
            watches: VecDeque::new(),
            requests: Vec::new(),
            silent: Vec::new(),
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Requests to it.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(self.client())
    }

    /// A client of it.
    pub fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Queues a response to a request that is not a watch; the last one is repeated.
    pub fn answer(&self, code: u16, body: impl Into<String>) {
        self.0.lock().answers.push_back((code, body.into()));
    }

    /// Sets the response to all requests that are not watches and whose URI contains `part`.
    pub fn answer_at(&self, part: &'static str, code: u16, body: impl Into<String>) {
        self.0.lock().at = Some((part, code, body.into()));
    }

    /// Queues a watch that is accepted.
    pub fn watch(&self) -> Feed {
        let (sender, receiver) = mpsc::unbounded();
        self.0.lock().watches.push_back(Watch::Open(receiver));
        Feed(sender)
    }

    /// Queues a watch that is refused.
    pub fn refuse_watch(&self, code: u16, body: impl Into<String>) {
        self.0
            .lock()
            .watches
            .push_back(Watch::Refused(code, body.into()));
    }

    /// Forgets the queued watches: the next one is accepted and sends nothing.
    pub fn forget_watches(&self) {
        self.0.lock().watches.clear();
    }

    /// Sets the resourceVersion that comparisons of states receive: by default the newest possible.
    pub fn state(&self, version: u64) {
        self.0.lock().state = version;
    }

    /// The number of comparisons of states; these are not among the requests.
    pub fn comparisons(&self) -> usize {
        self.0.lock().comparisons
    }

    /// The requests so far, without comparisons of states.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.0.lock().requests.clone()
    }

    /// The times, relative to the first request, of the requests that are watches, or are not.
    pub fn times(&self, watches: bool) -> Vec<Duration> {
        let requests = self.requests();
        let wanted = requests
            .iter()
            .filter(|seen| seen.uri.contains("watch=true") == watches);
        wanted.map(|seen| seen.at - requests[0].at).collect()
    }

    async fn respond(&self, request: Request<kube::client::Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(Body::new(body), usize::MAX)
            .await
            .unwrap();
        let content_type = parts
            .headers
            .get("content-type")
            .map(|value| value.to_str().unwrap().to_owned());
        let seen = SeenRequest {
            at: Instant::now(),
            method: parts.method.to_string(),
            uri: parts.uri.to_string(),
            content_type: content_type.unwrap_or_default(),
            body: String::from_utf8(body.to_vec()).unwrap(),
        };
        let mut inner = self.0.lock();
        let is_watch = seen.uri.contains("watch=true");
        let is_comparison = seen.uri.ends_with("?limit=1");
        let fixed = inner.at.clone();
        let fixed = fixed.filter(|(part, ..)| seen.uri.contains(part));
        if is_comparison {
            inner.comparisons += 1;
        } else {
            inner.requests.push(seen);
        }
        let (code, body) = if is_watch {
            match inner.watches.pop_front() {
                Some(Watch::Open(receiver)) => (200, Body::from_stream(receiver)),
                Some(Watch::Refused(code, body)) => (code, Body::from(body)),
                None => {
                    let (sender, receiver) = mpsc::unbounded::<Chunk>();
                    inner.silent.push(sender);
                    (200, Body::from_stream(receiver.boxed()))
                }
            }
        } else if let Some((_, code, body)) = fixed {
            (code, Body::from(body))
        } else if is_comparison {
            // An unreachable server does not answer comparisons either.
            let next = inner.answers.front().or(inner.last.as_ref());
            match next.filter(|(code, _)| *code >= 500) {
                Some((code, body)) => (*code, Body::from(body.clone())),
                None => (200, Body::from(list(inner.state, "", &[]))),
            }
        } else {
            if let Some(answer) = inner.answers.pop_front() {
                inner.last = Some(answer);
            }
            let (code, body) = inner
                .last
                .clone()
                .expect("the test said nothing of this request");
            (code, Body::from(body))
        };
        Response::builder().status(code).body(body).unwrap()
    }
}

/// Lets pending tasks run.
pub async fn settle() {
    for _ in 0..3 {
        sleep(Duration::from_millis(1)).await;
    }
}

/// An object from JSON.
pub fn node(json: &str) -> Node {
    serde_json::from_str(json).unwrap()
}

/// An object in namespace `shop`, with a uid derived from its name.
pub fn object(name: &str, version: u64, more: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"shop","name":"{name}","uid":"uid-{name}","resourceVersion":"{version}"}}{more}}}"#
    )
}

/// An object that belongs to the custom resource with uid `owner`.
pub fn child(name: &str, version: u64, owner: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"shop","name":"{name}","uid":"uid-{name}","resourceVersion":"{version}","ownerReferences":[{{"controller":true,"uid":"{owner}"}}]}}}}"#
    )
}

/// A list of objects, each of them JSON; `next` is the continue token, empty on the last page.
pub fn list(version: u64, next: &str, items: &[String]) -> String {
    format!(
        r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

/// A `Status` of a failure.
pub fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","status":"Failure","code":{code},"reason":"{reason}","message":"{message}"}}"#
    )
}

/// The object of a bookmark.
pub fn bookmark(version: u64) -> String {
    format!(r#"{{"kind":"Thing","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}"#)
}
