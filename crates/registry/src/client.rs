//! A client of registries: schemes, credentials, and the meaning of responses.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Uri,
    uri::{Authority, Scheme},
};
use hyper::body::Incoming;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;

use super::{
    Error, Repository,
    auth::{self, Challenge, Credential, Keychain, Tokens},
    dial::Dialler,
    location,
    manifest::short,
    resolve::ReservedRange,
    transport::{self, Limits, RegistryOrigin, RegistryRequest, Shared, Transport},
};

/// The maximum size of an error response and of a token server's response, in bytes.
const MOST_ANSWER: usize = 256 * 1024;

/// The options of a client.
#[derive(Clone)]
pub struct Options {
    /// Uses plain HTTP for every registry. A registry on a loopback address is called over plain HTTP anyway if it does not
    /// speak TLS.
    pub plain_http: bool,
    /// Trusted certificates in addition to those of the machine.
    pub roots: Vec<CertificateDer<'static>>,
    /// Credentials.
    pub keychain: Keychain,
    /// The limits on the duration of responses.
    pub limits: Limits,
    /// Identifies addresses that are not on the public internet: a registry elsewhere cannot redirect there.
    pub closed: ReservedRange,
    /// Makes the connections, and then decides alone which addresses are permitted. `None` for the machine's resolver.
    pub dial: Option<Dialler>,
}

/// A client of registries. Clones share connections and tokens.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    transport: Shared,
    keychain: Keychain,
    tokens: Tokens,
    plain_http: bool,
    homes: Mutex<HashMap<Box<str>, RegistryOrigin>>,
}

/// The access to a repository that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// None: the request is for the registry itself.
    None,
    /// Read access.
    Pull,
    /// Read and write access.
    Push,
}

/// The target of a request, and its name in messages.
pub(crate) struct RequestTarget<'a> {
    pub(crate) host: &'a str,
    pub(crate) scope: String,
    pub(crate) what: String,
}

impl<'a> RequestTarget<'a> {
    /// Source: docker's "Token Scope Documentation".
    pub(crate) fn new(repository: &'a Repository, access: Access, what: impl Into<String>) -> Self {
        let scope = match access {
            Access::None => String::new(),
            Access::Pull => format!("repository:{}:pull", repository.path),
            Access::Push => format!("repository:{}:pull,push", repository.path),
        };
        Self {
            host: &repository.host,
            scope,
            what: what.into(),
        }
    }
}

impl Client {
    /// Creates a client.
    pub fn new(options: Options) -> Self {
        let Options {
            plain_http,
            roots,
            keychain,
            limits,
            closed,
            dial,
        } = options;
        Self(Arc::new(Inner {
            transport: Arc::new(Transport::new(&roots, limits, closed, dial)),
            keychain,
            tokens: Tokens::default(),
            plain_http,
            homes: Mutex::default(),
        }))
    }

    /// Checks that the registry accepts this client's credentials.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] if it does not.
    pub async fn ping(&self, host: &str) -> Result<(), Error> {
        let repository = Repository {
            host: host.into(),
            path: "".into(),
        };
        let ask = RequestTarget::new(&repository, Access::None, "a login");
        let home = self.home(host).await?;
        let call = RegistryRequest::new(Method::GET, home.url("/v2/")?);
        let response = self.ask(&ask, call).await?;
        self.expect(&ask, response, &[StatusCode::OK])
            .await
            .map(drop)
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0.transport
    }

    /// Returns the URL of a path below `/v2/` of a repository.
    pub(crate) async fn url(&self, repository: &Repository, rest: &str) -> Result<Uri, Error> {
        let home = self.home(&repository.host).await?;
        home.url(&format!("/v2/{}/{rest}", repository.path))
    }

    /// Returns the base URL of a registry. One on a loopback address may speak plain HTTP, which is detected once.
    async fn home(&self, host: &str) -> Result<RegistryOrigin, Error> {
        let homes = || self.0.homes.lock();
        if let Some(home) = homes().get(host) {
            return Ok(home.clone());
        }
        let server = if host == "docker.io" {
            "registry-1.docker.io"
        } else {
            host
        };
        let authority: Authority = server.parse().map_err(|_| Error::Malformed {
            what: format!("the host {}", short(host)),
            why: "it is not valid in a URL".to_owned(),
        })?;
        let home = |scheme| RegistryOrigin {
            scheme,
            authority: authority.clone(),
        };
        let is_plain = self.0.plain_http
            || (is_loopback(authority.host()) && self.speaks_plainly(&home(Scheme::HTTPS)).await?);
        let found = home(if is_plain {
            Scheme::HTTP
        } else {
            Scheme::HTTPS
        });
        homes().insert(host.into(), found.clone());
        Ok(found)
    }

    /// Returns true if the server does not speak TLS. An untrusted certificate does not permit plain HTTP.
    async fn speaks_plainly(&self, home: &RegistryOrigin) -> Result<bool, Error> {
        let call = RegistryRequest::new(Method::GET, home.url("/v2/")?);
        match self.0.transport.send(home, call, None).await {
            Ok(_) => Ok(false),
            Err(error) if transport::is_not_tls(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Sends a request, with credentials if the registry requests them.
    pub(crate) async fn ask(
        &self,
        ask: &RequestTarget<'_>,
        call: RegistryRequest,
    ) -> Result<Response<Incoming>, Error> {
        let home = self.home(ask.host).await?;
        let held = self.0.tokens.get(ask.host, &ask.scope);
        let response = self
            .0
            .transport
            .send(&home, call.clone(), held.as_ref())
            .await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let Some(challenge) = Challenge::of(response.headers()) else {
            return Ok(response);
        };
        let Some(fresh) = self.authorize(ask, &home, &challenge).await? else {
            return Ok(response);
        };
        self.0.transport.send(&home, call, Some(&fresh)).await
    }

    /// Returns the authorization for a challenge; `None` without suitable credentials.
    async fn authorize(
        &self,
        ask: &RequestTarget<'_>,
        home: &RegistryOrigin,
        challenge: &Challenge,
    ) -> Result<Option<HeaderValue>, Error> {
        let credential = self.0.keychain.find(ask.host).await?;
        let (value, within) = match (challenge, &credential) {
            (_, Some(Credential::Bearer(token))) => (auth::bearer(token), None),
            (Challenge::Basic, Some(Credential::Basic { user, password })) => {
                (auth::basic(user, password), None)
            }
            (Challenge::Basic, _) => return Ok(None),
            (Challenge::Bearer { realm, service }, credential) => {
                let (value, within) = self
                    .token(ask, home, (realm, service.as_deref()), credential.as_ref())
                    .await?;
                (Some(value), Some(within))
            }
        };
        if let Some(value) = &value {
            self.0
                .tokens
                .put(ask.host, &ask.scope, value.clone(), within);
        }
        Ok(value)
    }

    /// Requests a token from the server that the registry names.
    async fn token(
        &self,
        ask: &RequestTarget<'_>,
        home: &RegistryOrigin,
        (realm, service): (&str, Option<&str>),
        credential: Option<&Credential>,
    ) -> Result<(HeaderValue, std::time::Duration), Error> {
        let realm: Uri = realm
            .parse()
            .ok()
            .filter(|realm: &Uri| realm.authority().is_some())
            .ok_or_else(|| Error::Malformed {
                what: format!("the token server that {} names", ask.host),
                why: "its address is not a URL".to_owned(),
            })?;
        let (call, authorization) = auth::token_call(&realm, service, &ask.scope, credential)?;
        let url = call.url.clone();
        // The address is restricted like any place that the registry leads to, but the server receives the credentials meant
        // for it, so it has its own base URL.
        let server = self.0.transport.server(home, &realm).await?;
        let response = self
            .0
            .transport
            .send_to(&server, call, authorization.as_ref())
            .await?;
        let status = response.status();
        let body = self
            .0
            .transport
            .collect(response, &url, MOST_ANSWER)
            .await?;
        match status {
            StatusCode::OK => auth::read_token(&body),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                Err(unauthorized(ask, &body))
            }
            status => Err(Error::Status {
                host: location::origin(&url),
                what: "a request for a token".to_owned(),
                status,
                detail: detail(&body),
            }),
        }
    }

    /// Returns the response if it has one of these statuses, else its error.
    pub(crate) async fn expect(
        &self,
        ask: &RequestTarget<'_>,
        response: Response<Incoming>,
        good: &[StatusCode],
    ) -> Result<Response<Incoming>, Error> {
        let status = response.status();
        if good.contains(&status) {
            return Ok(response);
        }
        let url = Uri::builder()
            .scheme("https")
            .authority(ask.host)
            .path_and_query("/")
            .build()
            .unwrap_or_default();
        // The body of an error response only adds detail.
        let body = self
            .0
            .transport
            .collect(response, &url, MOST_ANSWER)
            .await
            .unwrap_or_default();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => unauthorized(ask, &body),
            StatusCode::NOT_FOUND => Error::NotFound(ask.what.clone()),
            status => Error::Status {
                host: ask.host.to_owned(),
                what: ask.what.clone(),
                status,
                detail: detail(&body),
            },
        })
    }
}

/// True if a host is this machine. Source: RFC 6761, section 6.3.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = super::resolve::literal(host);
    host == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

fn unauthorized(ask: &RequestTarget<'_>, body: &Bytes) -> Error {
    let why = match detail(body).strip_prefix(": ") {
        Some(said) => said.to_owned(),
        None => "it requires valid credentials".to_owned(),
    };
    Error::Unauthorized {
        host: ask.host.to_owned(),
        what: ask.what.clone(),
        why: format!("{why}; `ork login {}` stores credentials", ask.host),
    }
}

#[derive(Deserialize)]
struct ErrorResponse {
    #[serde(default)]
    errors: Vec<ErrorDetail>,
}

#[derive(Deserialize)]
struct ErrorDetail {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Returns `: CODE: message` of the first error in a response. Source: OCI distribution specification, "Error Codes".
fn detail(body: &Bytes) -> String {
    let failures = serde_json::from_slice::<ErrorResponse>(body).ok();
    let first = failures.and_then(|failures| failures.errors.into_iter().next());
    first
        .map(|ErrorDetail { code, message }| format!(": {} ({})", short(&message), short(&code)))
        .unwrap_or_default()
}
