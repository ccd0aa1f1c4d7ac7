//! Overload of the webhook routes: the limits of requests per operator, and of the memory for request bodies.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, StatusCode, header},
    response::Response,
};
use http_body_util::BodyExt as _;
use orkestra_cluster::client::flow::Flow;
use orkestra_plan::{OperatorPlan, Revised};
use serde_json::{Value, json};
use tower::{ServiceExt as _, service_fn};

use super::super::{queues::QUEUE_LENGTH, *};
use orkestra_controller::{InForce, KatalogInfo, KatalogView, OperatorView, Readiness};
use orkestra_operator::OperatorStatus;

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
    let plan = orkestra_testkit::compiled(KATALOG);
    let pond = plan.operators.iter().find(|one| one.name == "pond");
    let pond = pond.unwrap().full_name();
    let view = KatalogView {
        reference: plan.katalog.clone(),
        kind: plan.katalog.kind,
        sources: Vec::new(),
        operators: plan.operators.iter().map(in_force).collect(),
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
        decided: true,
        had_policies: false,
    };
    let katalogs = (Directory::fixed(vec![view]), watch::channel(true).1);
    let cluster = context.cluster.clone();
    let gateway = Gateway::new(super::service(), Arc::new(context), cluster, katalogs);
    gateway.refresh();
    (gateway, pond)
}

fn in_force(operator: &Arc<OperatorPlan>) -> OperatorView {
    OperatorView {
        wanted: Revised {
            plan: Arc::clone(operator),
            revision: "r-1".into(),
        },
        status: watch::channel(OperatorStatus::default()).1,
        conflict: None,
        in_force: InForce::Yes,
        reported: None,
    }
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
    let share = cores().max(LEAST_SEATS / 2);
    let queues = &gateway.reviews.queues;
    let mut slow = Vec::new();
    for _ in 0..share {
        slow.push(queues.seat(&pond, [10, 0, 0, 1].into()).await.unwrap());
    }
    let send = || {
        let router = router.clone();
        tokio::spawn(async move { post(&router, review("ponds", "x")).await })
    };
    let flood: Vec<_> = (0..QUEUE_LENGTH).map(|_| send()).collect();
    while queues.waiting(&pond) < QUEUE_LENGTH {
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
    assert_eq!(queues.waiting(&pond), QUEUE_LENGTH);
    // No request waits for the timeout of the API server: after a second, the response asks for a retry.
    for waiting in flood {
        assert_asked_to_retry(&waiting.await.unwrap());
    }
    assert_eq!(start.elapsed().as_secs(), 1);
    drop(slow);
    assert!(is_allowed(post(&router, review("ponds", "x")).await).await);
}

#[tokio::test(start_paused = true)]
async fn announced_bodies_reserve_nothing_and_conversions_have_a_budget_of_their_own() {
    let (gateway, _) = gateway();
    let router = routes::router(gateway.clone());
    let bodies = &gateway.reviews.bodies;
    // Thirty requests announce 3 MiB each and send a few bytes.
    let silent = || {
        let first = Ok::<_, std::convert::Infallible>(Bytes::from_static(b"{"));
        let rest = futures::stream::pending();
        Body::from_stream(futures::StreamExt::chain(
            futures::stream::iter([first]),
            rest,
        ))
    };
    let send = || {
        let (router, body) = (router.clone(), silent());
        tokio::spawn(async move { post(&router, body).await })
    };
    let held: Vec<_> = (0..30).map(|_| send()).collect();
    while bodies.free() > routes::BODIES_BYTES - 30 {
        tokio::task::yield_now().await;
    }
    assert!(is_allowed(post(&router, review("lakes", "x")).await).await);
    for silent in held {
        assert_eq!(silent.await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }
    let too_large = post(&router, vec![b' '; 3 * 1024 * 1024 + 1]).await;
    assert_eq!(too_large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    // Peers that fill all memory of reviews leave that of conversions.
    let mut full = Vec::new();
    for (last, _) in (0..22).enumerate() {
        let peer = [10, 0, 0, u8::try_from(last / 10).unwrap()].into();
        let body = Body::from(vec![b' '; 3 * 1024 * 1024]);
        full.extend(bodies.read(peer, body, 3 * 1024 * 1024).await.ok());
    }
    assert!(bodies.free() < 3 * 1024 * 1024);
    let padded = format!("{}{}", " ".repeat(2 * 1024 * 1024), review("lakes", "x"));
    assert_asked_to_retry(&post(&router, padded).await);
    let conversion = json!({ "kind": "ConversionReview", "request": {
        "uid": "u", "desiredAPIVersion": "other.example/v1", "objects": [],
    } });
    let request = Request::post("/convert").body(Body::from(conversion.to_string()));
    let converted = router.clone().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(converted.status(), StatusCode::OK);
    // Every response has released its memory.
    drop(full);
    assert_eq!(bodies.free(), routes::BODIES_BYTES);
}
