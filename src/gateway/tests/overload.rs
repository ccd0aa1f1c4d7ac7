//! Overload of the webhook routes: the limits of requests per operator, and of the memory for request bodies.

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, StatusCode, header},
    response::Response,
};
use http_body_util::BodyExt as _;
use orkestra_cluster::client::flow::Flow;
use serde_json::{Value, json};
use tower::{ServiceExt as _, service_fn};

use super::super::{queues::QUEUE_LENGTH, *};
use crate::{
    meta::{KatalogInfo, KatalogView, Readiness},
    testing,
};

const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  security: { webhooks: { admission: { enabled: true } } }
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      validation: { rules: [{ field: spec.tier, notEquals: deep, message: too deep }] }
    lake:
      apiTypes: { group: water.example, version: v1, kind: Lake, plural: lakes }
      validation: { rules: [{ field: spec.tier, notEquals: deep, message: too deep }] }
";

/// Returns a gateway with two operators, whose API server does not respond, and the full name of the first operator.
fn gateway() -> (Gateway, String) {
    let silent = service_fn(|_: Request<kube::client::Body>| async {
        std::future::pending::<Result<Response<Body>, std::convert::Infallible>>().await
    });
    let client = kube::Client::new(silent, "default");
    let context = Context::new(client, &Flow::new(|| 0.0)).unwrap();
    let plan = testing::compiled(KATALOG);
    let pond = plan.operators.iter().find(|one| one.name == "pond");
    let pond = pond.unwrap().full_name();
    let view = KatalogView {
        reference: plan.katalog.clone(),
        kind: plan.katalog.kind,
        sources: Vec::new(),
        operators: Vec::new(),
        about: KatalogInfo::default(),
        plan: Some(Arc::new(plan)),
        ready: Readiness {
            status: Some(true),
            reason: "Running".into(),
            message: String::new(),
        },
        revision: None,
        disabled: Vec::new(),
        settled: true,
    };
    let katalogs = (Directory::fixed(vec![view]), watch::channel(true).1);
    let cluster = context.cluster.clone();
    let gateway = Gateway::new(super::service(), Arc::new(context), cluster, katalogs);
    gateway.refresh();
    (gateway, pond)
}

fn review(plural: &str, tier: &str) -> String {
    let kind = if plural == "ponds" { "Pond" } else { "Lake" };
    json!({ "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "name": "n", "namespace": "x",
        "kind": { "group": "water.example", "version": "v1", "kind": kind },
        "resource": { "group": "water.example", "version": "v1", "resource": plural },
        "userInfo": { "username": "eve" },
        "object": {
            "apiVersion": "water.example/v1", "kind": kind,
            "metadata": { "name": "n", "namespace": "x" }, "spec": { "tier": tier },
        },
    } })
    .to_string()
}

async fn post(router: &Router, body: impl Into<Body>) -> Response {
    let request = Request::post("/validate").body(body.into()).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn is_allowed(response: Response) -> bool {
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    review["response"]["allowed"].as_bool().unwrap()
}

fn assert_asked_to_retry(response: &Response) {
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
}

#[tokio::test(start_paused = true)]
async fn over_the_limit_of_one_operator_it_gets_429_and_others_get_their_verdict() {
    let (gateway, pond) = gateway();
    let router = routes::router(gateway.clone());
    assert!(!is_allowed(post(&router, review("ponds", "deep")).await).await);
    // Slow reviews of ponds occupy all seats of the operator.
    let share = cores();
    let mut slow = Vec::new();
    for _ in 0..share {
        slow.push(gateway.queues.seat(&pond).await.unwrap());
    }
    let send = || {
        let router = router.clone();
        tokio::spawn(async move { post(&router, review("ponds", "x")).await })
    };
    let flood: Vec<_> = (0..QUEUE_LENGTH).map(|_| send()).collect();
    while gateway.queues.waiting(&pond) < QUEUE_LENGTH {
        tokio::task::yield_now().await;
    }
    let start = tokio::time::Instant::now();
    for _ in 0..100 {
        assert_asked_to_retry(&post(&router, review("ponds", "x")).await);
    }
    // Reviews of the other operator are answered without delay.
    assert!(is_allowed(post(&router, review("lakes", "x")).await).await);
    assert!(!is_allowed(post(&router, review("lakes", "deep")).await).await);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(gateway.queues.waiting(&pond), QUEUE_LENGTH);
    // No request waits for the timeout of the API server: after a second, the response asks for a retry.
    for waiting in flood {
        assert_asked_to_retry(&waiting.await.unwrap());
    }
    assert_eq!(start.elapsed().as_secs(), 1);
    drop(slow);
    assert!(is_allowed(post(&router, review("ponds", "x")).await).await);
}

#[tokio::test(start_paused = true)]
async fn bodies_take_a_limited_amount_of_memory() {
    let (gateway, _) = gateway();
    let router = routes::router(gateway.clone());
    let all = u32::try_from(routes::BODIES_KIB).unwrap();
    let bodies = &gateway.bodies;
    // One MiB is left: enough for a body with a small `Content-Length`, but not for one without, which may have three MiB.
    let most = bodies.clone().acquire_many_owned(all - 1024).await.unwrap();
    assert!(is_allowed(post(&router, review("lakes", "x")).await).await);
    let unreported = || {
        let chunk = Ok::<_, std::convert::Infallible>(Bytes::from(review("lakes", "x")));
        Body::from_stream(futures::stream::iter([chunk]))
    };
    assert_asked_to_retry(&post(&router, unreported()).await);
    let rest = bodies.clone().acquire_many_owned(1024).await.unwrap();
    assert_asked_to_retry(&post(&router, review("lakes", "x")).await);
    drop((most, rest));
    assert!(is_allowed(post(&router, unreported()).await).await);
    let too_large = post(&router, vec![b' '; 3 * 1024 * 1024 + 1]).await;
    assert_eq!(too_large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    // Every response has released its memory.
    assert_eq!(bodies.available_permits(), routes::BODIES_KIB);
}
