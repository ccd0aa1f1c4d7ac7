//! HTTP requests: permitted servers, timeouts and limits on sizes.
//!
//! ```text
//!  Call ── to the registry itself ──► connections to it, with credentials
//!    ▲  └─ to another host ─────────► guarded connections: no credentials, restricted kinds of addresses
//!    └──── a redirect, at most five ◄──┘
//! ```

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, Uri, header,
    uri::{Authority, Scheme},
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use parking_lot::Mutex;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use tokio::time::{Instant, timeout_at};

use super::{
    Error,
    dial::{Connections, Connector, Dialler, connections, own, refusal},
    location::{location, origin},
    resolve::{self, ReservedRange, Resolve},
};

/// The maximum number of redirects of a request.
const MOST_REDIRECTS: usize = 5;

/// Limits on the duration of a response.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time for a connection and the head of a response. A body has the same time in addition to the time for its size.
    pub patience: Duration,
    /// The minimum rate of a body, in bytes per second.
    pub slowest: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            slowest: 16 * 1024,
        }
    }
}

impl Limits {
    /// Returns the time for a body of at most that many bytes.
    fn body(&self, bytes: usize) -> Duration {
        self.patience + Duration::from_secs(bytes as u64 / self.slowest.max(1))
    }
}

/// A request to a registry.
#[derive(Clone, Debug)]
pub(crate) struct RegistryRequest {
    pub(crate) method: Method,
    pub(crate) url: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl RegistryRequest {
    pub(crate) fn new(method: Method, url: Uri) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    pub(crate) fn body(mut self, media_type: &str, body: Bytes) -> Self {
        self.body = body;
        self.header(header::CONTENT_TYPE, media_type)
    }
}

/// A registry's own scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistryOrigin {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

impl RegistryOrigin {
    /// Returns the URL of a path of the registry.
    pub(crate) fn url(&self, path: &str) -> Result<Uri, Error> {
        let built = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build();
        built.map_err(|error| Error::Malformed {
            what: format!("the path {}", super::manifest::short(path)),
            why: error.to_string(),
        })
    }

    fn is_at(&self, url: &Uri) -> bool {
        url.scheme() == Some(&self.scheme) && url.authority() == Some(&self.authority)
    }
}

/// A server other than the registry.
pub(crate) struct Server {
    own: RegistryOrigin,
    connections: Connections,
}

/// Sends requests.
pub(crate) struct Transport {
    tls: ClientConfig,
    pub(crate) limits: Limits,
    closed: ReservedRange,
    /// The caller's connections, which it guards itself.
    dial: Option<Dialler>,
    open: Connections,
    /// Connections to places other than the registry, by the kinds of closed addresses that are permitted, or by the registry that
    /// leads there.
    guarded: Mutex<HashMap<String, Connections>>,
}

impl Transport {
    /// Creates a transport that trusts the machine's certificates and `roots`.
    pub(crate) fn new(
        roots: &[CertificateDer<'static>],
        limits: Limits,
        closed: ReservedRange,
        dial: Option<Dialler>,
    ) -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        store.add_parsable_certificates(roots.iter().cloned());
        let tls = ClientConfig::builder()
            .with_root_certificates(store)
            .with_no_client_auth();
        let connector = match &dial {
            Some(dial) => Connector::Given(dial.clone(), None),
            None => own(Resolve::open(), limits.patience),
        };
        Self {
            open: connections(tls.clone(), connector),
            dial,
            guarded: Mutex::default(),
            tls,
            limits,
            closed,
        }
    }

    /// Resolves a server that a registry names, such as its token server, with the restrictions on places that a registry
    /// leads to.
    pub(crate) async fn server(&self, home: &RegistryOrigin, url: &Uri) -> Result<Server, Error> {
        let own = RegistryOrigin {
            scheme: url.scheme().cloned().unwrap_or(Scheme::HTTPS),
            authority: url
                .authority()
                .cloned()
                .unwrap_or_else(|| home.authority.clone()),
        };
        let connections = if home.is_at(url) {
            self.open.clone()
        } else {
            self.guarded(home, url).await?
        };
        Ok(Server { own, connections })
    }

    /// Sends a request to such a server, with the credentials meant for it. Does not follow redirects.
    pub(crate) async fn send_to(
        &self,
        server: &Server,
        call: RegistryRequest,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response<Incoming>, Error> {
        let credentials = authorization.filter(|_| server.own.is_at(&call.url));
        self.exchange(&server.connections, &call, credentials).await
    }

    /// Sends a request to the registry at `home`. Follows redirects of GET and HEAD.
    pub(crate) async fn send(
        &self,
        home: &RegistryOrigin,
        mut call: RegistryRequest,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response<Incoming>, Error> {
        for _ in 0..=MOST_REDIRECTS {
            let is_home = home.is_at(&call.url);
            let connections = if is_home {
                self.open.clone()
            } else {
                self.guarded(home, &call.url).await?
            };
            let credentials = authorization.filter(|_| is_home);
            let response = self.exchange(&connections, &call, credentials).await?;
            let is_safe = [Method::GET, Method::HEAD].contains(&call.method);
            // 304 is not a redirect.
            let is_redirect = [301, 302, 303, 307, 308].contains(&response.status().as_u16());
            if !(is_safe && is_redirect) {
                return Ok(response);
            }
            call.url = location(&call.url, response.headers())?;
        }
        Err(Error::Refused {
            host: origin(&call.url),
            why: format!("it is at the end of a chain of more than {MOST_REDIRECTS} redirects"),
        })
    }

    /// Sends one request and returns its response.
    async fn exchange(
        &self,
        connections: &Connections,
        call: &RegistryRequest,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.url.clone();
        *request.headers_mut() = call.headers.clone();
        let agent = concat!("ork/", env!("CARGO_PKG_VERSION"));
        let agent = HeaderValue::from_static(agent);
        request.headers_mut().insert(header::USER_AGENT, agent);
        if let Some(authorization) = authorization {
            request
                .headers_mut()
                .insert(header::AUTHORIZATION, authorization.clone());
        }
        let within = self.limits.body(call.body.len());
        let sent = tokio::time::timeout(within, connections.request(request)).await;
        let sent = sent.map_err(|_| timed_out(&call.url, within))?;
        sent.map_err(|error| {
            let host = origin(&call.url);
            match refusal(&error) {
                Some(why) => Error::Refused { host, why },
                None => Error::Unreachable {
                    host,
                    why: innermost(&error),
                },
            }
        })
    }

    /// Returns connections to a place other than the registry.
    async fn guarded(&self, home: &RegistryOrigin, url: &Uri) -> Result<Connections, Error> {
        let refused = |why: String| Error::Refused {
            host: origin(url),
            why,
        };
        let is_secure = url.scheme() == Some(&Scheme::HTTPS);
        if !is_secure && home.scheme == Scheme::HTTPS {
            return Err(refused(
                "it is a plain HTTP address that a registry over HTTPS redirects to".to_owned(),
            ));
        }
        let (key, connector) = if let Some(dial) = &self.dial {
            let led_by = home.url("/")?;
            (
                led_by.to_string(),
                Connector::Given(dial.clone(), Some(led_by)),
            )
        } else {
            let kinds = resolve::kinds(&home.authority, self.closed).await;
            if let Some(address) = resolve::literal(url.host().unwrap_or_default()) {
                resolve::judge(address, self.closed, &kinds).map_err(refused)?;
            }
            let key = kinds.iter().copied().collect::<Vec<_>>().join(", ");
            let resolve = Resolve::guarded(self.closed, kinds);
            (key, own(resolve, self.limits.patience))
        };
        let mut guarded = self.guarded.lock();
        let connections = guarded
            .entry(key)
            .or_insert_with(|| connections(self.tls.clone(), connector));
        Ok(connections.clone())
    }

    /// Reads a body of at most `most` bytes and passes every chunk to `each`.
    pub(crate) async fn read(
        &self,
        response: Response<Incoming>,
        url: &Uri,
        most: usize,
        mut each: impl FnMut(&Bytes),
    ) -> Result<(), Error> {
        let within = self.limits.body(most);
        let end = Instant::now() + within;
        let mut body = response.into_body();
        let mut read = 0;
        loop {
            let frame = timeout_at(end.min(Instant::now() + self.limits.patience), body.frame());
            let frame = match frame.await {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(_) => return Err(timed_out(url, within)),
            };
            let frame = frame.map_err(|error| Error::Unreachable {
                host: origin(url),
                why: innermost(&error),
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            read += data.len();
            if read > most {
                return Err(Error::Malformed {
                    what: format!("the answer of {}", origin(url)),
                    why: format!("it has more than {most} bytes"),
                });
            }
            each(&data);
        }
    }

    /// Reads a whole body of at most `most` bytes.
    pub(crate) async fn collect(
        &self,
        response: Response<Incoming>,
        url: &Uri,
        most: usize,
    ) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        self.read(response, url, most, |piece| all.extend_from_slice(piece))
            .await?;
        Ok(all.freeze())
    }
}

fn timed_out(url: &Uri, within: Duration) -> Error {
    Error::TimedOut {
        host: origin(url),
        seconds: within.as_secs(),
    }
}

/// Returns the most specific cause: the last one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        said = cause.to_string();
        next = cause.source();
    }
    said
}

/// True if a server does not speak TLS: the handshake failed for another reason than its certificate.
pub(crate) fn is_not_tls(error: &Error) -> bool {
    let Error::Unreachable { why, .. } = error else {
        return false;
    };
    // `rustls` errors are only available as text after hyper has wrapped them.
    [
        "InvalidContentType",
        "corrupt message",
        "tls handshake eof",
        "unexpected end of file",
    ]
    .iter()
    .any(|kind| why.contains(kind))
}

/// Shared by clones of a client.
pub(crate) type Shared = Arc<Transport>;
