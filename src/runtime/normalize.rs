//! Writes the changes of `normalize` to the custom resource before any child is created for it.
//!
//! It sends a merge patch with the resourceVersion that was read, so no other change is lost; its own field manager shows who
//! made the change. Unlike an apply it claims nothing permanently: the next writer of the field owns it.

use orkestra_cluster::wire::{Served, WireError};
use orkestra_core::{
    api::names,
    reasons::Remark,
    reconcile::{prepare::Normalization, record::CrRecord, record::Observed},
    value::{Key, Map, Node, hash},
};

use super::{
    bound::Bound,
    memory::Memory,
    pass::{Next, Passed},
    shared::Shared,
    tell::publish,
};
use crate::events::Severity;

/// Why a stored value is not stored again: it changed without a change of the resource.
const RESTLESS: &str = "it would become another value each time";

/// Writes the values that the pass over `observed` wants stored; the result becomes the new state. Values that cannot be
/// stored stay in memory, and the status reports it.
///
/// # Errors
/// The immediate result of the pass: the resource has changed, is gone, or the API server does not answer.
pub(super) async fn store(
    shared: &Shared,
    bound: &Bound,
    observed: &mut Observed,
    memory: &mut Memory,
    normalization: Option<&mut Normalization>,
) -> Result<(), Passed> {
    let Some(told) = normalization else {
        return Ok(());
    };
    let Some(patch) = told.patch.take() else {
        return Ok(());
    };
    let state = state(bound, &observed.cr);
    if memory.normalized.as_ref() == Some(&state) {
        told.withhold(RESTLESS);
        return Ok(());
    }
    let cr = &observed.cr;
    let version = ("resourceVersion", Node::from(&cr.id.resource_version));
    let body = Node::object([("metadata", Node::object([version])), ("spec", patch)]);
    let Served { plural, group, .. } = bound.served();
    let manager = names::normalize_manager(plural, group);
    match shared
        .normalize(bound.served(), &cr.id.key, &body, &manager)
        .await
    {
        Ok(answer) => {
            let written = version_of(&answer);
            let Some(now) = bound.crs.store().answer(&answer) else {
                return Err(Passed::settled());
            };
            memory.normalized = Some(self::state(bound, &now));
            let paths: Vec<String> = told.stored.iter().map(ToString::to_string).collect();
            let note = format!("normalized {}", paths.join(", "));
            publish(
                shared,
                bound,
                &now,
                Severity::Normal,
                Remark::Normalized.as_str(),
                note,
            );
            if written.is_none_or(|written| now.id.resource_version != *written) {
                return Err(Passed {
                    next: Next::Again,
                    error: None,
                });
            }
            observed.cr = now;
            Ok(())
        }
        Err(WireError::NotFound(_)) => Err(Passed::settled()),
        Err(WireError::Conflict { .. }) => Err(Passed {
            next: Next::Retry,
            error: None,
        }),
        Err(error @ WireError::Forbidden { .. }) => {
            told.withhold(&error.to_string());
            Ok(())
        }
        Err(error) if error.is_permanent() || matches!(error, WireError::Denied { .. }) => {
            // The same values would be refused again.
            memory.normalized = Some(state);
            told.withhold(&error.to_string());
            Ok(())
        }
        Err(error) => Err(Passed::failed(Next::Retry, error.to_string())),
    }
}

fn version_of(object: &Node) -> Option<&str> {
    object.get("metadata")?.get("resourceVersion")?.as_str()
}

/// Hashes the input of a normalization: the resource without its status, and the plan; not its children or the time.
fn state(bound: &Bound, cr: &CrRecord) -> String {
    let own = cr.view.as_map().into_iter().flat_map(Map::iter);
    let own = own.filter(|(name, _)| &***name != "status");
    let own = own.map(|(name, node)| (Key::clone(name), node.clone()));
    let plan = (Key::from("plan"), Node::from(&*bound.plan.hash));
    hash(&Node::Map(own.chain([plan]).collect::<Map>()))
}
