//! Probes, and the health of operators and of the process.

use std::time::Duration;

use super::*;

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
async fn the_summary_counts_what_runs() {
    let degraded = OperatorStatus {
        problems: vec![OperatorProblem {
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
    let (code, page) = get_json(&pages(katalogs, &cluster(BTreeMap::new())), "/katalog").await;
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
async fn an_api_server_that_is_away_is_reported_and_the_process_lives() {
    let nobody = service_fn(|_: Request<kube::client::Body>| async {
        Err::<Response<Body>, _>(std::io::Error::other("connection refused"))
    });
    let gauge = prometheus::IntGauge::new("up", "up").unwrap();
    let client = kube::Client::new(nobody, "default");
    let reach = Reach::new(client.clone(), orkestra_ground::Entropy::seeded(7), gauge);
    let one = katalog("marsh", "reeds", vec![("pond", status())]);
    let cluster = Cluster::reaching(client, reach.clone());
    let pages = pages(vec![one], &cluster);
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
    let reported = &page["apiServer"];
    assert_eq!(
        (&reported["reachable"], &reported["awaySeconds"]),
        (&json!(false), &json!(90))
    );
    assert!(
        reported["reason"]
            .as_str()
            .unwrap()
            .contains("connection refused"),
        "{reported}"
    );
}

// Over 60 lines: a table of the states of an operator, and the contents of its health page.
#[tokio::test]
async fn health_distinguishes_states() {
    let problem = || {
        vec![OperatorProblem {
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
                degraded: Some(orkestra_operator::health::Degraded {
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
            &cluster(BTreeMap::new()),
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
