//! Requests over HTTP(S): guarded, conditional, with limits on time, bytes and redirects.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use orkestra_egress::{self as egress, Client, Leader, Request, Target};

use super::{Error, Limits};

/// What makes a request conditional. Source: RFC 9110, section 13.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validator {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl Validator {
    fn of(headers: &HeaderMap) -> Self {
        Self {
            etag: headers.get(header::ETAG).cloned(),
            modified: headers.get(header::LAST_MODIFIED).cloned(),
        }
    }
}

/// A request.
pub(crate) struct HttpRequest<'a> {
    /// The URL, in messages and for the request.
    pub(crate) url: &'a str,
    /// The server that led to it, if the user did not name it.
    pub(crate) led_by: Option<&'a Target>,
    /// Sent to this URL's origin only.
    pub(crate) authorization: Option<&'a HeaderValue>,
    /// What is known.
    pub(crate) known: Option<&'a Validator>,
    /// The most bytes of the response.
    pub(crate) most: usize,
    /// Further headers.
    pub(crate) headers: &'a [(HeaderName, &'static str)],
    /// The body of a POST.
    pub(crate) body: Option<Bytes>,
}

impl<'a> HttpRequest<'a> {
    /// A GET without conditions.
    pub(crate) fn get(url: &'a str, most: usize) -> Self {
        Self {
            url,
            led_by: None,
            authorization: None,
            known: None,
            most,
            headers: &[],
            body: None,
        }
    }
}

/// A response.
pub(crate) enum HttpResponse {
    /// What is known is current.
    Unchanged,
    /// New content.
    Is {
        /// The body.
        body: Vec<u8>,
        /// What makes the next request conditional.
        validator: Validator,
        /// Where it came from, after redirects.
        from: Target,
    },
}

/// Sends requests. Each has a connection of its own.
pub(crate) struct HttpClient {
    pub(crate) client: Client,
    pub(crate) limits: Limits,
}

impl HttpClient {
    /// Sends a request and follows its redirects.
    pub(crate) async fn ask(&self, ask: &HttpRequest<'_>) -> Result<HttpResponse, Error> {
        let target = Target::parse(ask.url)
            .map_err(|why| Error::Url(without_query(ask.url).to_owned(), why))?;
        let to = target.to_string();
        let limits = self.limits.durations();
        let within = limits.within(ask.most);
        let asking = async {
            let request = request(ask, target);
            let response = self.client.send(request, limits.patience).await;
            let response = response.map_err(failed)?;
            let (status, headers) = (response.status, response.headers.clone());
            let from = response.from.clone();
            let body = response.read(ask.most, limits).await.map_err(failed)?;
            answer(ask, status, &headers, body, from)
        };
        tokio::time::timeout(within, asking)
            .await
            .unwrap_or(Err(Error::TimedOut {
                host: to,
                seconds: within.as_secs(),
            }))
    }
}

/// No encoding is accepted, so that the size of a response is its real size.
fn request(ask: &HttpRequest<'_>, target: Target) -> Request {
    let method = if ask.body.is_some() {
        Method::POST
    } else {
        Method::GET
    };
    let mut request = Request::new(method, target);
    request.led_by = ask.led_by.map(|server| Leader {
        server: server.clone(),
        address: None,
    });
    request.headers = headers(ask);
    request.body = ask.body.clone().unwrap_or_default();
    if let Some(authorization) = ask.authorization {
        request
            .own
            .insert(header::AUTHORIZATION, authorization.clone());
    }
    request
}

fn headers(ask: &HttpRequest<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    let agent = concat!("ork/", env!("CARGO_PKG_VERSION"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    for (name, value) in ask.headers {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
    if let Some(known) = ask.known {
        if let Some(etag) = &known.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        if let Some(modified) = &known.modified {
            headers.insert(header::IF_MODIFIED_SINCE, modified.clone());
        }
    }
    headers
}

fn answer(
    ask: &HttpRequest<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    body: Vec<u8>,
    from: Target,
) -> Result<HttpResponse, Error> {
    let (host, what) = (from.to_string(), without_query(ask.url).to_owned());
    match status {
        StatusCode::OK => Ok(HttpResponse::Is {
            validator: Validator::of(headers),
            body,
            from,
        }),
        StatusCode::NOT_MODIFIED if ask.known.is_some() => Ok(HttpResponse::Unchanged),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound(what)),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Unauthorized {
            host,
            what,
            status: status.as_u16(),
        }),
        status => Err(Error::Status {
            host,
            what,
            status: status.as_u16(),
        }),
    }
}

/// A URL for messages: without its query, which may contain a token.
pub(crate) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

fn failed(error: egress::Error) -> Error {
    match error {
        egress::Error::Refused(why) => Error::Refused(why),
        egress::Error::Redirect { from, why } => Error::Redirect {
            from,
            why: why.to_string(),
        },
        egress::Error::TimedOut { to, within } => Error::TimedOut {
            host: to,
            seconds: within.as_secs(),
        },
        egress::Error::TooLarge { .. } => {
            let text = error.to_string();
            let (host, why) = text.split_once(' ').unwrap_or(("", &text));
            Error::Malformed(host.to_owned(), format!("it {why}"))
        }
        other => Error::Unreachable(other.to_string()),
    }
}
