//! The last check before a write leaves the process: a layer around every request of a [`kube::Client`].
//!
//! ```text
//!  kube::Client ─► Gate ─┬─ GET, HEAD, reviews ─────────────────► authentication ─► retries ─► connection
//!                        └─ anything else, while leading ───────►
//!                                        └─ at each poll: lease lost? dropped, and `NotLeading`
//! ```
//!
//! A process can be suspended at any moment for any time: by a signal, by a hypervisor, with the machine, or by CPU starvation.
//! It may have lost the lease when it resumes. So a clock that counts all of that time ([`BootClock`]) is read each time the
//! request is polled: a request that waits for a connection, a token or a retry is also dropped before it is sent.
//!
//! A connection is a task of its own, which may hold a request that it has not written yet. So the body checks the gate too, when
//! the connection takes it ([`GatedBody`]); the API server does nothing without the body. A request that has left the process is
//! covered by the margin between `Timing::renew_deadline` of leader election and the duration of the lease.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request};
use http_body::{Body, Frame, SizeHint};
use orkestra_ground::{BootClock, Moment};
use tower::{BoxError, Layer, Service};

/// Why a write was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not lead, so it writes nothing")]
pub struct NotLeading;

/// Open while this process leads. Clones share the state; a new gate is closed.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Keeps counting while the process is stopped or the machine is suspended.
    clock: BootClock,
    /// The time on that clock until which the gate is open, in nanoseconds; 0 is closed.
    open_until: AtomicU64,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new(BootClock::system())
    }
}

impl Gate {
    /// A closed gate that uses `clock`.
    pub fn new(clock: BootClock) -> Self {
        Self(Arc::new(Inner {
            clock,
            open_until: AtomicU64::new(0),
        }))
    }

    /// The gate's clock.
    pub fn clock(&self) -> &BootClock {
        &self.0.clock
    }

    /// Opens the gate until `until`, or closes it; replaces the previous setting.
    pub fn set(&self, until: Option<Moment>) {
        let nanos = until.map_or(0, |until| until.up().as_nanos());
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.0.open_until.store(nanos, Ordering::SeqCst);
    }

    /// Whether a write may start now.
    pub fn is_open(&self) -> bool {
        let open_until = Duration::from_nanos(self.0.open_until.load(Ordering::SeqCst));
        self.0.clock.now().up() < open_until
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated {
            gate: self.clone(),
            inner,
        }
    }
}

/// A service whose writes pass a [`Gate`].
#[derive(Clone, Debug)]
pub struct Gated<S> {
    gate: Gate,
    inner: S,
}

impl<S, B> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>, Error: Into<BoxError>>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = GatedRequest<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if reads || is_review(request.uri().path()) {
            return GatedRequest {
                gate: None,
                inner: Some(Box::pin(self.inner.call(request))),
            };
        }
        request.extensions_mut().insert(self.gate.clone());
        // A service may start to send as soon as it is called.
        let inner = self
            .gate
            .is_open()
            .then(|| Box::pin(self.inner.call(request)));
        GatedRequest {
            gate: Some(self.gate.clone()),
            inner,
        }
    }
}

/// True for reviews of authentication and authorization: the API server stores nothing for them.
fn is_review(path: &str) -> bool {
    path.starts_with("/apis/authentication.k8s.io/")
        || path.starts_with("/apis/authorization.k8s.io/")
}

/// A request on its way through a [`Gate`].
#[derive(Debug)]
pub struct GatedRequest<F> {
    /// The gate to pass; `None` for reads.
    gate: Option<Gate>,
    /// `None` once the request was refused.
    inner: Option<Pin<Box<F>>>,
}

impl<F, T, E> Future for GatedRequest<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            self.inner = None;
        }
        match &mut self.inner {
            Some(inner) => inner.as_mut().poll(context).map_err(Into::into),
            None => Poll::Ready(Err(NotLeading.into())),
        }
    }
}

/// The body of a request; if the request passed a [`Gate`], frames are returned only while the gate is open.
#[derive(Debug)]
pub struct GatedBody<B> {
    gate: Option<Gate>,
    body: B,
}

impl<B> GatedBody<B> {
    /// Wraps the request's body with the gate that the request has passed, if any.
    pub fn of(request: Request<B>) -> Request<Self> {
        let gate = request.extensions().get::<Gate>().cloned();
        request.map(|body| Self { gate, body })
    }
}

impl<B> Body for GatedBody<B>
where
    B: Body<Error: Into<BoxError>> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return Poll::Ready(Some(Err(NotLeading.into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};
    use tower::{ServiceExt, service_fn};

    use super::*;

    fn request(method: Method) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        request
    }

    /// Sends a request through the gate to a service that waits for `takes` first. Returns the outcome and the number of requests
    /// sent.
    async fn send(gate: &Gate, method: Method, takes: Duration) -> (Result<(), BoxError>, u64) {
        let sent = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&sent);
        let service = service_fn(move |_: Request<()>| {
            let count = Arc::clone(&count);
            async move {
                tokio::time::sleep(takes).await;
                count.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>(())
            }
        });
        let answer = gate.layer(service).oneshot(request(method)).await;
        (answer, sent.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn reads_always_pass_and_writes_only_until_the_lease_ends() {
        let gate = Gate::new(BootClock::of_timers());
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let (answer, sent) = send(&gate, method.clone(), Duration::ZERO).await;
            assert!(answer.unwrap_err().is::<NotLeading>(), "{method}");
            assert_eq!(sent, 0, "{method}");
        }
        let (answer, sent) = send(&gate, Method::GET, Duration::from_mins(1)).await;
        assert!(answer.is_ok() && sent == 1);

        gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        let (answer, sent) = send(&gate, Method::PATCH, Duration::from_secs(5)).await;
        assert!(answer.is_ok() && sent == 1);
        gate.set(None);
        assert!(send(&gate, Method::PATCH, Duration::ZERO).await.0.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn reviews_pass_whoever_leads_for_they_store_nothing() {
        let gate = Gate::default();
        for (path, passes) in [
            ("/apis/authentication.k8s.io/v1/tokenreviews", true),
            ("/apis/authorization.k8s.io/v1/subjectaccessreviews", true),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles", false),
            ("/api/v1/namespaces/one/serviceaccounts/one/token", false),
            ("/apis/authorization.k8s.io.example.org/v1/ponds", false),
        ] {
            let service = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(()) });
            let mut post = request(Method::POST);
            *post.uri_mut() = path.parse().unwrap();
            let answer = gate.layer(service).oneshot(post).await;
            assert_eq!(answer.is_ok(), passes, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_for_its_connection_when_the_lease_ends_is_not_sent() {
        let gate = Gate::new(BootClock::of_timers());
        gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        let (answer, sent) = send(&gate, Method::PATCH, Duration::from_secs(7)).await;
        assert!(answer.unwrap_err().is::<NotLeading>());
        assert_eq!(sent, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_a_connection_has_not_written_when_the_lease_ends_is_not_written() {
        let gate = Gate::new(BootClock::of_timers());
        gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        let server = service_fn(|request: Request<Full<Bytes>>| async move {
            Ok::<_, Infallible>(GatedBody::of(request).into_body())
        });
        let hold = async |method| {
            let mut request = Request::new(Full::new(Bytes::from("{}")));
            *request.method_mut() = method;
            gate.layer(server).oneshot(request).await.unwrap()
        };
        let in_time = hold(Method::PATCH).await;
        assert_eq!(in_time.size_hint().exact(), Some(2));
        assert_eq!(in_time.collect().await.unwrap().to_bytes(), "{}");
        let (late, read) = (hold(Method::PATCH).await, hold(Method::GET).await);
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert!(late.collect().await.unwrap_err().is::<NotLeading>());
        assert_eq!(read.collect().await.unwrap().to_bytes(), "{}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_keeps_writes_going_that_wait() {
        let gate = Gate::new(BootClock::of_timers());
        gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        let renew = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        };
        let ((answer, sent), ()) =
            tokio::join!(send(&gate, Method::PUT, Duration::from_secs(8)), renew);
        assert!(answer.is_ok() && sent == 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_through_its_lease_writes_nothing_when_it_wakes() {
        let up = Arc::new(AtomicU64::new(1000));
        let read = Arc::clone(&up);
        let clock =
            BootClock::new(move || Moment::at(Duration::from_secs(read.load(Ordering::SeqCst))));
        let gate = Gate::new(clock);
        gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        let sleep = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            // Tokio's timers do not advance during suspend.
            up.fetch_add(3600, Ordering::SeqCst);
        };
        let write = send(&gate, Method::PATCH, Duration::from_millis(20));
        let ((answer, sent), ()) = tokio::join!(write, sleep);
        assert!(answer.unwrap_err().is::<NotLeading>());
        assert_eq!(sent, 0);
        assert!(!gate.is_open());
    }
}
