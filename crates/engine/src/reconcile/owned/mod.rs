//! The ownership of an object's fields: `metadata.managedFields`, decoded into trees that equal entries of objects share.
//!
//! Source: Kubernetes API reference, `FieldsV1`: `f:<name>` is a field, `k:{…}` a list item by its keys, `v:…` a set's value,
//! `i:<n>` an item by position, `.` the path itself.

mod set;

use std::{collections::BTreeMap, sync::Arc};

use super::metadata::in_metadata;
use orkestra_object::value::{Key, Node, Path, Projection, intern::Interner};

pub(crate) use self::set::{Element, ElementValue};
pub use self::set::{FieldSet, OwnValues, PathElement};

/// The prefix of our field managers; the rest names the operator.
const OURS: &str = "orkestra/";
/// The maximum number of managers whose sets are compared with each other: far more than an object has, and few enough for an
/// object with thousands of entries.
const MOST_COMPARED: usize = 64;

/// The field ownership of one object, as far as a pass needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// The fields that each of our operators owns by apply: field manager and fields, sorted by manager.
    applied: Box<[(Key, FieldSet)]>,
    /// Our field managers that wrote by create or update.
    updated: Box<[Key]>,
    /// The fields that others own by apply: field manager and fields, sorted by manager.
    foreign: Box<[(Key, FieldSet)]>,
}

impl Ownership {
    /// Reads `metadata.managedFields` of an object.
    pub fn read<'n>(managed_fields: Option<&'n Node>, own: OwnValues<'_>) -> Self {
        let mut applied = BTreeMap::new();
        let mut foreign = BTreeMap::new();
        let mut updated = Vec::new();
        let entries = managed_fields.and_then(Node::as_list).unwrap_or_default();
        let fields_of = |entry: &'n Node| entry.get("fieldsV1");
        let all: Vec<&Node> = entries
            .iter()
            .filter_map(fields_of)
            .take(MOST_COMPARED)
            .collect();
        for entry in entries {
            let text = |field| entry.get(field).and_then(Node::as_str);
            let Some(manager) = text("manager") else {
                continue;
            };
            let ours = manager.starts_with(OURS) && text("subresource").is_none_or(str::is_empty);
            match (text("operation"), ours) {
                (Some("Apply"), _) => {
                    let fields = fields_of(entry)
                        .map(|node| {
                            let others =
                                all.iter().copied().filter(|set| !std::ptr::eq(*set, node));
                            FieldSet::read(node, own, &others.collect::<Vec<_>>())
                        })
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

    /// Returns the shared instance of equal values: ten thousand Deployments of one template have one.
    pub fn share(self) -> Arc<Self> {
        static SHARED: Interner<Ownership> = Interner::new();
        SHARED.share(self)
    }

    /// True if `manager`, one of ours, wrote the object at all.
    pub fn wrote(&self, manager: &str) -> bool {
        self.applied_by(manager).is_some() || self.updated.iter().any(|other| &**other == manager)
    }

    /// True if an operator of ours that writes as another manager wrote the object.
    pub fn wrote_as_another(&self, manager: &str) -> bool {
        let applied = self.applied.iter().map(|(other, _)| other);
        let mut ours = applied.chain(&self.updated);
        ours.any(|other| **other != *manager)
    }

    /// Returns the fields that `manager`, one of ours, owns by apply.
    pub fn applied_by(&self, manager: &str) -> Option<&FieldSet> {
        self.applied
            .iter()
            .find(|(other, _)| &**other == manager)
            .map(|(_, fields)| fields)
    }

    /// Returns a manager other than `manager` that owns by apply the leaf at `trail`: our operators are foreign to each
    /// other.
    pub fn applied_by_other(
        &self,
        manager: &str,
        trail: &[PathElement<'_>],
        own: OwnValues<'_>,
    ) -> Option<&str> {
        self.foreign
            .iter()
            .chain(self.applied.iter().filter(|(other, _)| &**other != manager))
            .find(|(_, fields)| fields.covers(trail, own))
            .map(|(other, _)| &**other)
    }

    /// Returns a manager that owns by apply the path at `trail`, or something below it.
    pub(crate) fn applier(&self, trail: &[PathElement<'_>], own: OwnValues<'_>) -> Option<&str> {
        let mut all = self.foreign.iter().chain(&self.applied);
        all.find(|(_, fields)| fields.touches(trail, own))
            .map(|(manager, _)| &**manager)
    }

    /// Returns the bytes on the heap, for the cache metrics; shared between siblings.
    pub fn heap_bytes(&self) -> usize {
        let sets = |sets: &[(Key, FieldSet)]| {
            sets.iter()
                .map(|(_, fields)| size_of::<(Key, FieldSet)>() + fields.heap_bytes())
                .sum::<usize>()
        };
        sets(&self.applied) + sets(&self.foreign) + self.updated.len() * size_of::<Key>()
    }
}

/// True if an operator of ours wrote the object before it was created: a backup was restored with its managed fields, which keep
/// their times. Both times are the API server's.
pub(crate) fn is_restored(object: &Node) -> bool {
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let Some(created) = time(object.meta_text("creationTimestamp")) else {
        return false;
    };
    let entries = object.meta("managedFields").and_then(Node::as_list);
    entries.unwrap_or_default().iter().any(|entry| {
        let text = |field| entry.get(field).and_then(Node::as_str);
        let is_ours = text("manager").is_some_and(|manager| manager.starts_with(OURS));
        is_ours && time(text("time")).is_some_and(|written| written < created)
    })
}

/// Adds the fields that [`Ownership::read`] and [`is_restored`] read.
pub(crate) fn with_owned_fields(projection: Projection) -> Projection {
    let fields = ["manager", "operation", "subresource", "time", "fieldsV1"];
    let fields = fields.map(|field| Path::of_fields([field]));
    projection.with_each(&in_metadata(&["managedFields"]), &fields)
}

/// A field manager that holds a field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The field manager.
    pub manager: String,
    /// True if it applied the field; else it updated it.
    pub applied: bool,
    /// When it last wrote the object, in the form of the API.
    pub time: Option<String>,
}

/// Returns the managers whose entries in `managed_fields` hold the leaf of `object` at `path`.
pub fn holders(
    managed_fields: &Node,
    object: &Node,
    path: &Path,
    own: OwnValues<'_>,
) -> Vec<Holder> {
    let Some(trail) = trail_of(object, path) else {
        return Vec::new();
    };
    let entries = managed_fields.as_list().unwrap_or_default().iter();
    let holders = entries.filter_map(|entry| {
        let text = |field| entry.get(field).and_then(Node::as_str);
        let fields = FieldSet::read(entry.get("fieldsV1")?, own, &[]);
        let holder = || {
            Some(Holder {
                manager: text("manager")?.to_owned(),
                applied: text("operation") == Some("Apply"),
                time: text("time").map(str::to_owned),
            })
        };
        fields.covers(&trail, own).then(holder).flatten()
    });
    holders.collect()
}

/// Returns the managers whose update entries in `managed_fields` hold the leaf of `object` at `path`.
pub fn updated_by(
    managed_fields: &Node,
    object: &Node,
    path: &Path,
    own: OwnValues<'_>,
) -> Vec<String> {
    let holders = holders(managed_fields, object, path, own).into_iter();
    let updates = holders.filter(|holder| !holder.applied);
    updates.map(|holder| holder.manager).collect()
}

/// Returns the steps that lead to `path` in `object`; none if there is no such path.
fn trail_of<'a>(object: &'a Node, path: &Path) -> Option<Vec<PathElement<'a>>> {
    let mut node = object;
    let mut trail = Vec::new();
    for step in path.steps() {
        match step {
            orkestra_object::value::PathStep::Field(field) => {
                let (key, child) = node.as_map()?.iter().find(|(key, _)| *key == field)?;
                trail.push(PathElement::Field(key));
                node = child;
            }
            orkestra_object::value::PathStep::Index(index) => {
                node = node.as_list()?.get(*index)?;
                trail.push(PathElement::Item(*index, node));
            }
        }
    }
    Some(trail)
}

/// Returns a path for messages and for removing a leaf from an object.
pub fn trail_path(trail: &[PathElement<'_>]) -> Path {
    let mut path = Path::default();
    for step in trail {
        match step {
            PathElement::Field(key) => path.push_field((*key).clone()),
            PathElement::Item(index, _) => path.push_index(*index),
        }
    }
    path
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const OWN: OwnValues<'_> = OwnValues {
        name: "web",
        owner: None,
    };

    pub(crate) fn node(text: &str) -> Node {
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
            Ownership::read(Some(&node(&managed)), OwnValues { name, owner: None }).share()
        };
        assert!(Arc::ptr_eq(&read("web-1"), &read("web-2")));
    }

    #[test]
    fn an_item_is_covered_by_the_keys_that_are_rendered() {
        let fields = node(
            r#"{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}"#,
        );
        let fields = FieldSet::read(&fields, OWN, &[]);
        let (ports, port) = (Key::from("ports"), Key::from("containerPort"));
        let covered = |item: &Node| {
            fields.covers(
                &[
                    PathElement::Field(&ports),
                    PathElement::Item(0, item),
                    PathElement::Field(&port),
                ],
                OWN,
            )
        };
        assert!(covered(&node(r#"{"containerPort":80}"#)));
        assert!(!covered(&node(r#"{"containerPort":81}"#)));
        assert!(!covered(&node(r#"{"containerPort":80,"protocol":"UDP"}"#)));
    }

    #[test]
    fn an_owned_path_with_nothing_below_covers_all_that_lies_below() {
        let fields = FieldSet::read(
            &node(r#"{"f:spec":{"f:selector":{},"f:other":{"f:x":{}}}}"#),
            OWN,
            &[],
        );
        let keys: Vec<Key> = ["spec", "selector", "app", "other"]
            .into_iter()
            .map(Key::from)
            .collect();
        assert!(fields.covers(
            &[
                PathElement::Field(&keys[0]),
                PathElement::Field(&keys[1]),
                PathElement::Field(&keys[2])
            ],
            OWN
        ));
        assert!(!fields.covers(
            &[
                PathElement::Field(&keys[0]),
                PathElement::Field(&keys[3]),
                PathElement::Field(&keys[2])
            ],
            OWN
        ));
        assert!(!fields.covers(
            &[PathElement::Field(&keys[0]), PathElement::Field(&keys[3])],
            OWN
        ));
    }

    #[test]
    fn an_empty_map_that_somebody_applies_covers_nothing_that_others_own_below_it() {
        let theirs = entry("other", "Apply", r#"{"f:data":{},"f:list":{}}"#);
        let covered = |another: &str, field: &str| {
            let managed = node(&format!("[{theirs},{another}]"));
            let (field, leaf) = (Key::from(field), Key::from("a"));
            let trail = [PathElement::Field(&field), PathElement::Field(&leaf)];
            Ownership::read(Some(&managed), OWN)
                .applied_by_other("orkestra/a.b", &trail, OWN)
                .is_some()
        };
        let fields = r#"{"f:data":{"f:a":{}},"f:list":{}}"#;
        let (edit, ours) = (
            entry("kubectl-edit", "Update", fields),
            entry("orkestra/a.b", "Apply", r#"{"f:data":{"f:b":{}}}"#),
        );
        for another in [&edit, &ours] {
            assert!(!covered(another, "data"), "{another}");
            // The list is atomic: no manager owns a part of it.
            assert!(covered(another, "list"), "{another}");
        }
        let whole = entry("kubectl-edit", "Update", r#"{"f:data":{".":{}}}"#);
        assert!(covered(&whole, "data"));
    }

    #[test]
    fn thousands_of_managers_are_read_in_time_that_grows_with_their_number() {
        let theirs: Vec<String> = (0..3_000)
            .map(|n| {
                entry(
                    &format!("m{n}"),
                    "Apply",
                    r#"{"f:data":{"f:a":{},"f:b":{}}}"#,
                )
            })
            .collect();
        let managed = node(&format!("[{}]", theirs.join(",")));
        let ownership = Ownership::read(Some(&managed), OWN);
        assert_eq!(ownership.foreign.len(), 3_000);
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
