//! Requests to registries.
//!
//! ```text
//!  RegistryRequest ── to the registry itself ──► with credentials
//!                  └─ to another server ───────► without, where the registry may lead
//! ```

use std::io;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use orkestra_egress::{
    self as egress, Leader, Limits, MOST_REDIRECTS, RedirectError, Redirects, Refusal, Request,
    Response, Target,
};

use super::Error;

/// A request to a registry, without credentials.
#[derive(Clone, Debug)]
pub(crate) struct RegistryRequest(pub(crate) Request);

impl RegistryRequest {
    pub(crate) fn new(method: Method, url: Target) -> Self {
        let mut request = Request::new(method, url);
        request.redirects = Redirects::Absolute;
        let agent = HeaderValue::from_static(concat!("ork/", env!("CARGO_PKG_VERSION")));
        request.headers.insert(header::USER_AGENT, agent);
        Self(request)
    }

    pub(crate) fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers.insert(name, value);
        }
        self
    }

    pub(crate) fn body(mut self, media_type: &str, body: Bytes) -> Self {
        self.0.body = body;
        self.header(header::CONTENT_TYPE, media_type)
    }

    /// The request as it is sent: with the authorization if it is to the registry itself, else as one that the registry leads to.
    fn of(self, home: &Leader, authorization: Option<&HeaderValue>) -> Request {
        let mut request = self.0;
        if !request.target.same_origin(&home.server) {
            request.led_by = Some(home.clone());
        } else if let Some(authorization) = authorization {
            let value = authorization.clone();
            request.own.insert(header::AUTHORIZATION, value);
        }
        request
    }
}

/// Sends requests.
pub(crate) struct Transport {
    pub(crate) egress: egress::Client,
    pub(crate) limits: Limits,
}

impl Transport {
    /// Sends a request to the registry at `home`, or to a place that it names. Follows redirects.
    pub(crate) async fn send(
        &self,
        home: &Leader,
        call: RegistryRequest,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, Error> {
        let within = self.limits.within(call.0.body.len());
        let request = call.of(home, authorization);
        self.egress.send(request, within).await.map_err(failed)
    }

    /// Sends a request to a token server that the registry at `home` names, with the credentials meant for it. Does not follow
    /// redirects.
    pub(crate) async fn send_to_realm(
        &self,
        home: &Leader,
        call: RegistryRequest,
        authorization: Option<HeaderValue>,
    ) -> Result<Response, Error> {
        let mut request = call.of(home, None);
        request.redirects = Redirects::Returned;
        let own = authorization.map(|value| (header::AUTHORIZATION, value));
        request.own.extend(own);
        let sending = self.egress.send_once(&request, self.limits.patience);
        sending.await.map_err(failed)
    }

    /// Returns true if the server does not speak TLS. An untrusted certificate does not permit plain HTTP.
    pub(crate) async fn speaks_plainly(&self, url: Target) -> Result<bool, Error> {
        let call = RegistryRequest::new(Method::GET, url);
        match self.egress.send_once(&call.0, self.limits.patience).await {
            Ok(_) => Ok(false),
            Err(error) if error.is_not_tls() => Ok(true),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads a body of at most `most` bytes and passes every chunk to `each`.
    pub(crate) async fn read(
        &self,
        response: Response,
        most: usize,
        each: impl FnMut(&Bytes),
    ) -> Result<(), Error> {
        let reading = response.stream(most, self.limits, each);
        reading.await.map_err(failed)
    }

    /// Reads a whole body of at most `most` bytes.
    pub(crate) async fn collect(&self, response: Response, most: usize) -> Result<Bytes, Error> {
        let reading = response.read(most, self.limits);
        reading.await.map(Bytes::from).map_err(failed)
    }
}

/// Returns the `Location` of a response: a URL, or an absolute path.
pub(crate) fn location(asked: &Target, headers: &HeaderMap) -> Result<Target, Error> {
    let wrong = |why: String| Error::Malformed {
        what: format!("the Location of an answer of {asked}"),
        why,
    };
    let value = headers.get(header::LOCATION);
    let value = value.ok_or_else(|| wrong("it is missing".to_owned()))?;
    let text = value.to_str();
    let text = text.map_err(|_| wrong("it is not text".to_owned()))?;
    let joined = asked.join_absolute(text);
    joined.map_err(|why| wrong(why.to_string()))
}

fn failed(error: egress::Error) -> Error {
    let unreachable = |host: String, why: String| Error::Unreachable { host, why };
    match error {
        egress::Error::Refused(why) => refused(&why),
        egress::Error::Redirect { from, why } => misled(from, why),
        egress::Error::TimedOut { to, within } => Error::TimedOut {
            host: to,
            seconds: within.as_secs(),
        },
        egress::Error::TooLarge { to, most } => Error::Malformed {
            what: format!("the answer of {to}"),
            why: format!("it has more than {most} bytes"),
        },
        egress::Error::Unresolved(to) => unreachable(to, "the host name has no address".to_owned()),
        egress::Error::Connect { to, source } => unreachable(to, cause(&source)),
        egress::Error::Tls { to, source } => unreachable(to, source.to_string()),
        egress::Error::Request(to) => unreachable(to, "the request is not valid".to_owned()),
        egress::Error::Broken(to) => {
            unreachable(to, "it did not send a valid HTTP response".to_owned())
        }
    }
}

fn cause(error: &io::Error) -> String {
    error.kind().to_string()
}

fn refused(why: &Refusal) -> Error {
    Error::Refused {
        host: why.host().to_owned(),
        why: why.to_string(),
    }
}

/// The error of a redirect of the server `from`.
fn misled(from: String, why: RedirectError) -> Error {
    match why {
        RedirectError::Refused(why) => refused(&why),
        RedirectError::Url(_) | RedirectError::Nowhere => Error::Malformed {
            what: format!("the Location of an answer of {from}"),
            why: why.to_string(),
        },
        RedirectError::TooMany => Error::Refused {
            host: from,
            why: format!("it is at the end of a chain of more than {MOST_REDIRECTS} redirects"),
        },
        RedirectError::Plain | RedirectError::Elsewhere => Error::Refused {
            why: format!("{from} leads there {why}"),
            host: "the next server".to_owned(),
        },
    }
}
