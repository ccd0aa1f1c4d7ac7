//! A client of registries: schemes, credentials, and the meaning of responses.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, uri::Authority};
use orkestra_egress::{self as egress, Guard, Leader, Limits, Resolver, Response, Target};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;

use super::{
    Error, Repository,
    auth::{self, Challenge, Credential, Keychain, Tokens},
    manifest::short,
    transport::{RegistryRequest, Transport},
};

/// The maximum size of an error response and of a token server's response, in bytes.
const MOST_ANSWER: usize = 256 * 1024;

/// The options of a client.
#[derive(Clone)]
pub struct Options {
    /// Uses plain HTTP for every registry. A registry on a loopback address is called over plain HTTP anyway if it does not
    /// speak TLS.
    pub plain_http: bool,
    /// Credentials.
    pub keychain: Keychain,
    /// The limits on the duration of responses.
    pub limits: Limits,
    /// Makes the connections, and decides which addresses are permitted.
    pub egress: egress::Client,
}

impl Options {
    /// The options of a user, who names the registries: each of them may be called, and leads to public addresses and to the kinds of
    /// addresses that it has itself. `roots` are trusted in addition to the machine's certificates.
    pub fn of_user(keychain: Keychain, roots: Vec<CertificateDer<'static>>) -> Self {
        Self {
            plain_http: false,
            keychain,
            limits: Limits::default(),
            egress: egress::Client::new(Guard::of_user(), Resolver::system())
                .with_roots(roots)
                .keeping(),
        }
    }
}

/// A client of registries. Clones share connections and tokens.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    transport: Transport,
    keychain: Keychain,
    tokens: Tokens,
    plain_http: bool,
    homes: Mutex<HashMap<Box<str>, Leader>>,
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
            keychain,
            limits,
            egress,
        } = options;
        Self(Arc::new(Inner {
            transport: Transport { egress, limits },
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
        let call = RegistryRequest::new(Method::GET, home.server);
        let response = self.ask(&ask, call).await?;
        self.expect(&ask, response, &[StatusCode::OK])
            .await
            .map(drop)
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0.transport
    }

    /// Returns the URL of a path below `/v2/` of a repository.
    pub(crate) async fn url(&self, repository: &Repository, rest: &str) -> Result<Target, Error> {
        let home = self.home(&repository.host).await?.server;
        let path = format!("/v2/{}/{rest}", repository.path);
        home.at(&path).map_err(|error| Error::Malformed {
            what: format!("the path {}", short(&path)),
            why: error.to_string(),
        })
    }

    /// Returns the base URL of a registry. One on a loopback address may speak plain HTTP, which is detected once.
    async fn home(&self, host: &str) -> Result<Leader, Error> {
        let homes = || self.0.homes.lock();
        if let Some(home) = homes().get(host) {
            return Ok(home.clone());
        }
        let server = if host == "docker.io" {
            "registry-1.docker.io"
        } else {
            host
        };
        let home = |scheme: &str| {
            let home = Target::parse(&format!("{scheme}://{server}/v2/"));
            home.map_err(|_| not_a_host(host))
        };
        let secure = home("https")?;
        let is_plain = self.0.plain_http
            || (is_loopback(server) && self.0.transport.speaks_plainly(secure.clone()).await?);
        let found = Leader {
            server: if is_plain { home("http")? } else { secure },
            address: None,
        };
        homes().insert(host.into(), found.clone());
        Ok(found)
    }

    /// Sends a request, with credentials if the registry itself requests them: the challenge of a server that it redirects to is not
    /// answered, since that server would choose who receives the credentials (CVE-2020-15157).
    pub(crate) async fn ask(
        &self,
        ask: &RequestTarget<'_>,
        call: RegistryRequest,
    ) -> Result<Response, Error> {
        let mut home = self.home(ask.host).await?;
        let held = self.0.tokens.get(ask.host, &ask.scope);
        let sending = self.0.transport.send(&home, call.clone(), held.as_ref());
        let response = sending.await?;
        let is_own = response.from.same_origin(&home.server);
        if is_own && home.address != response.address {
            home.address = response.address;
            self.0.homes.lock().insert(ask.host.into(), home.clone());
        }
        if !(is_own && response.status == StatusCode::UNAUTHORIZED) {
            return Ok(response);
        }
        let Some(challenge) = Challenge::of(&response.headers) else {
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
        home: &Leader,
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
        home: &Leader,
        (realm, service): (&str, Option<&str>),
        credential: Option<&Credential>,
    ) -> Result<(HeaderValue, std::time::Duration), Error> {
        let realm = Target::parse(realm).map_err(|why| Error::Malformed {
            what: format!("the token server that {} names", ask.host),
            why: why.to_string(),
        })?;
        let (call, authorization) = auth::token_call(&realm, service, &ask.scope, credential)?;
        // The address is restricted like any place that the registry leads to, but the server receives the credentials meant for it.
        let transport = &self.0.transport;
        let response = transport.send_to_realm(home, call, authorization).await?;
        let status = response.status;
        let body = transport.collect(response, MOST_ANSWER).await?;
        match status {
            StatusCode::OK => auth::read_token(&body),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                Err(unauthorized(ask, &body))
            }
            status => Err(Error::Status {
                host: realm.to_string(),
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
        response: Response,
        good: &[StatusCode],
    ) -> Result<Response, Error> {
        let status = response.status;
        if good.contains(&status) {
            return Ok(response);
        }
        let home = self.0.homes.lock().get(ask.host).cloned();
        let from = response.from.clone();
        let is_elsewhere = home.is_some_and(|home| !home.server.same_origin(&from));
        // The body of an error response only adds detail.
        let body = self.0.transport.collect(response, MOST_ANSWER).await;
        let body = body.unwrap_or_default();
        Err(match status {
            StatusCode::UNAUTHORIZED if is_elsewhere => Error::Unauthorized {
                host: ask.host.to_owned(),
                what: ask.what.clone(),
                why: format!(
                    "it redirects to {from}, which asks for credentials; none are sent there"
                ),
            },
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

fn not_a_host(host: &str) -> Error {
    Error::Malformed {
        what: format!("the host {}", short(host)),
        why: "it is not valid in a URL".to_owned(),
    }
}

/// True if a host, with or without a port, is this machine. Source: RFC 6761, section 6.3.
fn is_loopback(server: &str) -> bool {
    let Ok(authority) = server.parse::<Authority>() else {
        return false;
    };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
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
