use std::{convert::Infallible, sync::Arc};

use http::{Method, Request, Response};
use kube::client::Body;
use orkestra_plan::Declaring;
use parking_lot::Mutex;
use serde_json::Value;
use tower::service_fn;

use super::*;

/// The response of a cluster to the patch of a pond: a status code, or none.
type Answer = Option<u16>;

/// Returns a cluster with a deleted Katalog, and the names of the patched or deleted objects. The Katalog operated ponds; by its
/// status, it also operated lakes, and by a stored revision, carps.
fn cluster(patched: Answer) -> (Cluster, Arc<Mutex<Vec<String>>>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let writes = Arc::clone(&written);
    let service = service_fn(move |request: Request<Body>| {
        let writes = Arc::clone(&writes);
        async move {
            let path = request.uri().path().to_owned();
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let is_read = request.method() == Method::GET;
            let (code, answer) = match name.as_str() {
                "north" if patched.is_none() => std::future::pending().await,
                "north" => (patched.unwrap_or_default(), json!({})),
                "waters" => (200, katalog()),
                "kind-pond.water.example" => (200, claim()),
                "controllerrevisions" => (200, list(&[revision()])),
                // With so many objects, patches without a response take longer than a forced release may.
                "ponds" | "lakes" | "carps" if patched.is_none() => {
                    (200, list(&vec![object(); 40]))
                }
                "ponds" | "lakes" | "carps" => (200, list(&[object()])),
                _ => (404, missing()),
            };
            if !is_read && code == 200 {
                writes.lock().push(name);
            }
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    (Cluster::new(kube::Client::new(service, "default")), written)
}

fn missing() -> Value {
    json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404,
        "details": { "name": "kind-lake.water.example", "kind": "leases" } })
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "3" }, "items": items })
}

/// A custom resource.
fn object() -> Value {
    json!({ "apiVersion": "water.example/v1", "kind": "Any", "metadata": {
        "name": "north", "namespace": "shop", "uid": "p1", "resourceVersion": "3", "finalizers": [names::FINALIZER],
    }})
}

fn katalog() -> Value {
    let operated = [("Pond", "ponds"), ("Lake", "lakes"), ("Carp", "carps")];
    let operated = operated.map(|(kind, plural)| {
        json!({ "group": "water.example", "kind": kind, "plural": plural, "version": "v1", "children": [] })
    });
    json!({ "apiVersion": names::API_VERSION, "kind": "Katalog", "spec": {}, "status": { "operated": operated }, "metadata": {
        "name": "waters", "namespace": "shop", "uid": "k1", "resourceVersion": "3", "finalizers": [names::FINALIZER],
        "deletionTimestamp": "2026-03-02T09:00:00Z",
    }})
}

fn claim() -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": { "holderIdentity": "east" }, "metadata": {
        "name": "kind-pond.water.example", "namespace": CLAIMS_NAMESPACE, "uid": "l1", "resourceVersion": "3",
        "annotations": { names::ANNOTATION_KATALOG: "shop/waters", names::ANNOTATION_KATALOG_UID: "k1" },
    }})
}

fn revision() -> Value {
    let types =
        json!({ "group": "water.example", "version": "v1", "kind": "Carp", "plural": "carps" });
    let document = json!({ "apiVersion": names::API_VERSION, "kind": "Katalog", "spec": { "crds": { "carp": { "apiTypes": types } } } });
    json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": document, "metadata": {
        "name": "waters-1", "namespace": "shop", "uid": "r1", "resourceVersion": "3",
        "ownerReferences": [{ "apiVersion": names::API_VERSION, "kind": "Katalog", "name": "waters", "uid": "k1", "controller": true }],
    }})
}

/// Releases the Katalog of the cluster; returns the outcome for each kind, and the names of the written objects.
async fn release(patch: Answer, force: bool) -> (Vec<String>, Vec<String>) {
    let (cluster, written) = cluster(patch);
    let katalog = KatalogRef::new("shop".to_owned(), "waters".to_owned()).of(Declaring::Katalog);
    let outcomes = release_katalog(&cluster, &katalog, force).await.unwrap();
    let outcomes = outcomes.iter().map(|(kind, outcome)| match outcome {
        ReleaseOutcome::Released(released) => format!("{}: {}", kind.kind, released.resources),
        ReleaseOutcome::Claimed(holder) => format!("{}: {holder}", kind.kind),
        ReleaseOutcome::Unproven => format!("{}: unproven", kind.kind),
        ReleaseOutcome::Failed(error) => format!("{}: failed: {error}", kind.kind),
    });
    let written = written.lock().clone();
    (outcomes.collect(), written)
}

const ALL: [&str; 4] = ["north", "north", "waters", "kind-pond.water.example"];

#[tokio::test(start_paused = true)]
async fn only_kinds_that_a_claim_or_a_stored_revision_proves_are_released() {
    let (outcomes, written) = release(Some(200), false).await;
    assert_eq!(outcomes, ["Pond: 1", "Lake: unproven", "Carp: 1"]);
    assert_eq!(written, ALL);
}

#[tokio::test(start_paused = true)]
async fn a_katalog_whose_kinds_fail_stays_unless_it_is_forced() {
    for (answer, force, error, released) in [
        (
            Some(403),
            false,
            "1 objects could not be cleaned up",
            &[][..],
        ),
        (
            Some(403),
            true,
            "1 objects could not be cleaned up",
            &ALL[2..],
        ),
        (None, true, "the release did not end within 60 s", &ALL[2..]),
    ] {
        let (outcomes, written) = release(answer, force).await;
        assert!(outcomes[0].contains(error), "{outcomes:?}");
        assert!(outcomes[2].contains("failed"), "{outcomes:?}");
        assert_eq!(written, released);
    }
}
