//! One request and its response on one connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, Version, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use orkestra_ground::tasks::{self, Task};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

use super::{
    super::{
        connections::{Id, Sender, Use},
        dial::DialError,
    },
    ATTEMPTS, Body, Pool,
};

/// The sending half of a connection.
#[derive(Clone)]
pub(crate) enum ConnectionSender {
    /// Takes concurrent requests.
    Two(http2::SendRequest<Body>),
    /// Takes one request at a time: `None` while a request is in flight.
    One(Arc<Mutex<Option<http1::SendRequest<Body>>>>),
}

impl ConnectionSender {
    pub(crate) fn one(sender: http1::SendRequest<Body>) -> Self {
        Self::One(Arc::new(Mutex::new(Some(sender))))
    }
}

impl Sender for ConnectionSender {
    fn is_closed(&self) -> bool {
        match self {
            Self::Two(sender) => sender.is_closed(),
            Self::One(sender) => {
                let sender = sender.lock();
                sender.as_ref().is_some_and(http1::SendRequest::is_closed)
            }
        }
    }
}

/// A place on a connection, released when it is dropped.
pub(crate) struct Slot {
    pool: Arc<Pool>,
    id: Id,
    /// Whether the connection takes another request after this one.
    reusable: bool,
}

impl Slot {
    pub(crate) fn new(pool: Arc<Pool>, id: Id) -> Self {
        Self {
            pool,
            id,
            reusable: true,
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.reusable {
            let mut book = self.pool.book.lock();
            book.connections.leave(self.id, Instant::now());
        } else {
            self.pool.forget(self.id);
        }
    }
}

/// The body of a response.
pub(crate) struct Answer {
    body: Incoming,
    /// Its place on an HTTP/2 connection, until the end of the body.
    slot: Option<Slot>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.slot = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Sends `request` on a connection that has room for it.
pub(crate) async fn exchange(
    pool: Arc<Pool>,
    mut request: Request<Body>,
) -> Result<Response<Answer>, BoxError> {
    let used_for = used_for(request.uri());
    for _ in 0..ATTEMPTS {
        let (slot, cluster) = pool.reserve(used_for).await?;
        let sent = match cluster {
            ConnectionSender::Two(sender) => multiplexed(sender, slot, request).await,
            ConnectionSender::One(sender) => alone(&sender, slot, request).await,
        };
        request = match sent {
            Ok(answer) => return Ok(answer),
            Err(Unanswered::Failed(error)) => return Err(error.into()),
            Err(Unanswered::Unsent(request)) => *request,
        };
    }
    Err(DialError::Closed.into())
}

/// Derives the use from the request's URI. Source: Kubernetes API concepts, "Efficient detection of changes".
fn used_for(uri: &Uri) -> Use {
    let mut words = uri.query().unwrap_or_default().split('&');
    if words.any(|word| matches!(word, "watch=true" | "watch=1" | "follow=true")) {
        Use::Watches
    } else {
        Use::Singles
    }
}

/// Why a request has no response.
enum Unanswered {
    /// It may have reached the server.
    Failed(hyper::Error),
    /// The connection ended before the request was sent; the request is returned.
    Unsent(Box<Request<Body>>),
}

impl From<hyper::client::conn::TrySendError<Request<Body>>> for Unanswered {
    fn from(mut error: hyper::client::conn::TrySendError<Request<Body>>) -> Self {
        match error.take_message() {
            Some(request) => Self::Unsent(Box::new(request)),
            None => Self::Failed(error.into_error()),
        }
    }
}

async fn multiplexed(
    mut sender: http2::SendRequest<Body>,
    slot: Slot,
    mut request: Request<Body>,
) -> Result<Response<Answer>, Unanswered> {
    *request.version_mut() = Version::HTTP_2;
    let answer = sender.try_send_request(request).await?;
    let slot = Some(slot);
    Ok(answer.map(|body| Answer { body, slot }))
}

async fn alone(
    place: &Arc<Mutex<Option<http1::SendRequest<Body>>>>,
    mut slot: Slot,
    request: Request<Body>,
) -> Result<Response<Answer>, Unanswered> {
    let taken = place.lock().take();
    let Some(mut sender) = taken else {
        return Err(Unanswered::Unsent(Box::new(request)));
    };
    // If the caller is cancelled before the response, the connection is still busy with it.
    slot.reusable = false;
    let (uri, request) = relative(request);
    let sent = sender.try_send_request(request).await;
    let answer = match sent.map_err(Unanswered::from) {
        Ok(answer) => answer,
        Err(Unanswered::Unsent(mut request)) => {
            *request.uri_mut() = uri;
            return Err(Unanswered::Unsent(request));
        }
        Err(failed) => return Err(failed),
    };
    let place = place.clone();
    // Ready when the response body has been read; an error means that the connection is closed.
    tasks::named(Task::ConnectionReturn, "").start(async move {
        // Moves the whole slot, not only the field that is used below.
        let mut slot = slot;
        if sender.ready().await.is_ok() {
            *place.lock() = Some(sender);
            slot.reusable = true;
        }
    });
    Ok(answer.map(|body| Answer { body, slot: None }))
}

/// Converts the request to HTTP/1.1 form: the server in a header, the path in the request line. Returns the original URI too.
fn relative(mut request: Request<Body>) -> (Uri, Request<Body>) {
    let uri = request.uri().clone();
    if let Some(host) = uri.authority()
        && let Ok(host) = HeaderValue::from_str(host.as_str())
    {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
    if let Some(path) = uri.path_and_query() {
        *request.uri_mut() = Uri::from(path.clone());
    }
    (uri, request)
}
