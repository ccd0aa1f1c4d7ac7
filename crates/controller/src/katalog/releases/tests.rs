//! Deletion of a Katalog with the release annotation: its finalizer is removed even if its kinds cannot be released.

use std::{convert::Infallible, sync::Arc};

use http::{Method, Request, Response};
use kube::client::Body;
use orkestra_cluster::client::flow::Flow;
use orkestra_language::api::names;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::{
    Runtime,
    claims::{ClaimState, Claimant, Standings},
    katalog::KatalogObject,
};
use orkestra_operator::context::Context;

/// The writes that the API server has answered: method and object.
type Writes = Arc<Mutex<Vec<(Method, Value)>>>;

/// Returns a client of a cluster with one pond, whose patches get no response, and without readable revisions.
fn cluster(writes: &Writes) -> kube::Client {
    let writes = Arc::clone(writes);
    let service = service_fn(move |request: Request<Body>| {
        let writes = Arc::clone(&writes);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (path, method) = (parts.uri.path(), parts.method);
            let (code, answer) = match method {
                Method::GET if path.ends_with("/ponds") => (200, ponds()),
                Method::GET if path.ends_with("/controllerrevisions") => (403, json!({})),
                Method::PATCH if path.ends_with("/katalogs/waters") => {
                    let mut katalog = waters(true, &json!([]));
                    katalog["metadata"]["finalizers"] = body["metadata"]["finalizers"].clone();
                    (200, katalog)
                }
                Method::POST if path.ends_with("/events") => (201, body.clone()),
                _ => std::future::pending().await,
            };
            if method != Method::GET {
                writes.lock().push((method, body));
            }
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    kube::Client::new(service, "default")
}

fn ponds() -> Value {
    let metadata = json!({ "name": "north", "namespace": "shop", "uid": "p1", "resourceVersion": "3", "finalizers": [names::FINALIZER] });
    json!({ "apiVersion": "water.example/v1", "kind": "PondList", "metadata": { "resourceVersion": "3" },
        "items": [{ "apiVersion": "water.example/v1", "kind": "Pond", "metadata": metadata }] })
}

/// Returns the deleted Katalog `shop/waters`, which operated these kinds.
fn waters(is_let_go: bool, operated: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "Katalog",
        "metadata": {
            "name": "waters", "namespace": "shop", "uid": "k1", "resourceVersion": "1", "finalizers": [names::FINALIZER],
            "creationTimestamp": "2026-03-01T09:00:00Z", "deletionTimestamp": "2026-03-02T09:00:00Z",
            "annotations": { names::ANNOTATION_RELEASE: is_let_go.to_string() },
        },
        "spec": {}, "status": { "operated": operated },
    })
}

/// A pond as the status records it.
fn pond() -> Value {
    json!({ "group": "water.example", "kind": "Pond", "plural": "ponds", "version": "v1", "children": [] })
}

/// Returns the controller of the Katalog `object`, which has the claim on ponds.
fn katalog(object: Value, writes: &Writes) -> KatalogController {
    let context = Context::new(cluster(writes), &Flow::new(|| 0.0)).unwrap();
    let shared = Runtime::new(Arc::new(context)).shared;
    let object = Arc::new(KatalogObject::new(serde_json::from_value(object).unwrap()));
    let claim = ClaimState::Ours(Claimant {
        katalog: object.reference(),
        uid: "k1".to_owned(),
    });
    let standings = Standings::of_test([(GroupKind::parse("Pond.water.example"), claim)]);
    let katalog = KatalogController::new(&shared, &object);
    let supervisor = &shared.supervisor;
    supervisor.standings().send_replace(Arc::new(standings));
    let duty = Arc::clone(supervisor);
    tasks::named(Task::Duty, "").start(async move { duty.follow_leadership().await });
    katalog
}

/// Processes the Katalog for `period`, as its task does.
async fn process(katalog: &mut KatalogController, period: Duration) {
    let end = Instant::now() + period;
    while Instant::now() < end {
        // Gives the supervisor time to process the claims.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let again = katalog.act().await.unwrap_or(end).min(end);
        tokio::select! {
            Some(ended) = katalog.releases.next_ended() => katalog.note_release(ended),
            () = tokio::time::sleep_until(again) => {}
        }
    }
}

/// Returns the finalizers of the writes of the Katalog, and the notes of Events.
fn written(writes: &Writes) -> (Vec<Value>, Vec<Value>) {
    let writes = writes.lock();
    let of = |of: Method| writes.iter().filter(move |(method, _)| *method == of);
    let finalizers = of(Method::PATCH).map(|(_, body)| body["metadata"]["finalizers"].clone());
    let notes = of(Method::POST).map(|(_, body)| body["message"].clone());
    (finalizers.collect(), notes.collect())
}

#[tokio::test(start_paused = true)]
async fn a_release_that_runs_is_aborted_after_the_grace_if_the_annotation_is_set() {
    for (is_let_go, finalizers) in [(false, vec![]), (true, vec![json!([])])] {
        let writes = Writes::default();
        let mut katalog = katalog(waters(is_let_go, &json!([pond()])), &writes);
        process(&mut katalog, GRACE.saturating_sub(Duration::from_secs(1))).await;
        assert_eq!(katalog.releases.tasks.len(), 1, "the release has ended");
        assert_eq!(written(&writes), (vec![], vec![]));
        process(&mut katalog, Duration::from_secs(2)).await;
        assert_eq!(written(&writes).0, finalizers);
        assert_eq!(katalog.releases.are_over(), is_let_go);
        let why = "finalizers and labels of Orkestra may remain on ponds.water.example and their children: \
                   the release did not end within 10 s";
        let notes = if is_let_go { vec![json!(why)] } else { vec![] };
        assert_eq!(written(&writes).1, notes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_claim_is_abandoned_after_the_grace() {
    let writes = Writes::default();
    let mut katalog = katalog(waters(true, &json!([pond()])), &writes);
    let supervisor = &katalog.shared.supervisor;
    let standings = Standings::of_test([]);
    supervisor.standings().send_replace(Arc::new(standings));
    let pond = GroupKind::parse("Pond.water.example");
    katalog.operated.add_declared([pond].into());
    process(&mut katalog, GRACE.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(written(&writes), (vec![], vec![]));
    process(&mut katalog, Duration::from_secs(2)).await;
    assert_eq!(written(&writes).0, [json!([])]);
}

#[tokio::test(start_paused = true)]
async fn a_katalog_whose_revisions_cannot_be_read_is_let_go_by_its_annotation() {
    let writes = Writes::default();
    let mut unrecorded = pond();
    unrecorded.as_object_mut().unwrap().remove("children");
    let mut katalog = katalog(waters(true, &json!([unrecorded])), &writes);
    process(&mut katalog, Duration::from_secs(1)).await;
    let (finalizers, notes) = written(&writes);
    assert_eq!(finalizers, [json!([])]);
    let note = notes[0].as_str().unwrap();
    assert!(note.contains("cannot list controllerrevisions"), "{note}");
}
