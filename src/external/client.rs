//! Makes calls: bounded in time, in size and in number.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use orkestra_core::reconcile::calls::{Answer, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    CallError, Guard, Resolver, Target, Variables,
    dial::Dialler,
    error::RedirectError,
    exchange::{Message, Received, exchange},
};
use crate::client::user_agent;

/// Calls under way in one process.
const CALLS: usize = 128;
/// Calls under way to one host and port: a host that hangs takes no more than these.
const CALLS_A_HOST: usize = 16;
/// How long a call waits for its turn.
const TURN: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Makes calls. Cheap to clone; clones share their limits.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    dialler: Dialler,
    variables: Variables,
    calls: Arc<Semaphore>,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Client {
    /// A client that calls what the guard permits.
    pub fn new(guard: Guard, variables: Variables, resolver: Resolver) -> Self {
        Self::over(Dialler::new(guard, resolver), variables)
    }

    /// A client that makes no call.
    pub fn closed() -> Self {
        let nothing = Guard::new(Vec::new());
        Self::new(nothing, Variables::default(), Resolver::system())
    }

    pub(super) fn over(dialler: Dialler, variables: Variables) -> Self {
        Self(Arc::new(Inner {
            dialler,
            variables,
            calls: Arc::new(Semaphore::new(CALLS)),
            hosts: Mutex::default(),
        }))
    }

    /// Makes a call, and again as its [`retry`](Request::retry) says, unless no try could end otherwise.
    ///
    /// Takes at most the timeout and a turn of 30 s for each try, and the waits between them.
    pub async fn call(&self, request: &Request) -> Answer {
        let mut attempt = 1;
        loop {
            let answer = self.attempt(request).await;
            let again = answer.error.as_ref().is_some_and(|error| !error.permanent);
            if !again || attempt >= request.retry.attempts {
                return answer;
            }
            tokio::time::sleep(request.retry.wait(attempt)).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, request: &Request) -> Answer {
        match self.received(request).await {
            Ok((received, to)) => judged(request, &received, &to),
            Err(error) => Answer {
                error: Some(error.trouble()),
                ..Answer::default()
            },
        }
    }

    async fn received(&self, request: &Request) -> Result<(Received, Target), CallError> {
        let target = Target::parse(&request.url)?;
        let message = self.message(request)?;
        let _turn = self.turn(&target).await?;
        let to = target.to_string();
        let following = self.follow(request, target, message);
        tokio::time::timeout(request.timeout, following)
            .await
            .unwrap_or(Err(CallError::Timeout {
                to,
                within: request.timeout,
            }))
    }

    /// Follows redirects, each judged as the first URL was.
    async fn follow(
        &self,
        request: &Request,
        mut target: Target,
        mut message: Message,
    ) -> Result<(Received, Target), CallError> {
        let mut from: Option<Target> = None;
        for _ in 0..=REDIRECTS {
            let dialled = self.0.dialler.dial(&target, request.timeout).await;
            let stream = dialled.map_err(|error| match (&from, error) {
                (Some(from), CallError::Refused(why)) => redirect(from, why),
                (_, error) => error,
            })?;
            let received = exchange(stream, &target, message.clone()).await?;
            let status = received.status;
            let is_meant = request.expected_status == Some(status.as_u16());
            if is_meant || !is_redirect(status) {
                return Ok((received, target));
            }
            let location = received.location.as_deref();
            let location = location.ok_or_else(|| redirect(&target, RedirectError::Nowhere))?;
            let next = target
                .join(location)
                .map_err(|why| redirect(&target, why))?;
            message = moved(status, message);
            if !next.same_origin(&target) {
                if message.method != Method::GET {
                    return Err(redirect(&target, RedirectError::Elsewhere));
                }
                message.headers = common_headers();
            }
            from = Some(std::mem::replace(&mut target, next));
        }
        Err(redirect(&target, RedirectError::TooMany))
    }

    fn message(&self, request: &Request) -> Result<Message, CallError> {
        let mut headers = common_headers();
        if !request.body.is_empty() {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        for (name, value) in &request.headers {
            let unfit = || CallError::Header(name.to_string());
            let key: HeaderName = name.parse().map_err(|_| unfit())?;
            headers.insert(key, HeaderValue::from_str(value).map_err(|_| unfit())?);
        }
        if let Some(token) = self.0.variables.expand(&request.token)? {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| CallError::Token)?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Message {
            // The plan knows five methods.
            method: request.method.parse().unwrap_or_default(),
            headers,
            body: Bytes::copy_from_slice(request.body.as_bytes()),
        })
    }

    /// Waits until the host and the process have room. The host's turn comes first: those who wait for a host that hangs
    /// take no room from others.
    async fn turn(&self, target: &Target) -> Result<Turn, CallError> {
        let busy = || CallError::Busy(target.to_string());
        let waiting = async {
            let host = self.host(target).acquire_owned().await;
            let process = self.0.calls.clone().acquire_owned().await;
            // Neither is ever closed.
            Some(Turn(host.ok()?, process.ok()?))
        };
        let turn = tokio::time::timeout(TURN, waiting).await;
        turn.ok().flatten().ok_or_else(busy)
    }

    fn host(&self, target: &Target) -> Arc<Semaphore> {
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Who calls or waits holds a second reference.
        hosts.retain(|_, calls| Arc::strong_count(calls) > 1);
        let calls = hosts.entry(target.to_string());
        calls
            .or_insert_with(|| Arc::new(Semaphore::new(CALLS_A_HOST)))
            .clone()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// Room for one call, at its host and in the process; given back when it is dropped.
struct Turn(
    #[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit,
    #[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit,
);

/// The answer, and whether its status is the one that counts as success.
fn judged(request: &Request, received: &Received, to: &Target) -> Answer {
    let status = received.status.as_u16();
    let error = CallError::Status {
        to: to.to_string(),
        status,
        expected: request.expected_status,
    };
    Answer {
        status: Some(status),
        body: String::from_utf8_lossy(&received.body).into(),
        error: (!request.takes(status)).then(|| error.trouble()),
    }
}

/// What every request has. No encoding is accepted, so that an answer is as large as it looks.
fn common_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // A version is digits and dots: it cannot fail.
    if let Ok(agent) = HeaderValue::from_str(&user_agent()) {
        headers.insert(header::USER_AGENT, agent);
    }
    headers
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// What is sent to where a redirect leads.
///
/// Source: RFC 9110, section 15.4.
fn moved(status: StatusCode, mut message: Message) -> Message {
    let to_get = match status.as_u16() {
        303 => true,
        301 | 302 => message.method == Method::POST,
        _ => false,
    };
    if to_get {
        message.method = Method::GET;
        message.body = Bytes::new();
        message.headers.remove(header::CONTENT_TYPE);
    }
    message
}

fn redirect(from: &Target, why: impl Into<RedirectError>) -> CallError {
    CallError::Redirect {
        from: from.to_string(),
        why: why.into(),
    }
}
