//! Writes the changes of `normalize` to the custom resource before any child is created for it.
//!
//! It sends a merge patch with the resourceVersion that was read, so no other change is lost; its own field manager shows who
//! made the change. Unlike an apply it claims nothing permanently: the next writer of the field owns it.

use std::sync::Arc;

use orkestra_cluster::requests::{ClusterError, Served};
use orkestra_engine::reconcile::{
    prepared::Normalization,
    record::{CrRecord, Observed},
};
use orkestra_language::{api::names, reasons::Remark};
use orkestra_object::value::{Key, Map, Node, hash};

use super::{NextPass, Pass, Passed, consequence::reason_of, events::publish};
use crate::{events::Severity, shared::bound_plan::BoundPlan};

/// Why a stored value is not stored again: it changed without a change of the resource.
const RESTLESS: &str = "each pass would normalize the stored value to a different one";

/// Writes the values that the pass over `observed` wants stored; the result becomes the new state. Values that cannot be
/// stored stay in memory, and the status reports it.
///
/// # Errors
/// The immediate result of the pass: the resource has changed, is gone, or the API server does not answer.
pub(crate) async fn store(
    pass: &Pass<'_>,
    observed: &mut Observed,
    normalization: Option<&mut Normalization>,
) -> Result<(), Passed> {
    let Some(normalization) = normalization else {
        return Ok(());
    };
    let Some(patch) = normalization.patch.take() else {
        return Ok(());
    };
    let state = state(pass.bound, &observed.cr);
    if pass.memory().normalized.as_ref() == Some(&state) {
        normalization.withhold(RESTLESS);
        return Ok(());
    }
    let cr = &observed.cr;
    let version = ("resourceVersion", Node::from(&cr.id.resource_version));
    let body = Node::object([("metadata", Node::object([version])), ("spec", patch)]);
    let Served { plural, group, .. } = pass.bound.served();
    let manager = names::normalize_manager(plural, group);
    match pass
        .normalize(pass.bound.served(), &cr.id.key, &body, &manager)
        .await
    {
        Ok(answer) => {
            observed.cr = stored(pass, normalization, &answer)?;
            Ok(())
        }
        Err(ClusterError::NotFound(_)) => Err(Passed::settled()),
        Err(ClusterError::Conflict { .. }) => Err(Passed {
            next: NextPass::Retry,
            error: None,
        }),
        Err(error @ ClusterError::Forbidden { .. }) => {
            normalization.withhold(&error.to_string());
            Ok(())
        }
        Err(error)
            if reason_of(&error).is_permanent() || matches!(error, ClusterError::Denied { .. }) =>
        {
            // The same values would be refused again.
            pass.memory().normalized = Some(state);
            normalization.withhold(&error.to_string());
            Ok(())
        }
        Err(error) => Err(Passed::failed(reason_of(&error), error.to_string())),
    }
}

/// Records and reports the stored values. Returns the custom resource with them.
///
/// # Errors
/// The immediate result of the pass: the resource is gone, or has changed since.
fn stored(
    pass: &Pass<'_>,
    normalization: &Normalization,
    answer: &Node,
) -> Result<Arc<CrRecord>, Passed> {
    let written = version_of(answer);
    let Some(now) = pass.bound.crs.store().answer(answer) else {
        return Err(Passed::settled());
    };
    pass.memory().normalized = Some(state(pass.bound, &now));
    let paths: Vec<String> = normalization
        .stored
        .iter()
        .map(ToString::to_string)
        .collect();
    let note = format!("normalized {}", paths.join(", "));
    let reason = Remark::Normalized.as_str();
    publish(pass, &now, Severity::Normal, reason, note);
    if written.is_none_or(|written| now.id.resource_version != *written) {
        return Err(Passed {
            next: NextPass::Again,
            error: None,
        });
    }
    Ok(now)
}

fn version_of(object: &Node) -> Option<&str> {
    object.meta_text("resourceVersion")
}

/// Hashes the input of a normalization: the resource without its status, and the plan; not its children or the time.
fn state(bound: &BoundPlan, cr: &CrRecord) -> String {
    let own = cr.view.as_map().into_iter().flat_map(Map::iter);
    let own = own.filter(|(name, _)| &***name != "status");
    let own = own.map(|(name, node)| (Key::clone(name), node.clone()));
    let plan = (Key::from("plan"), Node::from(&*bound.plan.hash));
    hash(&Node::Map(own.chain([plan]).collect::<Map>()))
}
