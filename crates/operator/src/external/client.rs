//! Makes calls with limits of time, size and number.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use orkestra_cluster::client::user_agent;
use orkestra_egress::{self as egress, Limits, MOST_REDIRECTS, RedirectError, Request, Target};
use orkestra_engine::reconcile::calls::{CallAnswer, CallFailure, CallRequest};
use tokio::net::TcpStream;

use super::{
    BadUrl, CallError, Guard, Resolver, Variables,
    slots::{CallSlot, CallSlots, Caller},
    variables,
};
use crate::metrics::{CallMetrics, CallResult};

/// How long a call waits for its turn.
const TURN: Duration = Duration::from_secs(30);
/// The longest time for which a server can ask not to be called again.
const MOST_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Makes calls. Cheap to clone; clones share their limits, and each caller has its own share.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    caller: Caller,
}

struct Inner {
    egress: egress::Client,
    variables: Variables,
    places: Arc<CallSlots>,
    metrics: OnceLock<CallMetrics>,
}

/// A response.
struct Received {
    status: StatusCode,
    body: Vec<u8>,
    /// How long the server asks not to be called again.
    retry_after: Option<Duration>,
}

impl Client {
    /// A client that makes the calls that the guard permits.
    pub fn new(guard: Guard, variables: Variables, resolver: Resolver) -> Self {
        Self::over(egress::Client::new(guard, resolver), variables)
    }

    /// A client that makes no calls.
    pub fn closed() -> Self {
        let nothing = Guard::new(Vec::new());
        Self::new(nothing, Variables::default(), Resolver::system())
    }

    pub(crate) fn over(egress: egress::Client, variables: Variables) -> Self {
        let inner = Inner {
            egress,
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

    /// Connects to the host of a URL, if a call to it is permitted, without TLS.
    ///
    /// # Errors
    /// The target is not permitted, or cannot be reached.
    pub async fn connect(&self, url: &str, within: Duration) -> Result<TcpStream, CallError> {
        let target = Target::parse(url)?;
        Ok(self.inner.egress.connect(&target, within).await?)
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
        let entry = entry.and_then(|target| self.inner.egress.guard().entry(target));
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
        let sent = self.request(request, target?)?;
        // A refused call does not wait.
        self.inner.egress.guard().judge_host(&sent.target)?;
        let place = self.place(&sent.target).await?;
        let to = sent.target.to_string();
        let following = self.follow(request, sent, place);
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
        mut sent: Request,
        mut place: CallSlot,
    ) -> Result<(Received, Target), CallError> {
        let limits = Limits {
            patience: request.timeout,
            ..Limits::default()
        };
        let egress = &self.inner.egress;
        let mut from: Option<Target> = None;
        for _ in 0..=MOST_REDIRECTS {
            let response = egress.send_once(&sent, limits.patience).await;
            let response = response.map_err(CallError::from);
            let response = response.map_err(|error| match (&from, error) {
                (Some(from), CallError::Refused(why)) => redirect(from, why),
                (_, error) => error,
            })?;
            let status = response.status;
            let is_meant = request.expected_status == Some(status.as_u16());
            let next = if is_meant {
                None
            } else {
                let next = sent.redirected(status, &response.headers, response.address);
                next.map_err(|why| redirect(&sent.target, why))?
            };
            let Some(next) = next else {
                let retry_after = retry_after(status, &response.headers);
                let body = response.read(request.most, limits).await?;
                let received = Received {
                    status,
                    body,
                    retry_after,
                };
                return Ok((received, sent.target));
            };
            if !next.target.same_origin(&sent.target) {
                let judged = egress.guard().judge_host(&next.target);
                judged.map_err(|why| redirect(&sent.target, why))?;
                drop(place);
                place = self.place(&next.target).await?;
            }
            from = Some(std::mem::replace(&mut sent, next).target);
        }
        let last = from.unwrap_or(sent.target);
        Err(redirect(&last, RedirectError::TooMany))
    }

    /// The request of a call. Its own headers and its token are for the host of its URL alone.
    fn request(&self, request: &CallRequest, target: Target) -> Result<Request, CallError> {
        // The plan permits only five methods.
        let mut sent = Request::new(request.method.parse().unwrap_or_default(), target);
        sent.headers = common_headers();
        if !request.body.is_empty() {
            let json = HeaderValue::from_static("application/json");
            sent.own.insert(header::CONTENT_TYPE, json);
        }
        for (name, value) in &request.headers {
            let unfit = || CallError::Header(name.to_string());
            let key: HeaderName = name.parse().map_err(|_| unfit())?;
            let value = HeaderValue::from_str(value).map_err(|_| unfit())?;
            sent.own.insert(key, value);
        }
        if let Some(token) = variables::expand(&self.inner.variables, &request.token)? {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| CallError::Token)?;
            value.set_sensitive(true);
            sent.own.insert(header::AUTHORIZATION, value);
        }
        sent.body = Bytes::copy_from_slice(request.body.as_bytes());
        Ok(sent)
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
        error: (!request.takes(status)).then(|| CallFailure {
            retry_after: received.retry_after,
            ..error.failure()
        }),
    }
}

/// Returns how long a server asks not to be called again, in seconds; a date is ignored. Source: RFC 9110, section 10.2.3.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let asks = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ]
    .contains(&status);
    let header = headers.get(header::RETRY_AFTER).filter(|_| asks)?;
    let seconds = header.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MOST_RETRY_AFTER))
}

/// The headers of every request. No encoding is accepted, so that the size of a response is its real size.
fn common_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    // A version is digits and dots: the conversion cannot fail.
    if let Ok(agent) = HeaderValue::from_str(&user_agent()) {
        headers.insert(header::USER_AGENT, agent);
    }
    headers
}

fn redirect(from: &Target, why: impl Into<RedirectError>) -> CallError {
    CallError::Redirect {
        from: from.to_string(),
        why: why.into(),
    }
}
