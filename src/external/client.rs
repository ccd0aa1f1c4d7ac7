//! Makes calls with limits of time, size and number.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use orkestra_cluster::client::user_agent;
use orkestra_core::reconcile::calls::{CallAnswer, CallRequest};
use orkestra_ground::tasks::Task;
use orkestra_guard::{Bounds, Dialler, Message, Received, Target, exchange};

use super::{
    BadUrl, CallError, Guard, Resolver, Variables,
    error::RedirectError,
    slots::{CallSlot, CallSlots, Caller},
    variables,
};
use crate::metrics::{CallMetrics, CallResult};

/// How long a call waits for its turn.
const TURN: Duration = Duration::from_secs(30);
/// The most redirects that are followed.
const REDIRECTS: usize = 5;
/// The most bytes of a response.
const BOUNDS: Bounds = Bounds {
    head: 64 * 1024,
    body: 256 * 1024,
};

/// Makes calls. Cheap to clone; clones share their limits, and each caller has its own share.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    caller: Caller,
}

struct Inner {
    dialler: Dialler,
    variables: Variables,
    places: Arc<CallSlots>,
    metrics: OnceLock<CallMetrics>,
}

impl Client {
    /// A client that makes the calls that the guard permits.
    pub fn new(guard: Guard, variables: Variables, resolver: Resolver) -> Self {
        Self::over(Dialler::new(guard, resolver), variables)
    }

    /// A client that makes no calls.
    pub fn closed() -> Self {
        let nothing = Guard::new(Vec::new());
        Self::new(nothing, Variables::default(), Resolver::system())
    }

    pub(super) fn over(dialler: Dialler, variables: Variables) -> Self {
        let inner = Inner {
            dialler,
            variables,
            places: Arc::default(),
            metrics: OnceLock::new(),
        };
        Self {
            inner: Arc::new(inner),
            caller: Caller::default(),
        }
    }

    /// Counts the calls of all clones from now on.
    #[must_use]
    pub fn counting_into(self, metrics: CallMetrics) -> Self {
        // Metrics that were set before stay.
        let _ = self.inner.metrics.set(metrics);
        self
    }

    /// The same client for an operator, which is named with its Katalog.
    #[must_use]
    pub fn of_operator(&self, operator: &str) -> Self {
        Self {
            inner: self.inner.clone(),
            caller: Caller {
                operator: operator.into(),
                namespace: Arc::default(),
            },
        }
    }

    /// The same client for the operator's custom resources in a namespace; `None` is for cluster-scoped ones.
    #[must_use]
    pub fn in_namespace(&self, namespace: Option<&str>) -> Self {
        Self {
            inner: self.inner.clone(),
            caller: Caller {
                operator: self.caller.operator.clone(),
                namespace: namespace.unwrap_or_default().into(),
            },
        }
    }

    /// Makes a call, and retries it according to [`retry`](CallRequest::retry), unless the failure is permanent.
    ///
    /// Takes at most the timeout plus 30 s for its turn for each attempt, and the pauses between them.
    pub async fn call(&self, request: &CallRequest) -> CallAnswer {
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

    async fn attempt(&self, request: &CallRequest) -> CallAnswer {
        let target = Target::parse(&request.url);
        let entry = target.as_ref().ok();
        let entry = entry.and_then(|target| self.inner.dialler.guard().entry(target));
        let (answer, result) = match self.received(request, target).await {
            Ok((received, to)) => {
                let answer = judged(request, &received, &to);
                let result = match &answer.error {
                    None => CallResult::Success,
                    Some(_) => CallResult::Status,
                };
                (answer, result)
            }
            Err(error) => {
                let answer = CallAnswer {
                    error: Some(error.failure()),
                    ..CallAnswer::default()
                };
                (answer, error.result())
            }
        };
        if let Some(metrics) = self.inner.metrics.get() {
            metrics.count(entry.map(ToString::to_string).as_deref(), result);
        }
        answer
    }

    async fn received(
        &self,
        request: &CallRequest,
        target: Result<Target, BadUrl>,
    ) -> Result<(Received, Target), CallError> {
        let target = target?;
        let message = self.message(request)?;
        // A refused call does not wait.
        self.inner.dialler.guard().judge_host(&target)?;
        let place = self.place(&target).await?;
        let to = target.to_string();
        let following = self.follow(request, target, message, place);
        tokio::time::timeout(request.timeout, following)
            .await
            .unwrap_or(Err(CallError::Timeout {
                to,
                within: request.timeout,
            }))
    }

    /// Follows redirects, each checked like the first URL. A redirect to another host needs a new place, after the last one is
    /// released: no call waits for a place while it holds one.
    async fn follow(
        &self,
        request: &CallRequest,
        mut target: Target,
        mut message: Message,
        mut place: CallSlot,
    ) -> Result<(Received, Target), CallError> {
        let mut from: Option<Target> = None;
        for _ in 0..=REDIRECTS {
            let dialler = &self.inner.dialler;
            let dialling = dialler.dial(dialler.guard(), &target, request.timeout);
            let connected = dialling.await.map_err(CallError::from);
            let stream = connected.map_err(|error| match (&from, error) {
                (Some(from), CallError::Refused(why)) => redirect(from, why),
                (_, error) => error,
            })?;
            let task = Task::ExternalConnection;
            let received = exchange(stream, &target, message.clone(), BOUNDS, task).await?;
            let status = received.status;
            let is_meant = request.expected_status == Some(status.as_u16());
            if is_meant || !is_redirect(status) {
                return Ok((received, target));
            }
            let location = received.location();
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
                let judged = self.inner.dialler.guard().judge_host(&next);
                judged.map_err(|why| redirect(&target, why))?;
                drop(place);
                place = self.place(&next).await?;
            }
            from = Some(std::mem::replace(&mut target, next));
        }
        Err(redirect(&target, RedirectError::TooMany))
    }

    fn message(&self, request: &CallRequest) -> Result<Message, CallError> {
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
        if let Some(token) = variables::expand(&self.inner.variables, &request.token)? {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| CallError::Token)?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Message {
            // The plan permits only five methods.
            method: request.method.parse().unwrap_or_default(),
            headers,
            body: Bytes::copy_from_slice(request.body.as_bytes()),
        })
    }

    /// Waits until the host and the process have room for this caller.
    async fn place(&self, target: &Target) -> Result<CallSlot, CallError> {
        let host = target.to_string();
        let place = self.inner.places.take(&host, &self.caller);
        let place = tokio::time::timeout(TURN, place).await;
        place.map_err(|_| CallError::Busy(host))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// Returns the answer with an error, if its status does not count as success.
fn judged(request: &CallRequest, received: &Received, to: &Target) -> CallAnswer {
    let status = received.status.as_u16();
    let error = CallError::Status {
        to: to.to_string(),
        status,
        expected: request.expected_status,
    };
    CallAnswer {
        status: Some(status),
        body: String::from_utf8_lossy(&received.body).into(),
        error: (!request.takes(status)).then(|| error.failure()),
    }
}

/// The headers of every request. No encoding is accepted, so that the size of a response is its real size.
fn common_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // A version is digits and dots: the conversion cannot fail.
    if let Ok(agent) = HeaderValue::from_str(&user_agent()) {
        headers.insert(header::USER_AGENT, agent);
    }
    headers
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the request for the target of a redirect.
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
