//! One log line per write.

use orkestra_core::{
    plan::{ChildKey, ObjectKey},
    reconcile::verdict::Action,
};

use super::{bound::Bound, shared::Shared};

/// Logs the write of a child of the custom resource `owner`.
pub(super) fn log_write(
    shared: &Shared,
    bound: &Bound,
    owner: &ObjectKey,
    key: &ChildKey,
    action: Action,
) {
    let done = match action {
        Action::Unchanged => return,
        Action::Created => "created",
        Action::Updated => "changed",
        Action::Recreated => "recreated",
        Action::Repaired => "corrected drift",
        Action::Deleted => "deleted",
    };
    let owner = format!("{} {owner}", bound.plan.resource.kind);
    if shared.context.logs_writes {
        tracing::info!(object = %key, %owner, "{done}");
    } else {
        tracing::debug!(object = %key, %owner, "{done}");
    }
}
