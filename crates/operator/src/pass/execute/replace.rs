//! Children that cannot be changed in place: Pods, and objects with a change of an immutable field.
//!
//! ```text
//!  apply ─ 422, every cause says "immutable" ─► `onImmutable: recreate` and proved ours? ─ no ──► ImmutableField, which names the fields
//!                                                     └─ yes ─► DELETE this uid in this resourceVersion ─► the apply is retried: it creates
//! ```
//!
//! The API server checks an update as a whole: an object that is invalid in itself has other causes too, and is not deleted.

use std::collections::BTreeSet;

use orkestra_cluster::requests::{Cause, ClusterError};
use orkestra_engine::reconcile::{
    immutable::{changed_fields, remedy},
    reason::Reason,
    record::ChildRecord,
    step::{Deletion, Failure, Rendered},
    verdict::Action,
};
use orkestra_object::value::{Node, Path};
use orkestra_plan::{ChildKey, GroupKind};
use tokio::time::Instant;

use super::Writer;
use crate::pass::failure::failure;
use crate::shared::bound_plan::Kind;

impl Writer<'_> {
    /// Deletes an object whose change was refused with `error`, if it may be created again. Returns the action to report.
    pub(crate) async fn replace(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        (before, live): (Option<&ChildRecord>, Option<&Node>),
        error: &ClusterError,
    ) -> Result<Action, Failure> {
        let key = &rendered.key;
        let Some(before) = before else {
            return Err(failure(key, error));
        };
        if must_be_replaced(key, error) {
            let deletion = Deletion {
                key: key.clone(),
                uid: before.id.uid.clone(),
            };
            self.delete(&deletion).await?;
            return Ok(Action::Updated);
        }
        let Some(fields) = immutable_fields(key, error) else {
            return Err(failure(key, error));
        };
        let declared = &self.pass.bound.plan.children[rendered.declared];
        let is_secret = key.kind == GroupKind::parse("Secret") || declared.shows_secrets;
        let fields = named(&fields, rendered, live);
        let mut hint = remedy(&key.kind.kind, &key.object.name, &fields);
        if let Some(grown) = self.grow(rendered, live, &fields).await? {
            hint = format!("{grown}; {hint}");
        }
        let fields = described(&fields, detail(error).filter(|_| !is_secret));
        if !declared.recreates || !before.is_ours(self.uid, &self.pass.bound.manager) {
            return Err(immutable(key, &fields, &hint));
        }
        self.pause_between(key, &fields)?;
        let pass = self.pass;
        match pass
            .delete_state(kind.served(), &key.object, &before.id)
            .await
        {
            Ok(_) => self
                .pass
                .memory()
                .force(key, &[whole_object()], Instant::now()),
            // Another state, or another object: the following apply handles it.
            Err(ClusterError::NotFound(_) | ClusterError::Conflict { .. }) => {}
            Err(error) => return Err(failure(key, &error)),
        }
        Ok(Action::Recreated)
    }

    /// Returns an error if the object was created again several times recently: another client, such as a webhook, changes
    /// each created object, and this would repeat forever.
    fn pause_between(&mut self, key: &ChildKey, fields: &str) -> Result<(), Failure> {
        let fight = self
            .pass
            .memory()
            .fights(key, &[whole_object()], Instant::now());
        let Some(pause) = fight
            .map(|fight| fight.pause)
            .filter(|pause| !pause.is_zero())
        else {
            return Ok(());
        };
        let revisit = self.outcome.revisit.into_iter().chain([pause]).min();
        self.outcome.revisit = revisit;
        let hint = "it was recreated several times within ten minutes, so another client changes the created object; the next \
                    attempt follows within a minute";
        Err(immutable(key, fields, hint))
    }
}

/// The maximum length of a quoted API server message, in bytes.
const MOST_DETAIL: usize = 400;

/// Represents the whole object where its paths are remembered.
fn whole_object() -> Path {
    Path::default()
}

fn immutable(key: &ChildKey, fields: &str, hint: &str) -> Failure {
    Failure {
        reason: Reason::ImmutableField,
        at: key.to_string(),
        message: format!("{fields}; {hint}"),
    }
}

/// Returns the declared fields that differ from the live ones, at or below those that the API server names.
fn named(causes: &[(&str, &str)], rendered: &Rendered, live: Option<&Node>) -> Vec<String> {
    let mut fields: Vec<String> = causes
        .iter()
        .flat_map(|(field, message)| match live {
            Some(live) => changed_fields(live, &rendered.object, field, message),
            None => vec![(*field).to_owned()],
        })
        .collect();
    let mut seen = BTreeSet::new();
    fields.retain(|field| seen.insert(field.clone()));
    fields
}

/// Describes the immutable fields, with the API server's message about one of them.
fn described(fields: &[String], detail: Option<&str>) -> String {
    let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
    let detail = detail.map(|words| format!(" ({words})"));
    format!(
        "{} cannot change once the object exists{}",
        fields.join(", "),
        detail.unwrap_or_default()
    )
}

/// Returns why the first field cannot change, as the API server says it and without the value.
fn detail(error: &ClusterError) -> Option<&str> {
    let ClusterError::Invalid { causes, .. } = error else {
        return None;
    };
    let message = &*causes.first()?.message;
    let words = match message.strip_prefix("Forbidden: ") {
        Some(words) => words,
        // The value can be anything: `Invalid value: <value>: <words>`.
        None => message.rsplit_once(": ")?.1,
    };
    words
        .lines()
        .next()
        .filter(|line| line.len() <= MOST_DETAIL)
}

/// Returns the immutable fields of the object, each with the API server's message, if nothing else is wrong.
fn immutable_fields<'e>(
    key: &ChildKey,
    error: &'e ClusterError,
) -> Option<Vec<(&'e str, &'e str)>> {
    match error {
        ClusterError::Invalid { causes, .. } => {
            let is_all = !causes.is_empty() && causes.iter().all(|cause| cause.is_immutable);
            let fields = causes.iter().map(|cause| (&*cause.field, &*cause.message));
            is_all.then(|| fields.collect())
        }
        // Source: Kubernetes, the `PersistentVolumeClaimResize` admission.
        ClusterError::Denied { message }
            if key.kind == GroupKind::parse("PersistentVolumeClaim")
                && message.contains("can be resized") =>
        {
            Some(vec![("spec.resources.requests.storage", "")])
        }
        _ => None,
    }
}

/// True if the object is a Pod, and the only error is that Kubernetes does not make the change in place.
///
/// Source: Kubernetes, `ValidatePodUpdate`: a Pod that is invalid in itself has other causes too.
fn must_be_replaced(key: &ChildKey, error: &ClusterError) -> bool {
    let ClusterError::Invalid { causes, .. } = error else {
        return false;
    };
    let is_immutable = |cause: &Cause| {
        cause.field == "spec" && cause.message.contains("pod updates may not change fields")
    };
    key.kind == GroupKind::parse("Pod") && !causes.is_empty() && causes.iter().all(is_immutable)
}

#[cfg(test)]
mod tests {
    use orkestra_plan::ObjectKey;

    use super::*;

    fn key(kind: &str) -> ChildKey {
        ChildKey {
            kind: GroupKind::parse(kind),
            object: ObjectKey {
                namespace: Some("shop".into()),
                name: "web".into(),
            },
        }
    }

    fn refused(fields: &[(&str, bool)]) -> ClusterError {
        let cause = |(field, is_immutable): &(&str, bool)| Cause {
            reason: "FieldValueInvalid".to_owned(),
            field: (*field).to_owned(),
            message: "Invalid value".to_owned(),
            is_immutable: *is_immutable,
        };
        ClusterError::Invalid {
            message: "no".to_owned(),
            causes: fields.iter().map(cause).collect(),
        }
    }

    #[test]
    fn an_object_that_is_wrong_in_another_way_too_is_not_deleted() {
        let service = key("Service");
        let fields = |error: &ClusterError| {
            let fields = immutable_fields(&service, error)?;
            let fields: Vec<&str> = fields.into_iter().map(|(field, _)| field).collect();
            Some(fields.join(","))
        };
        let both = refused(&[("spec.clusterIPs[0]", true), ("spec.selector", true)]);
        assert_eq!(fields(&both).unwrap(), "spec.clusterIPs[0],spec.selector");
        for not in [
            refused(&[("spec.clusterIPs[0]", true), ("spec.ports", false)]),
            refused(&[]),
            ClusterError::Denied {
                message: "only dynamically provisioned pvc can be resized".to_owned(),
            },
            ClusterError::Unavailable("field is immutable".to_owned()),
        ] {
            assert_eq!(fields(&not), None, "{not:?}");
        }
    }

    #[test]
    fn the_reason_is_given_without_the_value() {
        let reported = |message: &str| {
            let cause = Cause {
                reason: "FieldValueInvalid".to_owned(),
                field: "spec".to_owned(),
                message: message.to_owned(),
                is_immutable: true,
            };
            let error = ClusterError::Invalid {
                message: String::new(),
                causes: vec![cause],
            };
            described(&["spec".to_owned()], detail(&error))
        };
        for (message, words) in [
            (
                "Invalid value: \"a: b\": field is immutable",
                " (field is immutable)",
            ),
            (
                "Forbidden: updates to statefulset spec: none",
                " (updates to statefulset spec: none)",
            ),
            (
                "Forbidden: spec is immutable\n  core.Spec{...}",
                " (spec is immutable)",
            ),
            ("no form that is known", ""),
        ] {
            let expected = format!("`spec` cannot change once the object exists{words}");
            assert_eq!(reported(message), expected);
        }
        assert!(
            !reported(&format!("Forbidden: {}", "x".repeat(500)))
                .contains('x'.to_string().repeat(9).as_str())
        );
    }

    #[test]
    fn a_claim_that_cannot_grow_names_its_size() {
        let denied = ClusterError::Denied {
            message: "persistentvolumeclaims \"web\" is forbidden: only dynamically provisioned pvc can be resized".to_owned(),
        };
        let claim = key("PersistentVolumeClaim");
        let fields = immutable_fields(&claim, &denied).unwrap();
        assert_eq!(fields, [("spec.resources.requests.storage", "")]);
    }
}
