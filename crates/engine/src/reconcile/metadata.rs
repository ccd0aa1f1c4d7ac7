//! The metadata of an object from the API server, field by field.

pub use orkestra_object::Malformed;

use orkestra_language::api::names;
use orkestra_object::value::{Node, Path};
use orkestra_plan::GroupKind;

/// The namespace of objects from files without one. Source: kubectl.
pub(crate) const NAMESPACE: &str = "default";

/// Returns the group and kind of an object.
pub(crate) fn group_kind(object: &Node) -> Result<GroupKind, Malformed> {
    let text = |field: &'static str| {
        object
            .get(field)
            .and_then(Node::as_str)
            .filter(|text| !text.is_empty())
            .ok_or(Malformed(field))
    };
    let group = text("apiVersion")?
        .split_once('/')
        .map_or("", |(group, _)| group);
    Ok(GroupKind {
        group: group.into(),
        kind: text("kind")?.into(),
    })
}

/// Returns the path of a field in an object's metadata.
pub(crate) fn in_metadata(fields: &[&str]) -> Path {
    Path::of_fields(["metadata"].iter().chain(fields).copied())
}

/// Returns the uid in an object's controller owner reference.
pub(crate) fn controller(object: &Node) -> Option<&str> {
    let owners = object.meta("ownerReferences").and_then(Node::as_list)?;
    let is_controller =
        |owner: &&Node| owner.get("controller").and_then(Node::as_bool) == Some(true);
    owners.iter().find(is_controller)?.get("uid")?.as_str()
}

/// Returns the uid in our owner label.
pub(crate) fn owner_label(object: &Node) -> Option<&str> {
    object.label(names::LABEL_OWNER_UID)
}
