//! Requests to the router, without a port; the cluster is a function.

mod follower;
mod komposers;
mod pages;
mod schema;

use std::{collections::BTreeMap, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use orkestra_core::{
    plan::{KatalogRef, Revised},
    reasons::KatalogReason,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::{
    meta::{KatalogInfo, KatalogView, OperatorView, Readiness},
    runtime::{OperatorStatus, Phase, Problem},
    testing,
};

const NOW: &str = "2031-05-06T07:08:09Z";

/// A cluster that has responses for some paths, including the query.
fn cluster(answers: BTreeMap<&'static str, Value>) -> kube::Client {
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
                    panic!("whole Secrets were asked for: {uri}")
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
    kube::Client::new(service, "default")
}

fn status() -> OperatorStatus {
    OperatorStatus {
        suspended: false,
        plans: None,
        phase: Phase::Running,
        problems: Vec::new(),
        pending: Vec::new(),
        is_blocked: false,
        workers: 3,
        steady_workers: 3,
        instances: 17,
        ready: 16,
        gated: 1,
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
            plan: testing::operator_plan(&reference, entry),
            revision: "reeds-5".into(),
        },
        status: watch::channel(status).1,
        conflict: None,
        told: None,
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
        reference,
    }
}

fn pages(katalogs: Vec<KatalogView>, client: kube::Client) -> Pages {
    let clock = Clock::new(|| NOW.parse().unwrap());
    Pages::new(
        Directory::fixed(katalogs),
        Metrics::new().unwrap(),
        Stage::default(),
        client,
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
        cluster(BTreeMap::new()),
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
async fn readiness_follows_the_stage_and_liveness_does_not() {
    let pages = two_katalogs();
    for path in ["/livez", "/health"] {
        assert_eq!(send(&pages, "GET", path).await.0, 200);
    }
    for path in ["/readyz", "/ready", "/startup"] {
        assert_eq!(send(&pages, "GET", path).await.0, 503, "{path}");
    }
    pages.stage.set_ready();
    for path in ["/readyz", "/ready", "/startup"] {
        assert_eq!(
            send(&pages, "GET", path).await,
            (200, "ok\n".to_owned()),
            "{path}"
        );
    }
    pages.stage.set_stopping();
    pages.stage.set_ready();
    assert_eq!(
        send(&pages, "GET", "/readyz").await,
        (503, "stopping\n".to_owned())
    );
    assert_eq!(send(&pages, "GET", "/startup").await.0, 200);
    assert_eq!(send(&pages, "GET", "/livez").await.0, 200);
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
        "/",
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
async fn the_summary_counts_what_runs() {
    let degraded = OperatorStatus {
        problems: vec![Problem {
            reason: KatalogReason::Forbidden,
            message: "may not list lakes".to_owned(),
        }],
        ..status()
    };
    let katalogs = vec![katalog(
        "marsh",
        "reeds",
        vec![("pond", status()), ("lake", degraded)],
    )];
    let (code, page) = get_json(&pages(katalogs, cluster(BTreeMap::new())), "/katalog").await;
    assert_eq!(code, 200);
    assert_eq!(page["healthy"], false);
    assert_eq!(page["status"], 503);
    assert_eq!(
        page["degradedReason"],
        "lake: Forbidden: may not list lakes"
    );
    assert_eq!(
        (
            &page["total"],
            &page["totalEnabled"],
            &page["totalDegraded"]
        ),
        (&json!(3), &json!(2), &json!(1))
    );
    assert_eq!(
        page["statusCounts"],
        json!({"healthy": 1, "degraded": 1, "started": 0, "pending": 0, "standby": 0})
    );
    assert_eq!(page["namespaces"], json!({"marsh": ["pond", "lake"]}));
    assert_eq!(page["description"], "Ponds and lakes");
    assert_eq!(page["crds"][0]["path"], "/katalog/marsh/reeds/pond");
    assert_eq!(page["crds"][0]["namespace"], "marsh");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_told_of_and_the_process_lives() {
    let nobody = service_fn(|_: Request<kube::client::Body>| async {
        Err::<Response<Body>, _>(std::io::Error::other("connection refused"))
    });
    let gauge = prometheus::IntGauge::new("up", "up").unwrap();
    let reach = Reach::new(
        kube::Client::new(nobody, "default"),
        orkestra_ground::Entropy::seeded(7),
        gauge,
    );
    let one = katalog("marsh", "reeds", vec![("pond", status())]);
    let pages = pages(vec![one], cluster(BTreeMap::new())).reaching(reach.clone());
    pages.stage.set_ready();
    assert_eq!(send(&pages, "GET", "/readyz").await.0, 200);
    for _ in 0..9 {
        reach.heard(true);
    }
    let mut view = reach.view();
    view.wait_for(|view| view.away.is_some()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(90)).await;
    let (code, text) = send(&pages, "GET", "/readyz").await;
    assert_eq!((code, &*text), (503, "the API server cannot be reached\n"));
    assert_eq!(send(&pages, "GET", "/livez").await.0, 200);
    let (code, page) = get_json(&pages, "/katalog").await;
    assert_eq!((code, &page["OrkReady"]), (200, &json!(false)));
    let told = &page["apiServer"];
    assert_eq!(
        (&told["reachable"], &told["awaySeconds"]),
        (&json!(false), &json!(90))
    );
    assert!(
        told["reason"]
            .as_str()
            .unwrap()
            .contains("connection refused"),
        "{told}"
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
    // /katalog/lake/cr/pond: the entry pond of Katalog lake/cr, or the instance pond of the entry lake.
    let both = vec![
        katalog("lake", "cr", vec![("pond", status())]),
        katalog("marsh", "reeds", vec![("lake", status())]),
    ];
    let (code, page) = get_json(
        &pages(both, cluster(BTreeMap::new())),
        "/katalog/lake/cr/pond",
    )
    .await;
    assert_eq!((code, &page["katalog"]), (200, &json!("cr")));
    let short = vec![katalog("marsh", "reeds", vec![("lake", status())])];
    let (code, page) = get_json(
        &pages(short, cluster(BTreeMap::new())),
        "/katalog/lake/cr/pond",
    )
    .await;
    assert_eq!(code, 404, "{page}");
}

#[tokio::test]
async fn health_tells_states_apart() {
    let problem = || {
        vec![Problem {
            reason: KatalogReason::CrdMissing,
            message: "install it".to_owned(),
        }]
    };
    let waiting = OperatorStatus {
        phase: Phase::Waiting,
        problems: problem(),
        started_at: None,
        ..status()
    };
    let cases = [
        (200, "healthy", status()),
        (
            200,
            "started",
            OperatorStatus {
                passes: 0,
                failures: 0,
                ..status()
            },
        ),
        (
            503,
            "degraded",
            OperatorStatus {
                consecutive_failures: 5,
                degraded: Some(crate::runtime::health::Degraded {
                    since: NOW.parse().unwrap(),
                    message: "5 passes in a row failed".to_owned(),
                }),
                ..status()
            },
        ),
        (
            503,
            "degraded",
            OperatorStatus {
                phase: Phase::Waiting,
                problems: problem(),
                ..status()
            },
        ),
        (
            503,
            "degraded",
            OperatorStatus {
                phase: Phase::Deleting,
                ..status()
            },
        ),
        (503, "pending", waiting),
        (
            200,
            "standby",
            OperatorStatus {
                yields_to: Some("lake".to_owned()),
                ..status()
            },
        ),
    ];
    for (code, state, status) in cases {
        let pages = pages(
            vec![katalog("marsh", "reeds", vec![("pond", status)])],
            cluster(BTreeMap::new()),
        );
        let (answered, page) = get_json(&pages, "/katalog/pond/health").await;
        assert_eq!(
            (answered, page["state"].as_str().unwrap()),
            (code, state),
            "{page}"
        );
        assert_eq!(page["status"], code);
    }
    let (_, page) = get_json(&two_katalogs(), "/katalog/lake/health").await;
    assert_eq!(page["uptimeSeconds"], 480);
    assert_eq!(page["errorRate"], 0.25);
    assert_eq!(page["lastReconcile"], "2031-05-06T07:08:00Z");
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
async fn instances_are_listed_with_the_field_that_was_asked_for() {
    let answers = BTreeMap::from([(
        "/apis/water.example/v1/ponds",
        list_of(&[pond("marsh", "one"), pond("delta", "two")], ""),
    )]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        cluster(answers),
    );
    let (code, page) = get_json(&pages, "/katalog/pond/cr?field=spec.fish.0.name").await;
    assert_eq!(code, 200);
    assert_eq!(page["truncated"], false);
    assert_eq!(
        page["items"][0],
        json!({"name": "one", "namespace": "marsh", "phase": "Filled", "ready": true, "age": "3h", "generation": 4,
            "deleting": false, "value": "carp"})
    );
    assert!(
        get_json(&pages, "/katalog/pond/cr").await.1["items"][1]
            .get("value")
            .is_none()
    );
    assert_eq!(get_json(&pages, "/katalog/pond/cr?field=a..b").await.0, 400);
    assert_eq!(get_json(&pages, "/katalog/pond/cr?feild=a").await.0, 400);
    assert_eq!(
        get_json(&pages, "/katalog/pond/cr?namespace=a%2Fb").await.0,
        400
    );
}

#[tokio::test]
async fn a_list_ends_at_five_hundred_instances_and_says_so() {
    let page: Vec<Value> = (0..120)
        .map(|serial| pond("marsh", &format!("p{serial}")))
        .collect();
    // Every page has a next one: without a limit this would never end.
    let answers = BTreeMap::from([("/apis/water.example/v1/ponds", list_of(&page, "more"))]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        cluster(answers),
    );
    let (_, page) = get_json(&pages, "/katalog/pond/cr").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 500);
    assert_eq!(page["truncated"], true);
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_ends_in_504() {
    let service = service_fn(|_: Request<kube::client::Body>| {
        std::future::pending::<Result<Response<kube::client::Body>, std::convert::Infallible>>()
    });
    let client = kube::Client::new(service, "default");
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        client,
    );
    let (code, _) =
        tokio::time::timeout(Duration::from_mins(1), get_json(&pages, "/katalog/pond/cr"))
            .await
            .unwrap();
    assert_eq!(code, 504);
    // Four read and 32 wait: the others are refused.
    let many = (0..50).map(|_| get_json(&pages, "/katalog/pond/cr"));
    let answers = futures::future::join_all(many).await;
    let count = |code: u16| answers.iter().filter(|answer| answer.0 == code).count();
    assert_eq!((count(504), count(503)), (36, 14));
}

#[tokio::test]
async fn an_instance_shows_its_children_and_never_values_of_secrets() {
    let child = |name: &str, mark: &str| {
        json!({"metadata": {"name": name, "namespace": "marsh", "annotations": {"orkestra.orkspace.io/child": mark}},
            "spec": {"replicas": 2}, "status": {"observedGeneration": 1, "readyReplicas": 1},
            "data": {"password": "c2VjcmV0"}})
    };
    let children = list_of(
        &[
            child("one", "Deployment/one"),
            child("copy", "Deployment/one"),
        ],
        "",
    );
    let answers = BTreeMap::from([
        (
            "/apis/water.example/v1/ponds",
            list_of(&[pond("marsh", "one")], ""),
        ),
        (
            "/apis/water.example/v1/namespaces/marsh/ponds/one",
            pond("marsh", "one"),
        ),
        (
            "/apis/apps/v1/namespaces/marsh/deployments",
            children.clone(),
        ),
        ("/api/v1/namespaces/marsh/secrets", children),
    ]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        cluster(answers),
    );
    for path in [
        "/katalog/pond/cr/one",
        "/katalog/marsh/reeds/pond/cr/marsh/one",
    ] {
        let (code, page) = get_json(&pages, path).await;
        assert_eq!(code, 200, "{path}: {page}");
        assert_eq!(page["status"]["phase"], "Filled");
        let deployments = page["children"]["Deployment"].as_array().unwrap();
        assert_eq!(deployments.len(), 1, "a copied mark is no child: {page}");
        assert_eq!(
            (
                &deployments[0]["replicas"],
                &deployments[0]["readyReplicas"]
            ),
            (&json!(2), &json!(1))
        );
        assert_eq!(deployments[0]["ready"], false);
        assert_eq!(page["children"]["Secret"][0]["name"], "one");
        assert!(!page.to_string().contains("c2VjcmV0"), "{page}");
        // A kind that is not served has no children.
        assert_eq!(page["children"]["Ingress"], json!([]));
    }
    assert_eq!(get_json(&pages, "/katalog/pond/cr/delta/one").await.0, 404);
    assert_eq!(get_json(&pages, "/katalog/pond/cr/%2e%2e").await.0, 400);
}

#[tokio::test]
async fn namesakes_in_several_namespaces_are_told_apart() {
    let answers = BTreeMap::from([(
        "/apis/water.example/v1/ponds",
        list_of(&[pond("marsh", "one"), pond("delta", "one")], ""),
    )]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        cluster(answers),
    );
    let (code, page) = get_json(&pages, "/katalog/pond/cr/one").await;
    assert_eq!(code, 409);
    assert_eq!(
        page["candidates"][1],
        "/katalog/marsh/reeds/pond/cr/delta/one"
    );
}

#[tokio::test]
async fn a_taken_port_is_told_in_words() {
    let first = listen::bind(([127, 0, 0, 1], 0).into(), "--listen");
    let first = first.await.unwrap();
    let second = listen::bind(first.local_addr().unwrap(), "--probe-listen");
    let error = second.await.unwrap_err().to_string();
    assert!(
        error.contains("in use") && error.contains("--probe-listen"),
        "{error}"
    );
}
