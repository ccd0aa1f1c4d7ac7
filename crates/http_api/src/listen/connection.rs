//! One connection: TLS if it is enabled, then HTTP/1.1, or HTTP/2 if the certificate's port offers it, with its progress reported to its [`ConnectionSlot`].

use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Extension, Router, body::Body};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use orkestra_ground::tasks::{self, Task};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{Limits, slots::ConnectionSlot};
use crate::tls::Tls;

/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// The most concurrent streams of an HTTP/2 connection: the API server itself permits that many.
const STREAMS: u32 = 100;
/// The interval of the pings of an HTTP/2 connection, which find a peer that is gone.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long the requests of an HTTP/2 connection that is closed may take.
const FAREWELL: Duration = Duration::from_secs(3);

/// The address of the client; an extension of each request that came over a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// An extension of each request of a client whose certificate the port has verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certified;

/// Serves a connection until it ends, a deadline passes, or another connection needs its place.
pub(crate) async fn run(
    stream: TcpStream,
    place: ConnectionSlot,
    (limits, tls): (Limits, Option<Tls>),
    router: Router,
    stop: CancellationToken,
) {
    let place = Arc::new(place);
    let io = Watched {
        stream,
        place: place.clone(),
    };
    let leave = stop.child_token();
    let work = async {
        let speech = (limits.keep_alive, leave.clone());
        let Some(tls) = tls else {
            return speak(io, &place, router, speech).await;
        };
        match tls.accept(io).await {
            Ok(io) => {
                let session = io.get_ref().1;
                let is_certified = session.peer_certificates().is_some();
                let router = if is_certified {
                    router.layer(Extension(Certified))
                } else {
                    router
                };
                if session.alpn_protocol() == Some(Tls::HTTP2) {
                    speak_in_streams(io, &place, router, leave.clone()).await;
                } else {
                    speak(io, &place, router, speech).await;
                }
            }
            Err(error) => tracing::debug!(%error, "TLS handshake failed"),
        }
    };
    tokio::pin!(work);
    tokio::select! {
        () = work.as_mut() => {}
        why = place.until_closed(&limits) => {
            tracing::debug!(peer = %place.peer, why, "connection closed");
            if place.is_closed_gently() {
                leave.cancel();
                let _ = tokio::time::timeout(FAREWELL, work).await;
            }
        }
    }
}

/// HTTP/1.1.
async fn speak(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    place: &Arc<ConnectionSlot>,
    router: Router,
    (keep_alive, leave): (bool, CancellationToken),
) {
    let connection = http1::Builder::new()
        .keep_alive(keep_alive)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(io), service(place, router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = leave.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    note(ended);
}

/// HTTP/2.
async fn speak_in_streams(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    place: &Arc<ConnectionSlot>,
    router: Router,
    leave: CancellationToken,
) {
    place.has_streams();
    let head_bytes = u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(Streams)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(head_bytes)
        .keep_alive_interval(PING_EVERY)
        .serve_connection(TokioIo::new(io), service(place, router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = leave.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    note(ended);
}

/// Starts the streams of an HTTP/2 connection.
#[derive(Clone)]
struct Streams;

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let stream = async {
            stream.await;
        };
        drop(tasks::named(Task::HttpConnection, "").start(stream));
    }
}

fn note(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

/// Returns the service of a connection: the router, with the requests reported to the connection's place.
fn service(
    place: &Arc<ConnectionSlot>,
    router: Router,
) -> impl Service<
    Request<Incoming>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Send + 'static,
> + Send
+ 'static {
    let (peer, place) = (Peer(place.peer), place.clone());
    service_fn(move |request: Request<Incoming>| {
        let (router, working) = (router.clone(), RequestInProgress::begin(place.clone()));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let Ok(answer) = router.oneshot(request).await;
            let answer = answer.map(|body| {
                Body::new(ResponseBody {
                    body,
                    _working: working,
                })
            });
            Ok::<_, Infallible>(answer)
        }
    })
}

/// Marks a request as in progress until it is dropped.
struct RequestInProgress(Arc<ConnectionSlot>);

impl RequestInProgress {
    fn begin(place: Arc<ConnectionSlot>) -> Self {
        place.begin();
        Self(place)
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The body of a response; dropped once it was passed on completely.
struct ResponseBody {
    body: Body,
    _working: RequestInProgress,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that reports its traffic to its place.
struct Watched {
    stream: TcpStream,
    place: Arc<ConnectionSlot>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.place.received();
        }
        read
    }
}

impl Watched {
    fn noted<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.place.wrote(written.is_pending());
        written
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
