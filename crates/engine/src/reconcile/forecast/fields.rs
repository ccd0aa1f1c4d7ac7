//! The fields of an object that an apply changes.

use crate::reconcile::{
    immutable::{is_nothing, is_same, joined},
    owned::{FieldSet, OwnValues, PathElement, trail_path, updated_by},
    record::ChildRecord,
};
use orkestra_language::api::names;
use orkestra_object::value::{Map, Node, Path};
use orkestra_plan::{ChildPlan, ListKeys};

/// A changed field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// The field: `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// The value before; none if the field is added.
    pub before: Option<Node>,
    /// The value after; none if the field is removed.
    pub after: Option<Node>,
}

/// Returns the fields that an apply of the wanted object changes in the live one, without Orkestra's own labels and annotations.
/// A field that the operator applied and no longer wants is removed, unless another manager has it, too, or it is one of `left`.
pub(crate) fn changes(
    (live, wanted): (&Node, &Node),
    left: &[Path],
    declared: &ChildPlan,
    record: &ChildRecord,
    manager: &str,
) -> Vec<FieldChange> {
    let mut found = Comparison {
        object: live,
        left,
        record,
        manager,
        ours: record.ownership.applied_by(manager),
        own: OwnValues {
            name: &record.id.key.name,
            owner: record.owner(),
        },
        changes: Vec::new(),
    };
    let mut trail = Vec::with_capacity(12);
    found.compare((live, wanted), Some(&*declared.list_keys), (&mut trail, ""));
    found.changes
}

struct Comparison<'r> {
    /// The live object.
    object: &'r Node,
    /// Fields that are left alone.
    left: &'r [Path],
    record: &'r ChildRecord,
    manager: &'r str,
    ours: Option<&'r FieldSet>,
    own: OwnValues<'r>,
    changes: Vec<FieldChange>,
}

/// The steps to a value of the live object, and its path.
type Position<'p, 'n> = (&'p mut Vec<PathElement<'n>>, &'p str);

impl Comparison<'_> {
    fn compare<'n>(
        &mut self,
        (live, wanted): (&'n Node, &Node),
        lists: Option<&ListKeys>,
        (trail, path): Position<'_, 'n>,
    ) {
        match (live, wanted) {
            (_, Node::Null) => {}
            (Node::Map(live), Node::Map(wanted)) => {
                for (key, wanted) in wanted.iter() {
                    let path = named(path, key);
                    if is_mark(&path) {
                        continue;
                    }
                    let below = lists.and_then(|lists| lists.field(key));
                    match live.iter().find(|(name, _)| *name == key) {
                        Some((key, live)) => {
                            trail.push(PathElement::Field(key));
                            self.compare((live, wanted), below, (trail, &path));
                            trail.pop();
                        }
                        None if is_nothing(wanted) => {}
                        None => self.add(path, None, Some(wanted)),
                    }
                }
                for (key, live) in live.iter().filter(|(key, _)| wanted.get(key).is_none()) {
                    trail.push(PathElement::Field(key));
                    self.gone(live, (trail, &named(path, key)));
                    trail.pop();
                }
            }
            (Node::List(live), Node::List(wanted)) => {
                let keyed = lists.filter(|lists| lists.is_associative());
                match keyed {
                    Some(lists) => self.items((live, wanted), lists, (trail, path)),
                    None if live.len() == wanted.len()
                        && live
                            .iter()
                            .zip(wanted.iter())
                            .all(|(live, wanted)| equal(live, wanted)) => {}
                    None => self.add(
                        path.to_owned(),
                        Some(&Node::from(live.to_vec())),
                        Some(&Node::from(wanted.to_vec())),
                    ),
                }
            }
            (live, wanted) if is_same(live, wanted) => {}
            (live, wanted) => self.add(path.to_owned(), Some(live), Some(wanted)),
        }
    }

    /// Compares the items of a list that some of their fields identify.
    fn items<'n>(
        &mut self,
        (live, wanted): (&'n [Node], &[Node]),
        lists: &ListKeys,
        (trail, path): Position<'_, 'n>,
    ) {
        for wanted in wanted {
            let path = format!("{path}[{}]", lists.name_of(wanted));
            let mut found = live.iter().enumerate();
            match found.find(|(_, live)| lists.is_same(live, wanted)) {
                Some((index, live)) => {
                    trail.push(PathElement::Item(index, live));
                    self.compare((live, wanted), lists.each(), (trail, &path));
                    trail.pop();
                }
                None => self.add(path, None, Some(wanted)),
            }
        }
        for (index, live) in live.iter().enumerate() {
            if wanted.iter().any(|wanted| lists.is_same(live, wanted)) {
                continue;
            }
            trail.push(PathElement::Item(index, live));
            self.gone(live, (trail, &format!("{path}[{}]", lists.name_of(live))));
            trail.pop();
        }
    }

    /// Adds the removal of a value that is no longer wanted, if the operator alone applied it.
    fn gone<'n>(&mut self, live: &'n Node, (trail, path): Position<'_, 'n>) {
        if is_mark(path) || !self.ours.is_some_and(|ours| ours.touches(trail, self.own)) {
            return;
        }
        let is_leaf = !matches!(live, Node::Map(map) if !map.is_empty());
        let is_whole = self.ours.is_some_and(|ours| ours.covers(trail, self.own));
        if is_leaf || is_whole {
            if !self.is_kept(trail) {
                self.add(path.to_owned(), Some(live), None);
            }
            return;
        }
        for (key, live) in live.as_map().into_iter().flat_map(Map::iter) {
            trail.push(PathElement::Field(key));
            self.gone(live, (trail, &named(path, key)));
            trail.pop();
        }
    }

    /// True if a field stays although the operator no longer applies it: it is left alone, or another manager has it, too.
    fn is_kept(&self, trail: &[PathElement<'_>]) -> bool {
        let path = trail_path(trail);
        let by_apply = || {
            self.record
                .ownership
                .applied_by_other(self.manager, trail, self.own)
        };
        let by_update = || {
            let managed = self.object.meta("managedFields");
            managed.is_some_and(|managed| {
                let others = updated_by(managed, self.object, &path, self.own);
                others.iter().any(|other| other != self.manager)
            })
        };
        self.left.contains(&path) || by_apply().is_some() || by_update()
    }

    fn add(&mut self, path: String, before: Option<&Node>, after: Option<&Node>) {
        self.changes.push(FieldChange {
            path,
            before: before.cloned(),
            after: after.cloned(),
        });
    }
}

/// True if two values of a list without keys are equal; the live one may have defaults in addition.
fn equal(live: &Node, wanted: &Node) -> bool {
    match (live, wanted) {
        (Node::Map(live), Node::Map(wanted)) => {
            wanted.iter().all(|(key, wanted)| match live.get(key) {
                Some(live) => equal(live, wanted),
                None => is_nothing(wanted),
            })
        }
        (Node::List(live), Node::List(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted.iter())
                    .all(|(live, wanted)| equal(live, wanted))
        }
        (live, wanted) => is_same(live, wanted),
    }
}

/// Returns the path of a field; a key that is no word is quoted.
fn named(path: &str, key: &str) -> String {
    let is_word = key
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_word {
        joined(path, key)
    } else {
        format!("{path}[\"{key}\"]")
    }
}

/// True if the field is a label or an annotation of Orkestra's own, an owner reference, or identifies the object.
fn is_mark(path: &str) -> bool {
    let own = ["metadata.labels[\"", "metadata.annotations[\""];
    let mut own = own.iter().filter_map(|prefix| path.strip_prefix(prefix));
    own.any(|key| key.starts_with(names::PREFIX))
        || path.starts_with("metadata.ownerReferences")
        || path.starts_with("metadata.managedFields")
        || [
            "apiVersion",
            "kind",
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
            "metadata.resourceVersion",
            "status",
        ]
        .contains(&path)
}
