//! Flow control of requests: fair shares, `Retry-After` and cancelled requests, with a server in this process and paused time.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::FutureExt as _;
use http::{Request, Response};
use prometheus::{Histogram, HistogramOpts, IntCounter, IntGauge};
use tokio::time::{advance, sleep, timeout};
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

use super::*;

fn flow() -> Flow {
    Flow::new(|| 0.0)
}

/// Sends a request whose response has a given status.
async fn send(flow: &Flow, path: &str, share: Option<&Share>, answer: Response<()>) -> Duration {
    let server = service_fn(move |_: Request<()>| {
        let answer = answer.clone();
        async move {
            sleep(Duration::from_millis(20)).await;
            Ok::<_, Infallible>(answer)
        }
    });
    let mut request = Request::patch(path).body(()).unwrap();
    if let Some(share) = share {
        request.extensions_mut().insert(share.clone());
    }
    let before = Instant::now();
    let service = FlowLayer::new(flow.clone()).layer(server);
    service.oneshot(request).await.unwrap();
    before.elapsed()
}

fn status(code: u16) -> Response<()> {
    Response::builder().status(code).body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_gives_its_turn_back_before_and_after_it_came() {
    let flow = flow();
    let share = Share::new("a");
    // All requests that one account may have.
    let permits: Vec<RequestPermit> =
        std::iter::from_fn(|| flow.turn(&share).now_or_never()).collect();
    assert_eq!(permits.len(), 24);
    let mut first = Box::pin(flow.turn(&share));
    let mut second = Box::pin(flow.turn(&share));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    drop(permits);
    // The second request has a permit now, but its future is not polled.
    let mut idle = Box::pin(flow.idle());
    assert!(idle.as_mut().now_or_never().is_none());
    drop(second);
    assert!(idle.now_or_never().is_some());
    assert!(flow.idle().now_or_never().is_some());
    assert_eq!(flow.0.state.lock().shares.in_flight(), 0);
    assert!(flow.0.state.lock().waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_429_holds_everybody_back_for_as_long_as_it_says_but_leases_and_watches() {
    let flow = flow();
    let metrics = FlowMetrics {
        in_flight: IntGauge::new("in_flight", "-").unwrap(),
        limit: IntGauge::new("limit", "-").unwrap(),
        throttled: IntCounter::new("throttled", "-").unwrap(),
        wait: Histogram::with_opts(HistogramOpts::new("wait", "-")).unwrap(),
    };
    flow.count_into(metrics.clone());
    let throttled = Response::builder()
        .status(429)
        .header("Retry-After", "3")
        .header("X-Kubernetes-PF-PriorityLevel-UID", "0f")
        .body(());
    send(&flow, "/api/v1/namespaces", None, throttled.unwrap()).await;
    let (a, b) = (Share::new("a"), Share::new("b"));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/x/leases/y";
    let (watch, pods) = ("/api/v1/pods?watch=true", "/api/v1/pods");
    let took = futures::join!(
        send(&flow, pods, Some(&a), status(200)),
        send(&flow, pods, Some(&b), status(200)),
        send(&flow, "/apis/events.k8s.io/v1/events", None, status(201)),
        send(&flow, lease, None, status(200)),
        send(&flow, watch, None, status(200)),
    );
    let (waited, at_once) = (Duration::from_millis(3_020), Duration::from_millis(20));
    assert_eq!(took, (waited, waited, waited, at_once, at_once));
    let counted = (metrics.throttled.get(), metrics.limit.get());
    assert_eq!(counted, (1, 16));
    let counted = (metrics.in_flight.get(), metrics.wait.get_sample_count());
    assert_eq!(counted, (0, 4));
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_floods_does_not_slow_another_one() {
    let flow = flow();
    let flood = Share::new("flood");
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..2_000 {
        let (flow, flood, done) = (flow.clone(), flood.clone(), done.clone());
        tokio::spawn(async move {
            // Its requests fail with 409 and 500 in turn; neither lowers the limit.
            let code = if done.fetch_add(1, Ordering::SeqCst) % 2 == 0 {
                409
            } else {
                500
            };
            send(&flow, "/api/v1/pods", Some(&flood), status(code)).await;
        });
    }
    tokio::task::yield_now().await;
    let calm = Share::new("calm");
    for _ in 0..50 {
        let took = send(&flow, "/api/v1/secrets", Some(&calm), status(200)).await;
        assert_eq!(took, Duration::from_millis(20));
    }
    // All requests of the flooding operator complete; none is lost.
    while flow.0.state.lock().shares.has_waiting() {
        advance(Duration::from_millis(20)).await;
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(done.load(Ordering::SeqCst), 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_after_ten_seconds_shows_an_unhealthy_server() {
    let flow = flow();
    let stuck =
        service_fn(|_: Request<()>| std::future::pending::<Result<Response<()>, Infallible>>());
    let mut service = FlowLayer::new(flow.clone()).layer(stuck);
    let mut ask = |seconds| {
        let request = Request::patch("/api/v1/pods").body(()).unwrap();
        timeout(Duration::from_secs(seconds), service.call(request))
    };
    // A request that is cancelled after a short wait does not show that the server is unhealthy.
    assert!(ask(3).await.is_err());
    assert_eq!(flow.0.state.lock().limit.current(), 32);
    assert!(ask(30).await.is_err());
    assert_eq!(flow.0.state.lock().limit.current(), 16);
    assert_eq!(flow.0.state.lock().shares.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_awaited_before_is_not_awaited_again() {
    let flow = flow();
    let share = Share::new("a");
    let permits: Vec<RequestPermit> =
        std::iter::from_fn(|| flow.turn(&share).now_or_never()).collect();
    let mut permits = permits.into_iter();
    let server = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(status(200)) });
    let service = FlowLayer::new(flow.clone()).layer(server);
    let mut request = Request::get("/api/v1/pods").body(()).unwrap();
    request.extensions_mut().insert(permits.next().unwrap());
    let answered = service.oneshot(request).now_or_never();
    assert!(answered.is_some());
    assert_eq!(flow.0.state.lock().shares.in_flight(), permits.len());
}
