//! `deletionPolicy: delete`: custom resources are deleted before their Katalog, while its operators run.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, ObjectMeta};
use orkestra_cluster::requests::Cluster;
use orkestra_engine::reconcile::inventory::DeclaredKinds;
use orkestra_language::api::{
    OperatedKind,
    conditions::{READY, cut},
};
use orkestra_plan::{self, GroupKind};
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::{
    super::{
        calls::{RequestError, ServedResource},
        release,
    },
    Existence, KatalogController,
};

/// The delay before the next check whether the last one is gone.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The maximum length of the text about the first remaining custom resource: it contains user input.
const FIRST_BYTES: usize = 1024;

impl KatalogController {
    /// True if the Katalog can be torn down: it is being deleted, and the custom resources to delete with it are gone.
    pub(crate) fn is_leaving(&self) -> bool {
        let deletes = self.object.document.deletes && !self.object.is_release_requested;
        self.is_deleting() && (self.existence != Existence::Present || !deletes)
    }

    /// Deletes the custom resources that the operators manage; if some are left, returns when to check again. If no revision
    /// can run, no operator deletes their children: they are deleted and released.
    ///
    /// It covers the kinds that this Katalog has operated and still has the claims of, whatever it declares.
    ///
    /// # Errors
    /// The first refused request; everything else was tried nevertheless, and the next call tries all of it again.
    pub(crate) async fn clear(&mut self) -> Result<Option<Instant>, RequestError> {
        self.weigh_leftovers().await?;
        if !self.operated.is_empty() && self.running.is_none() && !self.looked {
            self.load_last_good().await?;
        }
        self.claim();
        let (wanted, supervisor) = (self.wanted_kinds(), &self.shared.supervisor);
        let held = supervisor.held_by(&self.reference);
        let cluster = &self.shared.context.cluster;
        let (mut left, mut unclaimed, mut first_refused) = (BTreeMap::new(), false, None);
        for (of, kind) in self.operated.iter() {
            // Objects of built-in kinds existed before the Katalog, and are released.
            if orkestra_plan::built_in(of).is_some() {
                continue;
            }
            if held.contains(of) {
                let attempt = delete_all(cluster, kind).await;
                left.extend(attempt.left.map(|rest| (of.clone(), rest)));
                first_refused = first_refused.or(attempt.refused);
                if first_refused.is_some() && !cluster.reach().is_up() {
                    break;
                }
            } else if wanted.contains(of) && !supervisor.is_foreign(of) {
                unclaimed = true;
            }
        }
        self.waits = (!left.is_empty() || unclaimed).then(|| waiting(&left));
        if let Some(refused) = first_refused {
            return Err(refused);
        }
        if self.waits.is_none() || (self.running.is_none() && !unclaimed) {
            self.existence = Existence::Cleared;
            return Ok(None);
        }
        Ok(Some(Instant::now() + LOOK_AGAIN))
    }
}

/// Deletes our custom resources of a kind. One that cannot be deleted does not keep the others from being tried.
async fn delete_all(cluster: &Cluster, kind: &OperatedKind) -> DeletionAttempt {
    let declared = DeclaredKinds::recorded(kind);
    let is_ours = |meta: &ObjectMeta| release::is_operated(meta, false);
    let (known, ours) = match release::list(cluster, kind, &declared, &is_ours).await {
        Ok(Some(found)) => found,
        Ok(None) => return DeletionAttempt::default(),
        Err(error) => {
            return DeletionAttempt {
                left: None,
                refused: Some(error),
            };
        }
    };
    let mut refused = None;
    for meta in ours.iter().filter(|meta| meta.deletion_timestamp.is_none()) {
        let (name, uid) = (meta.name.as_deref(), meta.uid.as_deref());
        let (name, uid) = (name.unwrap_or_default(), uid.unwrap_or_default());
        let namespace = meta.namespace.as_deref();
        if let Err(error) = known.delete_uid(namespace, name, uid).await {
            refused.get_or_insert(error);
            // Each of the others would wait for the same answer.
            if !cluster.reach().is_up() {
                break;
            }
        }
    }
    let left = match ours.first() {
        Some(first) => Some(RemainingResources {
            count: ours.len(),
            first: describe(&known, first).await,
        }),
        None => None,
    };
    DeletionAttempt { left, refused }
}

/// Returns a custom resource and what its deletion waits for; none if that is unknown, since the deletion continues without it.
async fn describe(known: &ServedResource, meta: &ObjectMeta) -> Option<String> {
    let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
    let name = name.unwrap_or_default();
    let found = known.get(namespace, name).await.ok().flatten()?;
    let reason = waits_for(&found)?;
    Some(match namespace {
        Some(namespace) => format!("{namespace}/{name}: {reason}"),
        None => format!("{name}: {reason}"),
    })
}

/// The outcome of one attempt to delete the custom resources of a kind.
#[derive(Debug, Default)]
struct DeletionAttempt {
    /// Those that still exist, if any is known.
    left: Option<RemainingResources>,
    /// The first refused request.
    refused: Option<RequestError>,
}

/// The remaining custom resources of a kind.
#[derive(Debug)]
struct RemainingResources {
    count: usize,
    /// The first of them, and what it waits for, if known.
    first: Option<String>,
}

/// Returns what a custom resource that is being deleted waits for, from its own condition or its finalizers.
fn waits_for(object: &DynamicObject) -> Option<String> {
    object.metadata.deletion_timestamp.as_ref()?;
    let conditions = object.data.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == READY && one["status"] == "False");
    let message = ready.and_then(|ready| ready["message"].as_str());
    let message = message.filter(|message| !message.is_empty());
    if let Some(message) = message {
        return Some(cut(message, FIRST_BYTES));
    }
    let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
    (!finalizers.is_empty()).then(|| {
        let text = format!("waiting for the finalizers {}", finalizers.join(", "));
        cut(&text, FIRST_BYTES)
    })
}

/// Formats `deletionPolicy is delete: waiting for the deletion of 2 Pond.water.example (first shop/one: …)`.
fn waiting(left: &BTreeMap<GroupKind, RemainingResources>) -> String {
    if left.is_empty() {
        return "waiting for the claims on its kinds".to_owned();
    }
    let kinds = left
        .iter()
        .map(|(kind, RemainingResources { count, first })| {
            let first = first.as_ref().map(|first| format!(" (first {first})"));
            format!("{count} {kind}{}", first.unwrap_or_default())
        });
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    format!("deletionPolicy is delete: waiting for the deletion of {kinds}")
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use http::{Method, Request, Response};
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use orkestra_language::api::names;
    use parking_lot::Mutex;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// The objects whose deletion was requested: name, and uid of the precondition.
    type Deletions = Arc<Mutex<Vec<(String, Value)>>>;

    /// Returns a cluster with these ponds that refuses to delete `stuck`, and the requested deletions.
    fn cluster(ponds: Vec<Value>) -> (Cluster, Deletions) {
        let deletions = Arc::new(Mutex::new(Vec::new()));
        let (asked, ponds) = (Arc::clone(&deletions), Arc::new(ponds));
        let service = service_fn(move |request: Request<Body>| {
            let (asked, ponds) = (Arc::clone(&asked), Arc::clone(&ponds));
            async move {
                let name = request.uri().path().rsplit('/').next().unwrap().to_owned();
                let is_read = *request.method() == Method::GET;
                let body = request.into_body().collect().await.unwrap().to_bytes();
                if !is_read {
                    let options: Value = serde_json::from_slice(&body).unwrap();
                    let uid = options["preconditions"]["uid"].clone();
                    asked.lock().push((name.clone(), uid));
                }
                let status = |code: u16, reason: &str| {
                    let message = format!("refused: {reason}");
                    json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code })
                };
                let (code, answer) = match (is_read, name.as_str()) {
                    (true, "ponds") => (
                        200,
                        json!({ "kind": "PondList", "metadata": { "resourceVersion": "9" }, "items": *ponds }),
                    ),
                    (true, _) => (404, status(404, "NotFound")),
                    (false, "stuck") => (403, status(403, "Forbidden")),
                    (false, "replaced") => (409, status(409, "Conflict")),
                    _ => (200, json!({ "kind": "Status", "status": "Success" })),
                };
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
            }
        });
        (
            Cluster::new(kube::Client::new(service, "default")),
            deletions,
        )
    }

    fn pond(name: &str) -> Value {
        marked(name, &json!({}), &json!([names::FINALIZER]))
    }

    fn marked(name: &str, labels: &Value, finalizers: &Value) -> Value {
        json!({ "metadata": {
            "name": name, "namespace": "shop", "uid": format!("u-{name}"), "resourceVersion": "3",
            "labels": labels, "finalizers": finalizers,
        } })
    }

    fn ponds() -> OperatedKind {
        OperatedKind {
            group: "water.example".to_owned(),
            kind: "Pond".to_owned(),
            plural: "ponds".to_owned(),
            version: "v1".to_owned(),
            ..OperatedKind::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_deletion_keeps_no_other_resource_from_being_deleted() {
        let (cluster, deletions) = cluster(["stuck", "replaced", "one"].map(pond).into());
        let attempt = delete_all(&cluster, &ponds()).await;
        let asked = deletions.lock().clone();
        let uids = ["stuck", "replaced", "one"];
        assert_eq!(
            asked,
            uids.map(|name| (name.to_owned(), json!(format!("u-{name}"))))
        );
        let refused = attempt.refused.unwrap().to_string();
        assert!(
            refused.contains("delete ponds.water.example shop/stuck"),
            "{refused}"
        );
        assert_eq!(attempt.left.unwrap().count, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn children_that_another_operator_created_are_not_deleted() {
        let label = json!({ names::LABEL_MANAGED: "true" });
        let child = json!({ names::LABEL_MANAGED: "true", names::LABEL_OWNER_UID: "u-lake" });
        let (none, held) = (json!([]), json!([names::FINALIZER]));
        let (cluster, deletions) = cluster(vec![
            marked("of-a-lake", &child, &none),
            marked("of-a-lake-and-operated", &child, &held),
            marked("without-a-finalizer", &label, &none),
            marked("of-a-user", &json!({}), &json!(["example.org/other"])),
        ]);
        let attempt = delete_all(&cluster, &ponds()).await;
        let asked = deletions.lock().clone();
        let asked: Vec<&str> = asked.iter().map(|(name, _)| &**name).collect();
        assert_eq!(asked, ["of-a-lake-and-operated", "without-a-finalizer"]);
        assert!(attempt.refused.is_none());
        assert_eq!(attempt.left.unwrap().count, 2);
    }

    fn object(metadata: &Value, status: &Value) -> DynamicObject {
        let object = json!({ "metadata": metadata, "status": status });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn the_deletion_says_how_many_are_left_and_what_the_first_waits_for() {
        let going = json!({ "name": "one", "deletionTimestamp": "2026-03-02T09:00:00Z", "finalizers": ["a/b", "c/d"] });
        let says = |status: &str| {
            json!({ "conditions": [
            { "type": "Other", "status": "False", "message": "x" },
            { "type": "Ready", "status": status, "message": "`drain` of `onDelete` waits for Job shop/drain" },
        ] })
        };
        let of = |status: &Value| waits_for(&object(&going, status));
        let drain = of(&says("False")).unwrap();
        assert_eq!(drain, "`drain` of `onDelete` waits for Job shop/drain");
        let finalizers = "waiting for the finalizers a/b, c/d";
        assert_eq!(of(&says("True")).unwrap(), finalizers);
        assert_eq!(of(&json!({ "conditions": "none" })).unwrap(), finalizers);
        assert_eq!(waits_for(&object(&json!({}), &says("False"))), None);
        let long = json!({ "conditions": [{ "type": "Ready", "status": "False", "message": "x".repeat(9000) }] });
        assert_eq!(of(&long).unwrap().len(), FIRST_BYTES);

        let first = Some(format!("shop/one: {drain}"));
        let left = BTreeMap::from([
            (
                GroupKind::parse("Lake.water.example"),
                RemainingResources {
                    count: 3,
                    first: None,
                },
            ),
            (
                GroupKind::parse("Pond.water.example"),
                RemainingResources { count: 2, first },
            ),
        ]);
        assert_eq!(
            waiting(&left),
            "deletionPolicy is delete: waiting for the deletion of 3 Lake.water.example, 2 Pond.water.example \
             (first shop/one: `drain` of `onDelete` waits for Job shop/drain)"
        );
    }
}
