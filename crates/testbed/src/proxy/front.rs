//! The proxy's server side: connections and requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::body::{Body, Course, relay, whole};
use super::faults::Fate;
use super::{Broken, State};

/// ALPN names. Source: RFC 7301, section 6; RFC 9113, section 3.2.
pub(crate) const H1: &[u8] = b"http/1.1";
pub(crate) const H2: &[u8] = b"h2";
/// The same number of streams on one connection as a genuine API server accepts.
const STREAMS: u32 = 100;

/// Accepts connections until the task ends.
pub(crate) async fn accept(listener: TcpListener, tls: TlsAcceptor, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, tls.clone(), state.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves a connection until it breaks. An error of the connection is not reported.
async fn serve(stream: TcpStream, tls: TlsAcceptor, state: Arc<State>) {
    // Otherwise each small answer would wait for the client's acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(H2);
    let service = service_fn(move |request| answer(request, state.clone()));
    let io = TokioIo::new(stream);
    let _ = if is_h2 {
        http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(STREAMS)
            .serve_connection(io, service)
            .await
    } else {
        http1::Builder::new().serve_connection(io, service).await
    };
}

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, Broken> {
    let number = state.numbers.fetch_add(1, Ordering::Relaxed);
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query
        .split('&')
        .any(|part| matches!(part, "watch=true" | "watch=1"));
    let faults = state.behaviours.borrow().faults;
    let fate = faults.fate(state.seed, number, is_watch);
    state.count(fate.name());
    let mut course = Course {
        is_watch,
        bytes: None,
        time: None,
    };
    match fate {
        Fate::Passed => {}
        Fate::Refused(code) => return refusal(code),
        Fate::Unreached => return Err(Broken),
        Fate::Hung { forwarded } => {
            if forwarded {
                let _ = forwarded_whole(request, &state).await;
            }
            return std::future::pending().await;
        }
        Fate::Lost => {
            let _ = forwarded_whole(request, &state).await;
            return Err(Broken);
        }
        Fate::Torn(bytes) => course.bytes = Some(bytes),
        Fate::Late(delay) => tokio::time::sleep(delay).await,
        Fate::Short(time) => course.time = Some(time),
    }
    let answer = forward(request, &state).await?;
    // During a partition no answer gets through either.
    connected(&state).await;
    let (mut parts, body) = answer.into_parts();
    for hop in [CONNECTION, TRANSFER_ENCODING] {
        parts.headers.remove(hop);
    }
    let body = relay(body, &course, state.behaviours.subscribe());
    Ok(Response::from_parts(parts, body))
}

/// Waits until there is no partition.
async fn connected(state: &State) {
    // The channel stays open: its sender is part of the state.
    let _ = state
        .behaviours
        .subscribe()
        .wait_for(|behaviour| !behaviour.partitioned)
        .await;
}

/// Forwards the request, waits for the complete answer and discards it.
async fn forwarded_whole(request: Request<Incoming>, state: &State) -> Result<Bytes, Broken> {
    let answer = forward(request, state).await?;
    let bytes = answer.into_body().collect_bytes().await;
    bytes.map_err(|_| Broken)
}

async fn forward(
    request: Request<Incoming>,
    state: &State,
) -> Result<Response<kube::client::Body>, Broken> {
    connected(state).await;
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
    // These headers are set again for the next hop.
    for hop in [HOST, CONNECTION, TRANSFER_ENCODING, CONTENT_LENGTH] {
        parts.headers.remove(hop);
    }
    let path = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    parts.version = http::Version::HTTP_11;
    let sent = state.upstream.send(Request::from_parts(parts, body.into()));
    sent.await.map_err(|_| {
        state.count("down");
        Broken
    })
}

/// Returns the answer with which an API server refuses a request.
///
/// Source: Kubernetes API, `Status`; API concepts, "410 Gone responses"; API priority and fairness for 429.
fn refusal(code: u16) -> Result<Response<Body>, Broken> {
    let reason = match code {
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the proxy refuses", "reason": reason, "code": code,
    });
    let mut response = Response::new(whole(status.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).map_err(|_| Broken)?;
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    if code == 429 {
        headers.insert(RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    Ok(response)
}
