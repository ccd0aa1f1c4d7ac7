//! Decides which rendered objects need a write, from the ownership of fields, never from values.
//!
//! The API server keeps our Apply entry in `managedFields` exact: a client that changes a value that we applied removes the
//! path from it, and an equal write leaves it. So an object needs no write if its `applied` annotation names the current
//! rendering and our entry covers every rendered leaf. That holds under any defaulting or normalization by the server.
//!
//! Several managers may apply one leaf while their values are equal. When our value changes, the server refuses and names the
//! leaf: from then on it belongs to the other manager.

use super::{
    owned::{Own, Step, trail_path},
    record::ChildRecord,
    refused,
};
use crate::api::names;
use crate::value::{Key, Map, Node, Path, Step as PathStep};

/// A field that another manager holds by apply: that manager owns it until it releases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The field, from the object's root.
    pub path: Path,
    /// The manager that holds it.
    pub manager: String,
}

/// The action needed for one rendered object that exists and is ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Whether the object was rendered from other input than the last applied one.
    pub changed: bool,
    /// Leaves that another client changed by update, or removed: drift.
    pub drift: Vec<Path>,
    /// Leaves that another manager holds by apply.
    pub held: Vec<Held>,
}

impl Difference {
    /// True if the object needs a write.
    pub fn needs_write(&self) -> bool {
        self.changed || !self.drift.is_empty()
    }
}

/// The wanted state of an object.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The rendered object.
    pub object: &'a Node,
    /// The hash of the input that it was rendered from.
    pub hash: &'a str,
    /// `forceConflict`: fields that others hold by apply count as drift.
    pub take_held: bool,
    /// See [`crate::plan::ChildPlan::whole_lists`].
    pub whole_lists: &'a [Path],
}

/// Compares a rendered object with the field ownership of the live object.
///
/// `refused` are the fields, in the server's notation, that it named when it refused the rendered object: those that another
/// manager applies belong to that manager, even if we applied the same value until now.
pub fn difference(
    wanted: &Wanted<'_>,
    record: &ChildRecord,
    manager: &str,
    refused: &[String],
) -> Difference {
    let own = Own {
        name: &record.id.key.name,
        owner: record.owner(),
    };
    let ours = record.ownership.applied_by(manager);
    let mut difference = Difference {
        changed: !record.has_applied(wanted.hash),
        drift: Vec::new(),
        held: Vec::new(),
    };
    let mut trail = Vec::with_capacity(12);
    each_leaf(wanted.object, &mut trail, &mut |trail, leaf| {
        let is_refused = || {
            refused
                .iter()
                .any(|field| refused::names(field, trail, own))
        };
        let is_covered = ours.is_some_and(|fields| fields.covers(trail, own));
        if is_identity(trail) || (is_covered && !is_refused()) {
            return;
        }
        match record.ownership.applied_by_other(manager, trail, own) {
            Some(other) if !wanted.take_held && !is_mark(trail) => difference.held.push(Held {
                path: trail_path(trail),
                manager: other.to_owned(),
            }),
            // While it is empty, a list that is owned by item is in no manager's fields.
            None if is_empty_list(leaf) && !is_owned_whole(trail, wanted.whole_lists) => {}
            _ => difference.drift.push(trail_path(trail)),
        }
    });
    difference
}

/// `apiVersion`, `kind` and the name are in no manager's fields.
fn is_identity(trail: &[Step<'_>]) -> bool {
    match trail {
        [Step::Field(root)] => matches!(&***root, "apiVersion" | "kind"),
        [Step::Field(root), Step::Field(field)] => {
            &***root == "metadata" && matches!(&***field, "name" | "namespace")
        }
        _ => false,
    }
}

/// Labels and annotations of our own domain are ours, even if another client applies an exported object with them: without
/// them it is unknown what was applied.
fn is_mark(trail: &[Step<'_>]) -> bool {
    matches!(trail, [.., Step::Field(map), Step::Field(name)]
        if matches!(&***map, "annotations" | "labels") && name.starts_with(names::PREFIX))
}

fn is_empty_list(node: &Node) -> bool {
    node.as_list().is_some_and(<[Node]>::is_empty)
}

/// True if it leads to one of these lists, or into one: their paths are without indexes.
fn is_owned_whole(trail: &[Step<'_>], lists: &[Path]) -> bool {
    let fields = trail.iter().filter_map(|step| match step {
        Step::Field(key) => Some(*key),
        Step::Item(..) => None,
    });
    lists.iter().any(|list| {
        let mut fields = fields.clone();
        let mut steps = list.steps().iter();
        steps.all(|step| matches!((step, fields.next()), (PathStep::Field(key), Some(field)) if key == field))
    })
}

/// Calls `visit` with the path of each leaf and the leaf. A null is not a leaf: no client can remove it. An empty map
/// (`emptyDir: {}`) and an empty list are leaves: their paths may be owned.
fn each_leaf<'a>(
    node: &'a Node,
    trail: &mut Vec<Step<'a>>,
    visit: &mut impl FnMut(&[Step<'a>], &Node),
) {
    match node {
        Node::Null => {}
        Node::Map(map) if !map.is_empty() => {
            for (key, child) in map.iter() {
                trail.push(Step::Field(key));
                each_leaf(child, trail, visit);
                trail.pop();
            }
        }
        Node::List(list) if !list.is_empty() => {
            for (index, child) in list.iter().enumerate() {
                trail.push(Step::Item(index, child));
                each_leaf(child, trail, visit);
                trail.pop();
            }
        }
        _ => visit(trail, node),
    }
}

/// Returns `rendered` without the leaves at `paths`, and without maps that become empty.
pub fn without(rendered: &Node, paths: &[Path]) -> Node {
    if paths.is_empty() {
        return rendered.clone();
    }
    prune(rendered, &Path::default(), paths).unwrap_or_default()
}

fn prune(node: &Node, at: &Path, paths: &[Path]) -> Option<Node> {
    if paths.contains(at) {
        return None;
    }
    if !paths.iter().any(|path| path.starts_with(at)) {
        return Some(node.clone());
    }
    match node {
        Node::Map(map) => {
            let kept: Map = map
                .iter()
                .filter_map(|(key, child)| {
                    let mut path = at.clone();
                    path.push_field(key.clone());
                    Some((Key::clone(key), prune(child, &path, paths)?))
                })
                .collect();
            (!kept.is_empty()).then_some(Node::Map(kept))
        }
        Node::List(list) => {
            let kept: Vec<Node> = list
                .iter()
                .enumerate()
                .filter_map(|(index, child)| {
                    let mut path = at.clone();
                    path.push_index(index);
                    prune(child, &path, paths)
                })
                .collect();
            (!kept.is_empty()).then(|| Node::List(kept.into()))
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::GroupKind;

    const MANAGER: &str = "orkestra/websites.demo.orkestra.io";
    const HASH: &str = "00112233445566778899aabbccddeeff";

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    fn live(applied: &str, entries: &str) -> ChildRecord {
        let object = format!(
            r#"{{"metadata":{{"name":"web","namespace":"shop","uid":"c-1","resourceVersion":"7","annotations":{{"orkestra.orkspace.io/applied":"{applied}","orkestra.orkspace.io/child":"ConfigMap/web"}},"ownerReferences":[{{"controller":true,"uid":"u-1"}}],"managedFields":[{entries}]}}}}"#
        );
        ChildRecord::read(&GroupKind::parse("ConfigMap"), &node(&object), &[]).unwrap()
    }

    fn entry(manager: &str, operation: &str, fields: &str) -> String {
        format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{fields}}}"#)
    }

    const RENDERED: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":"1","b":"2"}}"#;

    fn wanted(object: &Node) -> Wanted<'_> {
        Wanted {
            object,
            hash: HASH,
            take_held: false,
            whole_lists: &[],
        }
    }

    /// Compares [`RENDERED`], of which nothing was refused.
    fn compared(record: &ChildRecord, take_held: bool) -> Difference {
        let rendered = node(RENDERED);
        let wanted = Wanted {
            take_held,
            ..wanted(&rendered)
        };
        difference(&wanted, record, MANAGER, &[])
    }

    #[test]
    fn an_object_whose_hash_and_fields_are_ours_needs_no_write() {
        let record = live(
            HASH,
            &entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{},"f:b":{}}}"#),
        );
        let found = compared(&record, false);
        assert!(!found.needs_write());
        assert!(record.is_ours(&"u-1".into(), MANAGER));
    }

    #[test]
    fn a_field_that_somebody_updated_or_removed_is_drift() {
        let record = live(HASH, &entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{}}}"#));
        let found = compared(&record, false);
        assert!(!found.changed);
        assert_eq!(found.drift, [Path::parse("data.b").unwrap()]);
    }

    #[test]
    fn a_field_that_another_manager_applied_is_held_and_not_drift() {
        let entries = [
            entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{}}}"#),
            entry("argocd", "Apply", r#"{"f:data":{"f:b":{}}}"#),
        ];
        let record = live(HASH, &entries.join(","));
        let found = compared(&record, false);
        assert!(!found.needs_write());
        assert_eq!(
            found.held,
            [Held {
                path: Path::parse("data.b").unwrap(),
                manager: "argocd".to_owned()
            }]
        );
        let taken = compared(&record, true);
        assert_eq!(taken.drift, [Path::parse("data.b").unwrap()]);
    }

    /// Compares `RENDERED` after the server refused it, where `ours` and `theirs` are the fields that we and others apply.
    fn refused(fields: &[&str], ours: &str, theirs: &str, take_held: bool) -> Difference {
        let entries = [
            entry(MANAGER, "Apply", ours),
            entry("argocd", "Apply", theirs),
            entry("kubectl-edit", "Update", ours),
        ];
        let record = live("old", &entries.join(","));
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        let rendered = node(RENDERED);
        let wanted = Wanted {
            take_held,
            ..wanted(&rendered)
        };
        difference(&wanted, &record, MANAGER, &fields)
    }

    #[test]
    fn of_the_fields_that_another_applies_too_those_that_were_refused_are_held() {
        let both = r#"{"f:data":{"f:a":{},"f:b":{}}}"#;
        let found = refused(&[".data.b"], both, both, false);
        let held = Held {
            path: Path::parse("data.b").unwrap(),
            manager: "argocd".to_owned(),
        };
        assert_eq!(found.held, [held]);
        assert!(found.changed);
        let taken = refused(&[".data.b"], both, both, true);
        assert_eq!((taken.changed, &taken.held[..]), (true, &[][..]));
    }

    #[test]
    fn a_refused_field_that_others_only_updated_is_not_held() {
        let (both, one) = (
            r#"{"f:data":{"f:a":{},"f:b":{}}}"#,
            r#"{"f:data":{"f:a":{}}}"#,
        );
        assert_eq!(refused(&[".data.b"], both, one, false).held, []);
    }

    #[test]
    fn an_empty_list_is_another_s_where_they_apply_it_and_drift_only_where_it_is_owned_whole() {
        let rendered = node(r#"{"spec":{"rules":[{"args":[]}]}}"#);
        let found_of = |whole_lists: &[Path], operation: &str, theirs: &str, take_held: bool| {
            let record = live(HASH, &entry("other", operation, theirs));
            let wanted = Wanted {
                take_held,
                whole_lists,
                ..wanted(&rendered)
            };
            let found = difference(&wanted, &record, MANAGER, &[]);
            (found.held.len(), found.drift.len())
        };
        let found = |operation: &str, theirs: &str, take_held: bool| {
            found_of(&[], operation, theirs, take_held)
        };
        let atomic = r#"{"f:spec":{"f:rules":{"i:0":{"f:args":{}}}}}"#;
        // An apply does not own the list itself, an update does.
        let keyed = |itself: &str| {
            let below = r#""k:{\"name\":\"a\"}":{".":{},"f:name":{}}"#;
            format!(r#"{{"f:spec":{{"f:rules":{{"i:0":{{"f:args":{{{itself}{below}}}}}}}}}}}"#)
        };
        let (applied, updated) = (keyed(""), keyed(r#"".":{},"#));
        let elsewhere = r#"{"f:spec":{"f:rules":{"i:1":{"f:args":{}}}}}"#;
        assert_eq!(found("Apply", atomic, false), (1, 0));
        assert_eq!(found("Apply", atomic, true), (0, 1));
        for (operation, fields) in [
            ("Apply", &*applied),
            ("Update", &*updated),
            ("Update", elsewhere),
        ] {
            assert_eq!(
                found(operation, fields, false),
                (0, 0),
                "{operation} {fields}"
            );
        }
        for (list, drifts) in [
            ("spec.rules.args", 1),
            ("spec.rules", 1),
            ("spec.args", 0),
            ("spec.rules.args.deeper", 0),
        ] {
            let whole = [Path::parse(list).unwrap()];
            assert_eq!(
                found_of(&whole, "Update", atomic, false),
                (0, drifts),
                "{list}"
            );
            assert_eq!(found_of(&whole, "Apply", atomic, false), (1, 0), "{list}");
        }
        let paths = [Path::parse("spec.rules[0].args").unwrap()];
        assert_eq!(without(&rendered, &paths), Node::Null);
    }

    #[test]
    fn marks_of_ours_are_not_held_by_who_applies_them_too() {
        let marks =
            r#"{"f:metadata":{"f:annotations":{"f:orkestra.orkspace.io/applied":{},"f:n":{}}}}"#;
        let rendered =
            node(r#"{"metadata":{"annotations":{"orkestra.orkspace.io/applied":"new","n":"2"}}}"#);
        let entries = [
            entry(MANAGER, "Apply", marks),
            entry("argocd", "Apply", marks),
        ];
        let record = live("old", &entries.join(","));
        let fields = [
            ".metadata.annotations.orkestra.orkspace.io/applied".to_owned(),
            ".metadata.annotations.n".to_owned(),
        ];
        let found = difference(&wanted(&rendered), &record, MANAGER, &fields);
        let held: Vec<String> = found
            .held
            .iter()
            .map(|held| held.path.to_string())
            .collect();
        assert_eq!(held, ["metadata.annotations.n"]);
    }

    #[test]
    fn what_is_rendered_from_other_input_is_changed() {
        let record = live(
            "old",
            &entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{},"f:b":{}}}"#),
        );
        assert!(compared(&record, false).changed);
    }

    #[test]
    fn a_leaf_is_taken_out_with_the_maps_that_it_leaves_empty() {
        let rendered = node(r#"{"data":{"a":"1"},"spec":{"x":{"y":1},"z":[{"n":1},{"n":2}]}}"#);
        let paths: Vec<Path> = ["data.a", "spec.x.y", "spec.z[1].n"]
            .iter()
            .map(|text| Path::parse(text).unwrap())
            .collect();
        assert_eq!(
            without(&rendered, &paths),
            node(r#"{"spec":{"z":[{"n":1}]}}"#)
        );
    }
}
