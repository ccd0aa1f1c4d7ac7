//! One request and its response on a connection of its own.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use orkestra_ground::tasks::{self, Task};
use tokio::task::JoinSet;

use super::{CallError, dial::Stream, target::Target};

/// The most bytes of a response body.
const MOST_BODY: usize = 256 * 1024;
/// The most bytes of a response head.
const MOST_HEAD: usize = 64 * 1024;

/// A request.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A response.
pub(super) struct Received {
    pub(super) status: StatusCode,
    /// The target of a redirect.
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Sends a request and receives the response. The connection ends with the response, or when this future is dropped.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    target: &Target,
    message: Message,
) -> Result<Received, CallError> {
    let broken = |_| CallError::Broken(target.to_string());
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MOST_HEAD)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    // Dropping the set ends the connection, whatever the server does.
    let mut driver = JoinSet::new();
    tasks::named(Task::ExternalConnection, target).start_in(&mut driver, connection);
    let request = request(target, message).ok_or(CallError::Token)?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let location = response
        .headers()
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    Ok(Received {
        status,
        location,
        body: read(response, target).await?,
    })
}

fn request(target: &Target, message: Message) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(message.method)
        .uri(&target.path)
        .body(Full::new(message.body))
        .ok()?;
    *request.headers_mut() = message.headers;
    let host = target.host_header().parse().ok()?;
    request.headers_mut().insert(header::HOST, host);
    Some(request)
}

/// Reads the body, at most [`MOST_BODY`].
async fn read(response: Response<Incoming>, target: &Target) -> Result<Vec<u8>, CallError> {
    let mut body = response.into_body();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| CallError::Broken(target.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if read.len() + data.len() > MOST_BODY {
            return Err(CallError::TooLarge(target.to_string()));
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
