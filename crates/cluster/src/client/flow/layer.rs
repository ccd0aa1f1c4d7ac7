//! Flow control as a tower layer: each request waits for its turn, and its response updates the limit.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use tower::{BoxError, Layer, Service};

use super::{Flow, RequestPermit, ResponseSignal, Share};

/// A request that was cancelled after this time counts as not answered in time.
const TIMED_OUT: Duration = Duration::from_secs(10);

/// Source: Kubernetes, API priority and fairness, "Diagnostics".
const LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";
const SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

/// Makes requests wait for their turn: that of the [`RequestPermit`] or [`Share`] in their extensions, or else of the process.
#[derive(Clone, Debug)]
pub struct FlowLayer(Flow);

impl FlowLayer {
    /// A layer for requests of `flow`.
    pub fn new(flow: Flow) -> Self {
        Self(flow)
    }
}

impl<S> Layer<S> for FlowLayer {
    type Service = FlowControlled<S>;

    fn layer(&self, inner: S) -> FlowControlled<S> {
        FlowControlled {
            flow: self.0.clone(),
            process: Share::new("process"),
            inner,
        }
    }
}

/// A service whose requests wait for their turn.
#[derive(Clone, Debug)]
pub struct FlowControlled<S> {
    flow: Flow,
    process: Share,
    inner: S,
}

impl<S, B, A> Service<Request<B>> for FlowControlled<S>
where
    S: Service<Request<B>, Response = Response<A>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<A>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<A>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // Calls the service that is ready; its clone is polled for readiness next time.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        if !counts(request.uri()) {
            return async move { inner.call(request).await.map_err(Into::into) }.boxed();
        }
        let turn = request.extensions_mut().remove::<RequestPermit>();
        let share = request.extensions_mut().remove::<Share>();
        let share = share.unwrap_or_else(|| self.process.clone());
        let flow = self.flow.clone();
        async move {
            let turn = match turn {
                Some(turn) => turn,
                None => flow.turn(&share).await,
            };
            // The duration of a list depends on its size, that of discovery on caches.
            let listening = Listening {
                timed: request.method() != Method::GET,
                turn,
            };
            let answer = inner.call(request).await;
            listening.heard(answer.as_ref().ok());
            answer.map_err(Into::into)
        }
        .boxed()
    }
}

/// Whether a request waits for its turn.
fn counts(uri: &Uri) -> bool {
    let mut words = uri.query().unwrap_or_default().split('&');
    let is_watch = words.any(|word| matches!(word, "watch=true" | "watch=1"));
    !is_watch && !uri.path().starts_with("/apis/coordination.k8s.io/")
}

/// Waits for a response.
struct Listening {
    turn: RequestPermit,
    timed: bool,
}

impl Listening {
    fn heard<A>(&self, answer: Option<&Response<A>>) {
        let heard = match answer {
            None => ResponseSignal::Failing,
            Some(answer) => match answer.status() {
                StatusCode::TOO_MANY_REQUESTS => throttled(answer.headers()),
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                    ResponseSignal::Failing
                }
                _ => ResponseSignal::Fine { timed: self.timed },
            },
        };
        let _ = self.turn.0.heard.set(heard);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // No effect after a response: it is already set.
        if self.turn.0.started.elapsed() >= TIMED_OUT {
            let _ = self.turn.0.heard.set(ResponseSignal::Failing);
        }
    }
}

fn throttled(headers: &HeaderMap) -> ResponseSignal {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let seconds = text(header::RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    tracing::warn!(
        retry_after_s = seconds,
        priority_level = text(LEVEL),
        flow_schema = text(SCHEMA),
        "the API server throttles requests"
    );
    ResponseSignal::Throttled(seconds.map(Duration::from_secs))
}
