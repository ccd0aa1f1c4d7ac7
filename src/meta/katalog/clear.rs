//! `deletionPolicy: delete`: custom resources are deleted before their Katalog, while its operators run.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use orkestra_core::{
    api::{
        OperatedKind,
        conditions::{READY, cut},
        names,
    },
    plan::{self, GroupKind},
    reconcile::inventory::DeclaredKinds,
};
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::{
    super::{calls::RequestError, release},
    Existence, KatalogController,
};

/// The delay before the next check whether the last one is gone.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The maximum length of the text about the first remaining custom resource: it contains user input.
const FIRST_BYTES: usize = 1024;

impl KatalogController {
    /// True if the Katalog can be torn down: it is being deleted, and the custom resources to delete with it are gone.
    pub(super) fn is_leaving(&self) -> bool {
        let deletes = self.object.document.deletes && !self.object.let_go;
        self.is_deleting() && (self.existence != Existence::Present || !deletes)
    }

    /// Deletes the custom resources that the operators manage; if some are left, returns when to check again. If no revision
    /// can run, no operator deletes their children: they are deleted and released.
    ///
    /// It covers the kinds that this Katalog has operated and still has the claims of, whatever it declares.
    pub(super) async fn clear(&mut self) -> Result<Option<Instant>, RequestError> {
        self.weigh_leftovers().await?;
        if !self.operated.is_empty() && self.running.is_none() && !self.looked {
            self.load_last_good().await?;
        }
        self.claim();
        let (wanted, supervisor) = (self.wanted_kinds(), &self.shared.supervisor);
        let held = supervisor.held_by(&self.reference);
        let (mut left, mut unclaimed) = (BTreeMap::new(), false);
        for (of, kind) in &self.operated {
            // Objects of built-in kinds were there before the Katalog, and are let go.
            if plan::built_in(of).is_some() {
                continue;
            }
            if held.contains(of) {
                if let Some(rest) = self.delete_all(kind).await? {
                    left.insert(of.clone(), rest);
                }
            } else if wanted.contains(of) && !supervisor.is_foreign(of) {
                unclaimed = true;
            }
        }
        self.waits = (!left.is_empty() || unclaimed).then(|| waiting(&left));
        if self.waits.is_none() || (self.running.is_none() && !unclaimed) {
            self.existence = Existence::Cleared;
            return Ok(None);
        }
        Ok(Some(Instant::now() + LOOK_AGAIN))
    }

    /// Deletes our custom resources of a kind; returns those that are left, if any.
    async fn delete_all(
        &self,
        kind: &OperatedKind,
    ) -> Result<Option<RemainingResources>, RequestError> {
        let wire = &self.shared.context.wire;
        let places = DeclaredKinds::recorded(kind).places;
        let Some((known, listed)) = release::list(wire, kind, &places).await? else {
            return Ok(None);
        };
        let (mut count, mut first) = (0, None);
        for meta in listed {
            let label = meta
                .labels
                .as_ref()
                .and_then(|all| all.get(names::LABEL_MANAGED));
            let finalizers = meta.finalizers.as_deref().unwrap_or_default();
            if label.is_none() && !finalizers.iter().any(|name| name == names::FINALIZER) {
                continue;
            }
            count += 1;
            if meta.deletion_timestamp.is_none() {
                let name = meta.name.as_deref().unwrap_or_default();
                known.delete_in(meta.namespace.as_deref(), name).await?;
            }
            first.get_or_insert(meta);
        }
        let Some(first) = first else {
            return Ok(None);
        };
        let (namespace, name) = (first.namespace, first.name.unwrap_or_default());
        // The reason is only for the report: without it the deletion continues.
        let found = known.get(namespace.as_deref(), &name).await;
        let found = found.ok().flatten();
        let name =
            namespace.map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
        let first = found.and_then(|object| Some(format!("{name}: {}", waits_for(&object)?)));
        Ok(Some(RemainingResources { count, first }))
    }
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
    use serde_json::json;

    use super::*;

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
