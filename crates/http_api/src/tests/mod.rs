//! Requests to the router of the HTTP API, without a port, and with a cluster in this process.

mod follower;
mod health;
mod instances;
mod komposers;
mod pages;
mod schema;

use std::collections::BTreeMap;

use axum::body::Body;
use http::{Request, Response};
use orkestra_language::reasons::KatalogReason;
use orkestra_plan::{KatalogRef, Revised};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::{ServiceExt, service_fn};

use super::*;
use orkestra_controller::{InForce, KatalogInfo, KatalogView, OperatorView, Readiness};
use orkestra_operator::{OperatorProblem, OperatorStatus, Phase};

const NOW: &str = "2031-05-06T07:08:09Z";

/// Returns a cluster with responses for paths, which may include the query.
fn cluster(answers: BTreeMap<&'static str, Value>) -> Cluster {
    let answers = Arc::new(answers);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let answers = answers.clone();
        async move {
            let uri = request.uri().to_string();
            let metadata_only = request
                .headers()
                .get("accept")
                .is_some_and(|accept| accept.to_str().unwrap().contains("PartialObjectMetadata"));
            let found = answers
                .get(uri.trim_start_matches("http://"))
                .or_else(|| answers.get(request.uri().path()));
            let (code, body) = match found {
                _ if uri.contains("/secrets") && !metadata_only => {
                    panic!("a request for whole Secrets: {uri}")
                }
                Some(body) => (200, body.clone()),
                None => (
                    404,
                    json!({"kind": "Status", "code": 404, "status": "Failure", "reason": "NotFound",
                    "message": "nothing there", "metadata": {}}),
                ),
            };
            let body = kube::client::Body::from(body.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    });
    Cluster::new(kube::Client::new(service, "default"))
}

fn status() -> OperatorStatus {
    OperatorStatus {
        suspended: false,
        plans: None,
        phase: Phase::Running,
        problems: Vec::new(),
        remark: None,
        pending: Vec::new(),
        is_blocked: false,
        workers: 3,
        steady_workers: 3,
        instances: 17,
        ready: 16,
        not_ready: std::collections::BTreeMap::new(),
        gated: 1,
        rollout: orkestra_operator::rollout::Rollout::default(),
        passes: 40,
        failures: 10,
        own_failures: 0,
        consecutive_failures: 0,
        degraded: None,
        last_error: Some("cannot apply Deployment marsh/reeds".to_owned()),
        last_pass: Some("2031-05-06T07:08:00Z".parse().unwrap()),
        started_at: Some("2031-05-06T07:00:09Z".parse().unwrap()),
        autoscaled: false,
        queue_depth: 5,
        queue_max_depth: 80,
        yields_to: None,
    }
}

fn katalog(namespace: &str, name: &str, operators: Vec<(&str, OperatorStatus)>) -> KatalogView {
    let reference = KatalogRef::new(namespace.to_owned(), name.to_owned());
    let operators = operators.into_iter().map(|(entry, status)| OperatorView {
        wanted: Revised {
            plan: orkestra_testkit::operator_plan(&reference, entry),
            revision: "reeds-5".into(),
        },
        status: watch::channel(status).1,
        conflict: None,
        in_force: InForce::Yes,
        reported: None,
    });
    KatalogView {
        kind: reference.kind,
        sources: Vec::new(),
        operators: operators.collect(),
        about: KatalogInfo {
            description: "Ponds and lakes".to_owned(),
            ..KatalogInfo::default()
        },
        plan: None,
        ready: Readiness {
            status: Some(true),
            reason: "Succeeded".into(),
            message: "2 of 2".to_owned(),
        },
        revision: Some("reeds-5".to_owned()),
        disabled: vec!["river".to_owned()],
        settled: true,
        decided: true,
        had_policies: false,
        reference,
    }
}

fn pages(katalogs: Vec<KatalogView>, cluster: &Cluster) -> Pages {
    let clock = Clock::new(|| NOW.parse().unwrap());
    Pages::new(
        Directory::fixed(katalogs),
        Metrics::new().unwrap(),
        Stage::default(),
        cluster,
        clock,
    )
}

fn two_katalogs() -> Pages {
    pages(
        vec![
            katalog(
                "marsh",
                "reeds",
                vec![("pond", status()), ("lake", status())],
            ),
            katalog("delta", "mud", vec![("pond", status())]),
        ],
        &cluster(BTreeMap::new()),
    )
}

async fn send(pages: &Pages, method: &str, path: &str) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .unwrap();
    let response = router(pages.clone()).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn get_json(pages: &Pages, path: &str) -> (u16, Value) {
    let (code, body) = send(pages, "GET", path).await;
    (
        code,
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}")),
    )
}

#[tokio::test]
async fn only_get_is_answered_and_unknown_pages_say_so() {
    let pages = two_katalogs();
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let (code, body) = send(&pages, method, "/katalog/lake").await;
        assert_eq!(code, 405, "{method}");
        assert!(body.contains("only GET"), "{body}");
    }
    for path in [
        "/katalogs",
        "/katalog/lake/cr/a/b/c",
        "/katalog/nothing",
        "/katalog/marsh/reeds/lake/x",
    ] {
        let (code, body) = get_json(&pages, path).await;
        assert_eq!(code, 404, "{path}");
        assert!(
            body["error"].is_string() && body["hint"].is_string(),
            "{path}: {body}"
        );
    }
    assert!(
        get_json(&pages, "/katalog/river").await.1["error"]
            .as_str()
            .unwrap()
            .contains("disabled")
    );
    assert_eq!(
        get_json(&pages, &format!("/katalog/{}", "x".repeat(3000)))
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn a_short_address_answers_when_it_is_unambiguous() {
    let pages = two_katalogs();
    assert_eq!(
        get_json(&pages, "/katalog/lake").await.1["katalog"],
        "reeds"
    );
    let (code, body) = get_json(&pages, "/katalog/pond/health").await;
    assert_eq!(code, 409);
    assert_eq!(
        body["candidates"],
        json!([
            "/katalog/delta/mud/pond/health",
            "/katalog/marsh/reeds/pond/health"
        ])
    );
    for candidate in body["candidates"].as_array().unwrap() {
        assert_eq!(get_json(&pages, candidate.as_str().unwrap()).await.0, 200);
    }
}

#[tokio::test]
async fn where_a_long_and_a_short_address_read_the_same_an_existing_long_one_wins() {
    // `/katalog/lake/cr/pond` is the entry `pond` of the Katalog `lake/cr`, or the instance `pond` of the entry `lake`.
    let both = vec![
        katalog("lake", "cr", vec![("pond", status())]),
        katalog("marsh", "reeds", vec![("lake", status())]),
    ];
    let (code, page) = get_json(
        &pages(both, &cluster(BTreeMap::new())),
        "/katalog/lake/cr/pond",
    )
    .await;
    assert_eq!((code, &page["katalog"]), (200, &json!("cr")));
    let short = vec![katalog("marsh", "reeds", vec![("lake", status())])];
    let (code, page) = get_json(
        &pages(short, &cluster(BTreeMap::new())),
        "/katalog/lake/cr/pond",
    )
    .await;
    assert_eq!(code, 404, "{page}");
}

fn pond(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "water.example/v1", "kind": "Pond",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("u-{namespace}-{name}"), "generation": 4,
            "creationTimestamp": "2031-05-06T04:08:09Z"},
        "spec": {"depth": 12, "fish": [{"name": "carp"}]},
        "status": {"phase": "Filled", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn list_of(items: &[Value], next: &str) -> Value {
    json!({"kind": "PondList", "apiVersion": "water.example/v1", "metadata": {"continue": next}, "items": items})
}

#[tokio::test]
async fn a_taken_port_is_described_in_words() {
    let first = listen::bind(([127, 0, 0, 1], 0).into(), "--listen");
    let first = first.await.unwrap();
    let second = listen::bind(first.local_addr().unwrap(), "--probe-listen");
    let error = second.await.unwrap_err().to_string();
    assert!(
        error.contains("in use") && error.contains("--probe-listen"),
        "{error}"
    );
}
