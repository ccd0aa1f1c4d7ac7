//! Applies that the API server refuses because of fields that other clients set by update.
//!
//! ```text
//!  apply ─ 422 ─► read ─► fields in the way that no manager applies ─► managedFields: they are ours ─► the apply is retried
//!                    └ none ─► replace
//! ```

use orkestra_cluster::requests::{Cause, ClusterError};
use orkestra_engine::reconcile::{
    record::ChildRecord,
    step::{Failure, Rendered},
    takeover::{RefusedField, TakenField, takeover},
    verdict::Action,
};
use orkestra_object::value::Node;

use super::Writer;
use crate::pass::failure::failure;
use crate::shared::bound_plan::Kind;

/// What was done about a refused apply, before it is sent again.
pub(crate) enum Resolved {
    /// Fields of other clients are ours, and the next apply removes them; none if the object changed meanwhile.
    TakenOver(Vec<TakenField>),
    /// The object was deleted, for the action to report.
    Replaced(Action),
}

impl Writer<'_> {
    /// Resolves the refusal of an apply over `before`.
    ///
    /// # Errors
    /// What is declared has to change.
    pub(crate) async fn resolve(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        before: Option<&ChildRecord>,
        error: &ClusterError,
    ) -> Result<Resolved, Failure> {
        let live = self.refused_object(kind, rendered, before, error).await?;
        if let Some(live) = &live
            && let Some(taken) = self.take_over(kind, rendered, live, error).await?
        {
            return Ok(Resolved::TakenOver(taken));
        }
        let objects = (before, live.as_ref());
        let replaced = self.replace(kind, rendered, objects, error).await?;
        Ok(Resolved::Replaced(replaced))
    }

    /// Reads the object whose change was refused with `error`, if its content says more than the error. None if it is a different
    /// object now.
    async fn refused_object(
        &self,
        kind: &Kind,
        rendered: &Rendered,
        before: Option<&ChildRecord>,
        error: &ClusterError,
    ) -> Result<Option<Node>, Failure> {
        let Some(before) = before.filter(|_| matches!(error, ClusterError::Invalid { .. })) else {
            return Ok(None);
        };
        let key = &rendered.key;
        let requests = &self.pass.shared.requests;
        match requests.get(kind.served(), &key.object).await {
            Ok(live) => {
                let is_same = live.meta_text("uid") == Some(&*before.id.uid.to_string());
                Ok(is_same.then_some(live))
            }
            Err(ClusterError::NotFound(_)) => Ok(None),
            Err(error) => Err(failure(key, &error)),
        }
    }

    /// Makes the fields of `live` ours that keep the API server from taking what is declared, so that the next apply removes them.
    /// Returns them; none if there are none.
    async fn take_over(
        &self,
        kind: &Kind,
        rendered: &Rendered,
        live: &Node,
        error: &ClusterError,
    ) -> Result<Option<Vec<TakenField>>, Failure> {
        let ClusterError::Invalid { causes, .. } = error else {
            return Ok(None);
        };
        let causes = causes.iter().filter(|cause| !cause.is_immutable);
        let refused: Vec<RefusedField<'_>> = causes.map(refused_field).collect();
        let manager = &self.pass.bound.manager;
        let Some(found) = takeover(live, &rendered.object, manager, &refused) else {
            return Ok(None);
        };
        let state = |field| live.meta(field).cloned().unwrap_or_default();
        // Only over exactly the state that was read.
        let metadata = Node::object([
            ("uid", state("uid")),
            ("resourceVersion", state("resourceVersion")),
            ("managedFields", found.managed_fields),
        ]);
        let body = Node::object([("metadata", metadata)]);
        let key = &rendered.key;
        let written = self
            .pass
            .patch_metadata(kind.served(), &key.object, &body, manager)
            .await;
        match written {
            Ok(object) => {
                kind.store().answer(&object);
                Ok(Some(found.fields))
            }
            // Another state, or another object: the following apply handles it.
            Err(ClusterError::NotFound(_) | ClusterError::Conflict { .. }) => Ok(Some(Vec::new())),
            Err(error) => Err(failure(key, &error)),
        }
    }
}

/// Returns the field that a cause names. A value that is missing, unknown or of another type is wrong by itself, whatever is beside
/// it.
fn refused_field(cause: &Cause) -> RefusedField<'_> {
    RefusedField {
        path: &cause.field,
        may_exclude: matches!(
            &*cause.reason,
            "FieldValueInvalid" | "FieldValueForbidden" | "FieldValueDuplicate"
        ),
    }
}
