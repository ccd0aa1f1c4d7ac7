//! The client: one request and its response, over connections that the guard permits.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, header};
use http_body_util::Full;
use hyper_util::{client::legacy, rt::TokioTimer};
use parking_lot::Mutex;
use rustls::{RootCertStore, pki_types::CertificateDer};
use tokio::{net::TcpStream, time::timeout};

use super::{
    Error, Guard, Leader, RedirectError, Request, Resolver, Response, Target,
    connector::{Connector, Tasks, Trust, cause},
    dial::Dialler,
    request::MOST_REDIRECTS,
};

/// The maximum size of a response's head, in bytes.
const MOST_HEAD: usize = 64 * 1024;
/// The time for which an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// The most servers whose idle connections are kept apart.
const MOST_POOLS: usize = 64;

type Http = legacy::Client<Connector, Full<Bytes>>;

/// Sends requests to targets that its guard permits. Clones share connections and trusted certificates.
///
/// Each request has a connection of its own, unless the client [keeps](Client::keeping) connections. Proxies, cookies and credentials of
/// the environment are not used, and no response is decompressed.
#[derive(Clone)]
pub struct Client {
    dialler: Dialler,
    trust: Arc<Trust>,
    kept: Option<Arc<Mutex<Kept>>>,
}

/// Connections that wait for further requests, by the server that led to them. The guard may permit more to one leader than to
/// another, so they share none.
type Kept = HashMap<Option<String>, Http>;

impl Client {
    /// A client that trusts the machine's certificates.
    pub fn new(guard: Guard, resolver: Resolver) -> Self {
        Self {
            dialler: Dialler { guard, resolver },
            trust: Arc::default(),
            kept: None,
        }
    }

    /// The same, trusting these certificates in addition to the machine's.
    #[must_use]
    pub fn with_roots(mut self, roots: Vec<CertificateDer<'static>>) -> Self {
        self.trust = Arc::new(Trust::machine_and(roots));
        self
    }

    /// The same, trusting these certificates instead of the machine's.
    #[must_use]
    pub fn trusting(mut self, roots: RootCertStore) -> Self {
        self.trust = Arc::new(Trust::only(roots));
        self
    }

    /// The same, for servers that get many requests: a connection waits 30 s for the next one.
    #[must_use]
    pub fn keeping(mut self) -> Self {
        self.kept = Some(Arc::default());
        self
    }

    /// The guard that checks hosts and addresses.
    pub fn guard(&self) -> &Guard {
        &self.dialler.guard
    }

    /// Connects to a target without TLS, for another protocol than HTTP.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn connect(&self, target: &Target, within: Duration) -> Result<TcpStream, Error> {
        self.dialler.connect(None, target, within).await
    }

    /// Sends a request, and follows redirects by the rules of [`Request::redirected`], at most five. `patience` is the time for each
    /// connection and each head of a response.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Redirect`] for a target that a server leads to.
    pub async fn send(&self, mut request: Request, patience: Duration) -> Result<Response, Error> {
        let mut from: Option<Target> = None;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send_once(&request, patience).await;
            let response = response.map_err(|error| match (&from, error) {
                (Some(from), Error::Refused(why)) => redirect(from, why.into()),
                (_, error) => error,
            })?;
            let (headers, address) = (&response.headers, response.address);
            let next = request.redirected(response.status, headers, address);
            let Some(next) = next.map_err(|why| redirect(&request.target, why))? else {
                return Ok(response);
            };
            from = Some(std::mem::replace(&mut request, next).target);
        }
        let last = from.unwrap_or(request.target);
        Err(redirect(&last, RedirectError::TooMany))
    }

    /// Sends a request once, and returns a redirect like any other response.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn send_once(
        &self,
        request: &Request,
        patience: Duration,
    ) -> Result<Response, Error> {
        let target = &request.target;
        if let Some(from) = &request.led_by
            && from.server.secure
            && !target.secure
        {
            return Err(redirect(&from.server, RedirectError::Plain));
        }
        let http = self.http(request.led_by.as_ref(), patience);
        let sending = http.request(message(request, self.kept.is_some())?);
        match timeout(patience, sending).await {
            Ok(Ok(response)) => Ok(Response::new(response, target.clone())),
            Ok(Err(error)) => {
                Err(cause(&error).unwrap_or_else(|| Error::Broken(target.to_string())))
            }
            Err(_) => Err(Error::TimedOut {
                to: target.to_string(),
                within: patience,
            }),
        }
    }

    /// Returns the connections to the user's own targets, or to those that a server leads to.
    fn http(&self, led_by: Option<&Leader>, patience: Duration) -> Http {
        let most_idle = if self.kept.is_some() { usize::MAX } else { 0 };
        let build = || {
            legacy::Client::builder(Tasks)
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(most_idle)
                .http1_max_buf_size(MOST_HEAD)
                .build(Connector {
                    dialler: self.dialler.clone(),
                    trust: self.trust.clone(),
                    led_by: led_by.cloned(),
                    patience,
                })
        };
        let Some(kept) = &self.kept else {
            return build();
        };
        let key = led_by.map(|from| format!("{} {:?}", from.server, from.address));
        let mut kept = kept.lock();
        if kept.len() >= MOST_POOLS && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.entry(key).or_insert_with(build).clone()
    }
}

fn message(request: &Request, is_kept: bool) -> Result<http::Request<Full<Bytes>>, Error> {
    let message = http::Request::builder()
        .method(request.method.clone())
        .uri(request.target.url())
        .body(Full::new(request.body.clone()));
    let mut message = message.map_err(|_| Error::Request(request.target.to_string()))?;
    let headers = message.headers_mut();
    headers.clone_from(&request.headers);
    headers.extend(request.own.clone());
    // The server and the end of a message are decided here alone.
    for name in [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
    ] {
        headers.remove(name);
    }
    if !is_kept {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(message)
}

fn redirect(from: &Target, why: RedirectError) -> Error {
    Error::Redirect {
        from: from.to_string(),
        why,
    }
}
