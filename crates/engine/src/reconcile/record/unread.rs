//! Finds the unreadable part of an object that a record depends on.

use crate::reconcile::metadata::in_metadata;
use orkestra_object::value::{Fault, Node, Path, PathStep, Projection};

/// Returns the first unreadable part of `object` that a record reads.
pub(crate) fn fault_of(
    object: &Node,
    projection: impl FnOnce() -> Projection,
) -> Option<Box<Fault>> {
    let faults = Fault::all_of(object);
    if faults.is_empty() {
        return None;
    }
    let projection = projection();
    let matters =
        |fault: &Fault| projection.touches(&fault.path) && !is_of_an_update(object, &fault.path);
    // A fault that hides the status comes first: it decides whether the others can be reported there.
    let is_beside_the_status = |fault: &Fault| {
        let first = fault.path.steps().first();
        first.is_some_and(|step| !matches!(step, PathStep::Field(key) if &**key == "status"))
    };
    let faults = faults.into_iter().filter(matters);
    faults.min_by_key(is_beside_the_status).map(Box::new)
}

/// True if a path leads to the managed fields of an update, of which nothing is kept.
fn is_of_an_update(object: &Node, path: &Path) -> bool {
    let steps = path.steps();
    let (Some(fields), Some(entry)) = (steps.get(3), steps.get(..3)) else {
        return false;
    };
    let is_field =
        |step: &PathStep, name: &str| matches!(step, PathStep::Field(key) if &**key == name);
    let entry: Path = entry.iter().cloned().collect();
    let operation = object
        .at(&entry)
        .and_then(|entry| entry.get("operation")?.as_str());
    is_field(fields, "fieldsV1")
        && entry.starts_with(&in_metadata(&["managedFields"]))
        && operation == Some("Update")
}
