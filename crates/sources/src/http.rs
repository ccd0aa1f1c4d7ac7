//! Requests over HTTP(S): guarded, conditional, with limits on time, bytes and redirects.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use orkestra_ground::tasks::Task;
use orkestra_guard::{Bounds, Dialler, Guard, Message, Received, Target, exchange};

use super::{Error, Limits};

/// The most redirects that are followed.
const MOST_REDIRECTS: usize = 5;
/// The most bytes of a response head.
const MOST_HEAD: usize = 64 * 1024;

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
    pub(crate) dialler: Arc<Dialler>,
    pub(crate) limits: Limits,
}

impl HttpClient {
    /// Sends a request and follows its redirects.
    pub(crate) async fn ask(&self, ask: &HttpRequest<'_>) -> Result<HttpResponse, Error> {
        let target = Target::parse(ask.url)
            .map_err(|why| Error::Url(without_query(ask.url).to_owned(), why))?;
        let guard = self.dialler.guard();
        let guard = ask
            .led_by
            .map_or_else(|| guard.clone(), |from| guard.led_by(from));
        guard.judge_host(&target)?;
        let (to, within) = (target.to_string(), self.limits.within(ask.most));
        let following = self.follow(ask, guard, target);
        tokio::time::timeout(within, following)
            .await
            .unwrap_or(Err(Error::TimedOut {
                host: to,
                seconds: within.as_secs(),
            }))
    }

    async fn follow(
        &self,
        ask: &HttpRequest<'_>,
        mut guard: Guard,
        first: Target,
    ) -> Result<HttpResponse, Error> {
        let mut target = first.clone();
        let mut from: Option<Target> = None;
        for _ in 0..=MOST_REDIRECTS {
            let is_first = target.same_origin(&first);
            let received = self.exchange(ask, &guard, &target, is_first).await;
            let received = received.map_err(|error| match (&from, error) {
                (Some(from), Error::Refused(why)) => redirect(from, why.to_string()),
                (_, error) => error,
            })?;
            if ![301, 302, 303, 307, 308].contains(&received.status.as_u16()) {
                return answer(ask, received, target);
            }
            let why = |why: &str| redirect(&target, why.to_owned());
            if ask.body.is_some() {
                return Err(why("a request with a body is not repeated elsewhere"));
            }
            let location = received.location().ok_or_else(|| why("without a target"))?;
            let next = target
                .join(location)
                .map_err(|error| why(&error.to_string()))?;
            if target.secure && !next.secure {
                return Err(why("from HTTPS to plain HTTP"));
            }
            if !next.same_origin(&target) {
                guard = guard.led_by(&target);
            }
            from = Some(std::mem::replace(&mut target, next));
        }
        Err(redirect(
            &target,
            format!("more than {MOST_REDIRECTS} times"),
        ))
    }

    async fn exchange(
        &self,
        ask: &HttpRequest<'_>,
        guard: &Guard,
        target: &Target,
        is_first: bool,
    ) -> Result<Received, Error> {
        let stream = self
            .dialler
            .dial(guard, target, self.limits.patience)
            .await
            .map_err(failed)?;
        let message = Message {
            method: if ask.body.is_some() {
                Method::POST
            } else {
                Method::GET
            },
            headers: headers(ask, is_first),
            body: ask.body.clone().unwrap_or_default(),
        };
        let bounds = Bounds {
            head: MOST_HEAD,
            body: ask.most,
        };
        exchange(stream, target, message, bounds, Task::SourceConnection)
            .await
            .map_err(failed)
    }
}

/// The headers of a request. No encoding is accepted, so that the size of a response is its real size.
fn headers(ask: &HttpRequest<'_>, is_first: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let agent = concat!("ork/", env!("CARGO_PKG_VERSION"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    for (name, value) in ask.headers {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
    if let Some(authorization) = ask.authorization.filter(|_| is_first) {
        headers.insert(header::AUTHORIZATION, authorization.clone());
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

fn answer(ask: &HttpRequest<'_>, received: Received, from: Target) -> Result<HttpResponse, Error> {
    let (host, what) = (from.to_string(), without_query(ask.url).to_owned());
    match received.status {
        StatusCode::OK => Ok(HttpResponse::Is {
            validator: Validator::of(&received.headers),
            body: received.body,
            from,
        }),
        StatusCode::NOT_MODIFIED if ask.known.is_some() => Ok(HttpResponse::Unchanged),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound(what)),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Unauthorized {
            host,
            what,
            status: received.status.as_u16(),
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

pub(crate) fn failed(error: orkestra_guard::Error) -> Error {
    match error {
        orkestra_guard::Error::Refused(why) => Error::Refused(why),
        orkestra_guard::Error::TooLarge { .. } => {
            let text = error.to_string();
            let (host, why) = text.split_once(' ').unwrap_or(("", &text));
            Error::Malformed(host.to_owned(), format!("it {why}"))
        }
        other => Error::Unreachable(other.to_string()),
    }
}

fn redirect(from: &Target, why: String) -> Error {
    Error::Redirect {
        from: from.to_string(),
        why,
    }
}
