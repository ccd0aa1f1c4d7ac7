//! The pages of a replica that is not the leader.

use orkestra_cluster::gate::Gate;
use orkestra_language::api::OperatorStatus as Row;

use super::*;
use orkestra_cluster::leader_election::LeaderStatus;

fn row() -> Row {
    Row {
        name: "pond".to_owned(),
        state: "Running".to_owned(),
        workers: 6,
        instances: 17,
        ready: 9,
        ..Row::default()
    }
}

/// Returns the pages of a follower. Its own operator is on standby; `reported` is the operator's status from the leader.
fn follower(reported: Option<Row>) -> (Pages, Leadership) {
    let rests = OperatorStatus {
        phase: Phase::Standby,
        workers: 0,
        ready: 0,
        passes: 0,
        failures: 0,
        started_at: None,
        ..status()
    };
    let mut katalog = katalog("marsh", "reeds", vec![("pond", rests)]);
    katalog.operators[0].reported = reported.map(Arc::new);
    let leadership = Leadership::candidate("b_2".into(), Gate::default());
    let pages = pages(vec![katalog], &cluster(BTreeMap::new()));
    (pages.with_leadership(leadership.clone()), leadership)
}

fn follows() -> LeaderStatus {
    LeaderStatus {
        leader: Some("a_1".into()),
        heard: true,
        ..LeaderStatus::default()
    }
}

#[tokio::test]
async fn a_follower_shows_who_leads_and_what_that_says_and_of_itself_only_what_it_knows() {
    let (pages, leadership) = follower(Some(row()));
    leadership.publish(follows());
    let (_, page) = get_json(&pages, "/katalog").await;
    for (field, expected) in [
        ("isKonductor", json!(false)),
        ("leader", json!("a_1")),
        ("identity", json!("b_2")),
        ("electionProblem", Value::Null),
        ("healthy", json!(true)),
    ] {
        assert_eq!(page[field], expected, "{field}");
    }
    let crd = &page["crds"][0];
    let shown = ["state", "workers", "resourceCount", "readyCount"].map(|field| crd[field].clone());
    assert_eq!(shown, [json!("healthy"), json!(6), json!(17), json!(9)]);
    let (code, health) = get_json(&pages, "/katalog/pond/health").await;
    assert_eq!(code, 200);
    for field in ["totalReconciles", "errorRate", "started", "gated"] {
        assert_eq!(health[field], Value::Null, "{field}");
    }
    assert_eq!(health["isKonductor"], false);
}

#[tokio::test]
async fn a_follower_is_never_pending_for_resting() {
    for (reported, state, code) in [
        (None, "standby", 200),
        (
            Some(Row {
                state: "Waiting".to_owned(),
                reason: "CrdMissing".to_owned(),
                ..row()
            }),
            "pending",
            503,
        ),
        (
            Some(Row {
                reason: "Forbidden".to_owned(),
                ..row()
            }),
            "degraded",
            503,
        ),
        (Some(Row { ready: 0, ..row() }), "started", 200),
    ] {
        let (pages, leadership) = follower(reported);
        leadership.publish(follows());
        let (answer, health) = get_json(&pages, "/katalog/pond/health").await;
        assert_eq!((answer, &health["state"]), (code, &json!(state)));
    }
}

#[tokio::test]
async fn a_process_is_ready_once_it_is_warm_and_knows_the_lease_with_any_leader() {
    let (pages, leadership) = follower(Some(row()));
    let ready = async || send(&pages, "GET", "/readyz").await;
    assert_eq!(ready().await, (503, "starting\n".to_owned()));
    pages.stage.set_ready();
    assert_eq!(ready().await.0, 503, "the Lease is unknown");
    leadership.publish(follows());
    assert_eq!(ready().await, (200, "ok\n".to_owned()));
    leadership.publish(LeaderStatus {
        problem: Some("cannot update Lease".into()),
        ..follows()
    });
    let (code, text) = ready().await;
    assert_eq!(code, 503);
    assert!(text.contains("cannot update Lease"), "{text}");
}
