//! One request and its response on a connection of its own.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use orkestra_ground::tasks::{self, Task};
use tokio::task::JoinSet;

use super::{Error, Stream, Target};

/// The limits of a response.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most bytes of the head.
    pub head: usize,
    /// The most bytes of the body.
    pub body: usize,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Message {
    /// The method.
    pub method: Method,
    /// The headers, without `Host`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Received {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// The target of a redirect.
    pub fn location(&self) -> Option<&str> {
        self.headers.get(header::LOCATION)?.to_str().ok()
    }
}

/// Sends a request and receives the response. The connection ends with the response, or when this future is dropped. `task` is the
/// task that runs it.
///
/// # Errors
/// [`Error`].
pub async fn exchange(
    stream: Box<dyn Stream>,
    target: &Target,
    message: Message,
    bounds: Bounds,
    task: Task,
) -> Result<Received, Error> {
    let broken = |_| Error::Broken(target.to_string());
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(bounds.head)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    // Dropping the set ends the connection, whatever the server does.
    let mut driver = JoinSet::new();
    tasks::named(task, target).start_in(&mut driver, connection);
    let request = request(target, message).ok_or_else(|| Error::Request(target.to_string()))?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Received {
        status,
        headers,
        body: read(response, target, bounds.body).await?,
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

/// Reads the body, at most `most` bytes.
async fn read(
    response: Response<Incoming>,
    target: &Target,
    most: usize,
) -> Result<Vec<u8>, Error> {
    let mut body = response.into_body();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::Broken(target.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if read.len() + data.len() > most {
            return Err(Error::TooLarge {
                to: target.to_string(),
                most,
            });
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
