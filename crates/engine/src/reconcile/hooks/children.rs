//! The children in the answer of a hook.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    HookError, entries,
    response::{list, refused},
};
use crate::reconcile::record::Observed;
use orkestra_language::api::names;
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{HookPlan, HookProtocol, OperatorPlan, ResourceType};

/// Fields of a child's metadata that a hook decides on; all others are the runtime's or the API server's.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];

/// Reads the children: a list of whole objects, or a map of entries of the language; each of a managed kind. Returns them by kind, with what a hook decides on.
pub(crate) fn children(
    (plan, hook): (&OperatorPlan, &HookPlan),
    observed: &Observed,
    declared: Option<&Node>,
    now: Timestamp,
) -> Result<Node, HookError> {
    let mut by_kind: BTreeMap<Key, Vec<Node>> = BTreeMap::new();
    for one in &hook.managed {
        by_kind.insert(HookPlan::key_of(&one.kind), Vec::new());
    }
    let expanded = match declared {
        Some(entries @ Node::Map(_)) if hook.protocol == HookProtocol::Orkestra => {
            Some(entries::objects((plan, hook), observed, entries, now)?)
        }
        _ => None,
    };
    let objects = match &expanded {
        Some(objects) => objects,
        None => list(declared, "children", usize::MAX)?,
    };
    for (index, item) in objects.iter().enumerate() {
        let text = |name| item.get(name).and_then(Node::as_str).unwrap_or_default();
        let key = Key::from(&*format!("{}.{}", text("kind"), text("apiVersion")));
        let Some(managed) = hook
            .managed
            .iter()
            .find(|one| HookPlan::key_of(&one.kind) == key)
        else {
            let known: Vec<&str> = by_kind.keys().map(|key| &**key).collect();
            return refused(format!(
                "`children[{index}]` is of kind `{key}`; `managedResources` has {}",
                if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                }
            ));
        };
        let object = child(&managed.kind, observed, item).map_err(|why| HookError {
            message: format!("`children[{index}]`: {why}"),
            permanent: true,
        })?;
        by_kind.entry(key).or_default().push(object);
    }
    let by_kind = by_kind.into_iter();
    Ok(Node::Map(
        by_kind
            .map(|(key, objects)| (key, Node::from(objects)))
            .collect(),
    ))
}

/// Returns the part of a child that a hook decides on. Its status belongs to another controller, and much of its metadata to the
/// API server: answers often repeat what they were asked with.
fn child(kind: &ResourceType, observed: &Observed, item: &Node) -> Result<Node, String> {
    let name = item.meta_text("name").unwrap_or_default();
    if name.is_empty() {
        return Err(format!("the {} has no `metadata.name`", kind.kind));
    }
    let own = observed.cr.id.key.namespace.as_deref();
    let namespace = item.meta_text("namespace").filter(|text| !text.is_empty());
    match (own, namespace) {
        _ if kind.namespaced == Some(false) => {}
        (Some(own), Some(other)) if own != other => {
            return Err(format!(
                "{} `{other}/{name}` is in another namespace than its custom resource",
                kind.kind
            ));
        }
        (None, None) => {
            return Err(format!(
                "{} `{name}` has no `metadata.namespace`",
                kind.kind
            ));
        }
        _ => {}
    }
    let metadata = item.get("metadata").and_then(Node::as_map);
    let metadata = metadata.into_iter().flat_map(Map::iter);
    let metadata = metadata.filter(|(key, _)| METADATA.contains(&&***key));
    let metadata: Map = metadata
        .map(|(key, value)| (key.clone(), without_marks(value)))
        .collect();
    let fields = item.as_map().into_iter().flat_map(Map::iter);
    let fields = fields.filter(|(key, _)| !["metadata", "status"].contains(&&***key));
    let mut object: Map = fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    object.insert(Key::from("metadata"), Node::Map(metadata));
    Ok(Node::Map(object))
}

/// Returns labels or annotations without Orkestra's own.
fn without_marks(value: &Node) -> Node {
    match value {
        Node::Map(entries) => {
            let others = entries
                .iter()
                .filter(|(key, _)| !key.starts_with(names::PREFIX));
            Node::Map(
                others
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}
