//! Who owns which fields of an object: `metadata.managedFields`, read into trees that siblings share.
//!
//! Source: Kubernetes API reference, `FieldsV1`: `f:<name>` is a field, `k:{…}` a list item by its keys, `v:…` a set's
//! value, `i:<n>` an item by position, `.` the path itself.

use std::{collections::BTreeMap, sync::Arc};

use super::{identity::Uid, intern::Interner, record::in_metadata};
use crate::value::{Key, Map, Node, Path, Sieve};

/// How our field managers begin; the rest names the operator.
const OURS: &str = "orkestra/";

/// Who wrote what of one object, as far as a pass needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// What each of our operators owns by apply: field manager and fields, sorted by manager.
    applied: Box<[(Key, Fields)]>,
    /// Field managers of ours that wrote by create or update.
    updated: Box<[Key]>,
    /// What others own by apply: field manager and fields, sorted by manager.
    foreign: Box<[(Key, Fields)]>,
}

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    /// Whether the path that leads here is in the set itself.
    itself: bool,
    below: Box<[(Element, Fields)]>,
}

/// One step of a field path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Element {
    Field(Key),
    Item(Box<[(Key, Scalar)]>),
    Value(Scalar),
    Index(u64),
}

/// What is an object's own among the values that list items are keyed by. It is replaced in the trees, so that the
/// children of a thousand custom resources share one.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// The object's name: containers are often called like their Deployment.
    pub name: &'a str,
    /// uid of the object's owner, which owner references are keyed by.
    pub owner: Option<&'a Uid>,
}

impl Own<'_> {
    fn is_owner(self, text: &str) -> bool {
        self.owner.is_some_and(|owner| *owner == *text)
    }
}

/// A key's or a set's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scalar {
    OwnName,
    OwnOwner,
    Text(Key),
}

impl Scalar {
    pub(super) fn read(node: &Node, own: Own<'_>) -> Self {
        match &*node.to_text() {
            text if text == own.name => Self::OwnName,
            text if own.is_owner(text) => Self::OwnOwner,
            text => Self::Text(Key::from(text)),
        }
    }

    fn is(&self, node: &Node, own: Own<'_>) -> bool {
        let text = node.to_text();
        match self {
            Self::OwnName => text == own.name,
            Self::OwnOwner => own.is_owner(&text),
            Self::Text(key) => **key == *text,
        }
    }
}

impl Ownership {
    /// Reads `metadata.managedFields`, of an object.
    pub fn read(managed_fields: Option<&Node>, own: Own<'_>) -> Self {
        let mut applied = BTreeMap::new();
        let mut foreign = BTreeMap::new();
        let mut updated = Vec::new();
        for entry in managed_fields.and_then(Node::as_list).unwrap_or_default() {
            let text = |field| entry.get(field).and_then(Node::as_str);
            let Some(manager) = text("manager") else {
                continue;
            };
            let ours = manager.starts_with(OURS) && text("subresource").is_none_or(str::is_empty);
            match (text("operation"), ours) {
                (Some("Apply"), _) => {
                    let fields = entry
                        .get("fieldsV1")
                        .map(|node| Fields::read(node, own))
                        .unwrap_or_default();
                    let side = if ours { &mut applied } else { &mut foreign };
                    side.insert(Key::from(manager), fields);
                }
                (_, true) => updated.push(Key::from(manager)),
                _ => {}
            }
        }
        Self {
            applied: applied.into_iter().collect(),
            updated: updated.into(),
            foreign: foreign.into_iter().collect(),
        }
    }

    /// Itself, as all equal ones of the process are: ten thousand Deployments of one template have one.
    pub fn share(self) -> Arc<Self> {
        static SHARED: Interner<Ownership> = Interner::new();
        SHARED.share(self)
    }

    /// Whether `manager`, one of ours, wrote the object at all.
    pub fn wrote(&self, manager: &str) -> bool {
        self.applied_by(manager).is_some() || self.updated.iter().any(|other| &**other == manager)
    }

    /// What `manager`, one of ours, owns by apply.
    pub fn applied_by(&self, manager: &str) -> Option<&Fields> {
        self.applied
            .iter()
            .find(|(other, _)| &**other == manager)
            .map(|(_, fields)| fields)
    }

    /// Who but `manager` owns by apply the leaf that `trail` leads to: operators of ours are strangers to each other.
    pub fn applied_by_other(
        &self,
        manager: &str,
        trail: &[Step<'_>],
        own: Own<'_>,
    ) -> Option<&str> {
        self.foreign
            .iter()
            .chain(self.applied.iter().filter(|(other, _)| &**other != manager))
            .find(|(_, fields)| fields.covers(trail, own))
            .map(|(other, _)| &**other)
    }

    /// Who owns by apply what `trail` leads to, or something below it.
    pub(super) fn applier(&self, trail: &[Step<'_>], own: Own<'_>) -> Option<&str> {
        let mut all = self.foreign.iter().chain(&self.applied);
        all.find(|(_, fields)| fields.touches(trail, own))
            .map(|(manager, _)| &**manager)
    }

    /// Bytes on the heap, for the cache metrics; shared between siblings.
    pub fn heap_bytes(&self) -> usize {
        let sets = |sets: &[(Key, Fields)]| {
            sets.iter()
                .map(|(_, fields)| size_of::<(Key, Fields)>() + fields.heap_bytes())
                .sum::<usize>()
        };
        sets(&self.applied) + sets(&self.foreign) + self.updated.len() * size_of::<Key>()
    }
}

/// One step from an object's root to a leaf, as a rendered object has it.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A map's field.
    Field(&'a Key),
    /// A list's item: its position and its content.
    Item(usize, &'a Node),
}

impl Fields {
    fn read(node: &Node, own: Own<'_>) -> Self {
        let mut itself = false;
        let mut below = Vec::new();
        for (name, child) in node.as_map().into_iter().flat_map(Map::iter) {
            if &**name == "." {
                itself = true;
            } else if let Some(element) = Element::read(name, own) {
                let mut fields = Self::read(child, own);
                // A leaf of the set is written as an empty map: it stands for its own path.
                fields.itself |= fields.below.is_empty();
                below.push((element, fields));
            }
        }
        Self {
            itself,
            below: below.into(),
        }
    }

    /// Whether the leaf that `trail` leads to is in the set: it is an owned path, or it lies below an owned path that has
    /// nothing below it in the set (an atomic list or map).
    pub fn covers(&self, trail: &[Step<'_>], own: Own<'_>) -> bool {
        let Some((step, rest)) = trail.split_first() else {
            return self.itself;
        };
        if self.below.is_empty() {
            return self.itself;
        }
        self.below
            .iter()
            .any(|(element, fields)| element.matches(*step, own) && fields.covers(rest, own))
    }

    /// Whether what `trail` leads to is in the set, or anything below it.
    fn touches(&self, trail: &[Step<'_>], own: Own<'_>) -> bool {
        match trail.split_first() {
            None => self.itself || !self.below.is_empty(),
            Some(_) if self.below.is_empty() => self.itself,
            Some((step, rest)) => self
                .below
                .iter()
                .any(|(element, fields)| element.matches(*step, own) && fields.touches(rest, own)),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.below
            .iter()
            .map(|(element, fields)| {
                size_of::<(Element, Self)>() + element.heap_bytes() + fields.heap_bytes()
            })
            .sum()
    }
}

impl Element {
    fn read(name: &str, own: Own<'_>) -> Option<Self> {
        let (form, rest) = name.split_once(':')?;
        match form {
            "f" => Some(Self::Field(Key::from(rest))),
            "k" => {
                let keys: Node = serde_json::from_str(rest).ok()?;
                Some(Self::Item(
                    keys.as_map()?
                        .iter()
                        .map(|(key, value)| (key.clone(), Scalar::read(value, own)))
                        .collect(),
                ))
            }
            "v" => serde_json::from_str::<Node>(rest)
                .ok()
                .map(|value| Self::Value(Scalar::read(&value, own))),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// A rendered item matches by the keys that it has: the server adds defaults such as `protocol: TCP` to the others.
    pub(super) fn matches(&self, step: Step<'_>, own: Own<'_>) -> bool {
        match (self, step) {
            (Self::Field(field), Step::Field(key)) => field == key,
            (Self::Item(keys), Step::Item(_, item)) => {
                keys.iter().all(|(key, value)| match item.get(key) {
                    Some(rendered) => value.is(rendered, own),
                    // The one default of a key among Kubernetes' own kinds: 53/TCP is not 53/UDP.
                    None if &**key == "protocol" => value.is(&Node::from("TCP"), own),
                    None => true,
                })
            }
            (Self::Value(value), Step::Item(_, item)) => value.is(item, own),
            (Self::Index(index), Step::Item(position, _)) => *index == position as u64,
            _ => false,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Item(keys) => keys.len() * size_of::<(Key, Scalar)>(),
            _ => 0,
        }
    }
}

/// Adds what [`Ownership::read`] looks at.
pub(super) fn looks_at(sieve: Sieve) -> Sieve {
    let fields = ["manager", "operation", "subresource", "fieldsV1"];
    let fields = fields.map(|field| Path::of_fields([field]));
    sieve.with_each(&in_metadata(&["managedFields"]), &fields)
}

/// The managers whose update entries in `managed_fields` hold the leaf of `object` at `path`.
pub fn updated_by(managed_fields: &Node, object: &Node, path: &Path, own: Own<'_>) -> Vec<String> {
    let Some(trail) = trail_of(object, path) else {
        return Vec::new();
    };
    let entries = managed_fields.as_list().unwrap_or_default().iter();
    let holders = entries.filter_map(|entry| {
        let text = |field| entry.get(field).and_then(Node::as_str);
        let covers = entry
            .get("fieldsV1")
            .is_some_and(|fields| Fields::read(fields, own).covers(&trail, own));
        (text("operation") == Some("Update") && covers)
            .then(|| text("manager"))
            .flatten()
            .map(str::to_owned)
    });
    holders.collect()
}

/// The steps that lead to `path` in `object`; none where there is no such path.
fn trail_of<'a>(object: &'a Node, path: &Path) -> Option<Vec<Step<'a>>> {
    let mut node = object;
    let mut trail = Vec::new();
    for step in path.steps() {
        match step {
            crate::value::Step::Field(field) => {
                let (key, child) = node.as_map()?.iter().find(|(key, _)| *key == field)?;
                trail.push(Step::Field(key));
                node = child;
            }
            crate::value::Step::Index(index) => {
                node = node.as_list()?.get(*index)?;
                trail.push(Step::Item(*index, node));
            }
        }
    }
    Some(trail)
}

/// A path for messages and for taking a leaf out of an object.
pub fn trail_path(trail: &[Step<'_>]) -> Path {
    let mut path = Path::default();
    for step in trail {
        match step {
            Step::Field(key) => path.push_field((*key).clone()),
            Step::Item(index, _) => path.push_index(*index),
        }
    }
    path
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::reconcile) const OWN: Own<'_> = Own {
        name: "web",
        owner: None,
    };

    pub(in crate::reconcile) fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    fn entry(manager: &str, operation: &str, fields: &str) -> String {
        format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{fields}}}"#)
    }

    #[test]
    fn siblings_that_differ_in_their_name_only_share_one_ownership() {
        let read = |name: &str| {
            let fields = format!(
                r#"{{"f:spec":{{"f:containers":{{"k:{{\"name\":\"{name}\"}}":{{".":{{}},"f:name":{{}}}}}}}}}}"#
            );
            let managed = format!("[{}]", entry("orkestra/a.b", "Apply", &fields));
            Ownership::read(Some(&node(&managed)), Own { name, owner: None }).share()
        };
        assert!(Arc::ptr_eq(&read("web-1"), &read("web-2")));
    }

    #[test]
    fn an_item_is_covered_by_the_keys_that_are_rendered() {
        let fields = node(
            r#"{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}"#,
        );
        let fields = Fields::read(&fields, OWN);
        let (ports, port) = (Key::from("ports"), Key::from("containerPort"));
        let covered = |item: &Node| {
            fields.covers(
                &[Step::Field(&ports), Step::Item(0, item), Step::Field(&port)],
                OWN,
            )
        };
        assert!(covered(&node(r#"{"containerPort":80}"#)));
        assert!(!covered(&node(r#"{"containerPort":81}"#)));
        assert!(!covered(&node(r#"{"containerPort":80,"protocol":"UDP"}"#)));
    }

    #[test]
    fn an_owned_path_with_nothing_below_covers_all_that_lies_below() {
        let fields = Fields::read(
            &node(r#"{"f:spec":{"f:selector":{},"f:other":{"f:x":{}}}}"#),
            OWN,
        );
        let keys: Vec<Key> = ["spec", "selector", "app", "other"]
            .into_iter()
            .map(Key::from)
            .collect();
        assert!(fields.covers(
            &[
                Step::Field(&keys[0]),
                Step::Field(&keys[1]),
                Step::Field(&keys[2])
            ],
            OWN
        ));
        assert!(!fields.covers(
            &[
                Step::Field(&keys[0]),
                Step::Field(&keys[3]),
                Step::Field(&keys[2])
            ],
            OWN
        ));
        assert!(!fields.covers(&[Step::Field(&keys[0]), Step::Field(&keys[3])], OWN));
    }

    #[test]
    fn an_update_entry_of_ours_proves_that_we_wrote_but_covers_nothing() {
        let ownership = Ownership::read(
            Some(&node(&format!(
                "[{}]",
                entry("orkestra/a.b", "Update", r#"{"f:data":{}}"#)
            ))),
            OWN,
        );
        assert!(ownership.wrote("orkestra/a.b"));
        assert!(ownership.applied_by("orkestra/a.b").is_none());
        assert!(!ownership.wrote("orkestra/other.b"));
    }
}
