//! The values that the children of a custom resource depend on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;

use super::{
    alternatives::{Constants, alternatives},
    is_mark, rendered,
};
use crate::reconcile::{
    cycle::{Cycle, Rendered},
    differ::without,
    failure::Failure,
    preview::{Assumptions, passed},
};
use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_object::value::{Node, Path, PathStep, set};
use orkestra_plan::{ChildKey, OperatorPlan};

/// The most passes that are tried for one custom resource: some seconds.
const MOST_PASSES: usize = 20_000;
/// The most values of one object that are tried.
const MOST_VALUES: usize = 1_000;
/// Other times, in hours from now: within the day, the week, the month and the year.
const HOURS: [i64; 8] = [1, 5, 11, 17, 24, 72, 24 * 30, 24 * 365];

/// The place of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// A field of the custom resource.
    Resource(Path),
    /// A field of a child, or of an object that the pass reads.
    Object(ChildKey, Path),
    /// A field of a custom resource of another operator.
    Cross(ChildKey, Path),
    /// A part of the answer to the external call or hook of that name.
    Answer(String, Path),
    /// The time.
    Time,
}

/// A value, and what depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    /// The value's place.
    pub input: Input,
    /// The value; none if it is not set.
    pub value: Option<Node>,
    /// The fields of children that have another value if this one has.
    pub changes: BTreeSet<(ChildKey, Path)>,
    /// The children that their entry makes only with this value.
    pub decides: BTreeSet<ChildKey>,
}

/// All values that some child depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// The values.
    pub found: Vec<Dependency>,
    /// True if some values were not tried.
    pub is_partial: bool,
}

/// A child of a pass.
struct Child {
    key: ChildKey,
    /// Its declaration, and which child of that it is: so a child is found again if its name is another one.
    place: (usize, usize),
    object: Node,
}

/// Finds the values that the children of the custom resource depend on: each value that the plan may read is changed alone, and what
/// the pass then renders is compared with `before`, the decision and the failures of the pass as it is. A change that makes the custom
/// resource invalid or a template fail counts for nothing.
pub(crate) fn search(
    plan: &OperatorPlan,
    assumed: &Assumptions<'_>,
    before: (&Cycle, Vec<Failure>),
) -> Dependencies {
    let mut trial = Trial {
        plan,
        assumed,
        constants: Constants::of(plan),
        children: children(before.0),
        failures: before.1,
        left: MOST_PASSES,
        all: Dependencies::default(),
    };
    trial.resource();
    trial.objects();
    trial.cross();
    trial.answers();
    trial.time();
    trial.all
}

/// Returns the children that a pass renders.
fn children(cycle: &Cycle) -> Vec<Child> {
    let mut count: BTreeMap<usize, usize> = BTreeMap::new();
    let child = |one: &Rendered| {
        let nth = count.entry(one.declared).or_default();
        *nth += 1;
        Child {
            key: one.key.clone(),
            place: (one.declared, *nth),
            object: one.object.clone(),
        }
    };
    rendered(cycle).map(child).collect()
}

struct Trial<'a> {
    plan: &'a OperatorPlan,
    assumed: &'a Assumptions<'a>,
    constants: Constants,
    children: Vec<Child>,
    failures: Vec<Failure>,
    /// The number of passes that may still be run.
    left: usize,
    all: Dependencies,
}

impl Trial<'_> {
    fn resource(&mut self) {
        let cr = &self.assumed.cr;
        let root = self.assumed.version.map(|version| &*version.schema);
        let schema = root.map(|root| Schema::of_objects(root, None));
        for (path, value) in self.values(cr, &self.plan.reads.cr) {
            let below = schema.as_ref().map(|schema| schema.at_path(&path));
            let schema = match below {
                Some(NestedSchema::Schema(schema)) => Some(schema),
                _ => None,
            };
            let others = alternatives(value.as_ref(), schema, &self.constants.near(&path));
            let input = Input::Resource(path.clone());
            for other in others {
                let assumed = Assumptions {
                    cr: changed(cr, &path, other),
                    ..self.assumed.clone()
                };
                self.try_one(&input, value.as_ref(), &assumed);
            }
        }
    }

    fn objects(&mut self) {
        let constants = self.constants.any();
        for (at, object) in self.assumed.children.iter().enumerate() {
            let Some(key) = ChildKey::of(object) else {
                continue;
            };
            let reads = self.plan.reads.children.get(&key.kind);
            // What is not declared as a child: the source of a copy, an object that pods use, or a namespace with its labels.
            let others = [&["data"][..], &["stringData"], &["metadata", "labels"]];
            let others = others.map(|fields| Path::of_fields(fields.iter().copied()));
            let paths = reads.map_or(&others[..], Vec::as_slice);
            for (path, value) in self.values(object, paths) {
                let others = alternatives(value.as_ref(), None, &constants);
                let input = Input::Object(key.clone(), path.clone());
                for other in others {
                    let children = with(self.assumed.children, at, changed(object, &path, other));
                    let assumed = Assumptions {
                        children: &children,
                        ..self.assumed.clone()
                    };
                    self.try_one(&input, value.as_ref(), &assumed);
                }
            }
        }
    }

    fn cross(&mut self) {
        let constants = self.constants.any();
        let paths = ["spec", "status"].map(|root| Path::of_fields([root]));
        for (at, object) in self.assumed.cross.iter().enumerate() {
            let Some(key) = ChildKey::of(object) else {
                continue;
            };
            for (path, value) in self.values(object, &paths) {
                let others = alternatives(value.as_ref(), None, &constants);
                let input = Input::Cross(key.clone(), path.clone());
                let given = self.assumed.cross;
                for other in others {
                    let cross = with(given, at, changed(object, &path, other));
                    let assumed = Assumptions {
                        cross: &cross,
                        ..self.assumed.clone()
                    };
                    self.try_one(&input, value.as_ref(), &assumed);
                }
            }
        }
    }

    fn answers(&mut self) {
        let constants = self.constants.any();
        for (name, answer) in self.assumed.calls {
            for (path, value) in self.values(answer, &[Path::root()]) {
                let input = Input::Answer(name.clone(), path.clone());
                for other in alternatives(value.as_ref(), None, &constants) {
                    let mut calls = self.assumed.calls.clone();
                    calls.insert(name.clone(), changed(answer, &path, other));
                    let assumed = Assumptions {
                        calls: &calls,
                        ..self.assumed.clone()
                    };
                    self.try_one(&input, value.as_ref(), &assumed);
                }
            }
        }
    }

    fn time(&mut self) {
        let now = self.assumed.now;
        let later = |hours| now.checked_add(SignedDuration::from_hours(hours)).ok();
        let value = Node::from(&*now.to_string());
        for now in HOURS.into_iter().filter_map(later) {
            let assumed: Assumptions<'_> = Assumptions {
                now,
                ..self.assumed.clone()
            };
            self.try_one(&Input::Time, Some(&value), &assumed);
        }
    }

    /// Returns the values of an object at and below the paths, and the paths that have none.
    fn values(&mut self, object: &Node, paths: &[Path]) -> Vec<(Path, Option<Node>)> {
        let mut found: BTreeMap<Path, Option<Node>> = BTreeMap::new();
        for path in paths {
            match object.at(path) {
                Some(node) => leaves(node, path, &mut |path, node| {
                    found.insert(path.clone(), Some(node.clone()));
                }),
                None => {
                    found.insert(path.clone(), None);
                }
            }
        }
        found.retain(|path, _| is_tried(path));
        if found.len() > MOST_VALUES {
            self.all.is_partial = true;
        }
        found.into_iter().take(MOST_VALUES).collect()
    }

    /// Runs the pass over other inputs, and adds what differs.
    fn try_one(&mut self, input: &Input, value: Option<&Node>, assumed: &Assumptions<'_>) {
        if self.left == 0 {
            self.all.is_partial = true;
            return;
        }
        self.left -= 1;
        let Ok((preview, _, cycle)) = passed(self.plan, assumed.clone()) else {
            return;
        };
        let (children, failures) = (children(&cycle), preview.failures);
        if !failures
            .iter()
            .all(|failure| self.failures.contains(failure))
        {
            return;
        }
        let (mut changes, mut decides) = (BTreeSet::new(), BTreeSet::new());
        for child in &self.children {
            match counterpart(child, &children) {
                Some(other) if other.place.0 == child.place.0 => {
                    differences(&child.object, &other.object, &Path::root(), &mut |at| {
                        changes.insert((child.key.clone(), at));
                    });
                }
                // Another entry makes a child of that name then: it is another child.
                Some(_) | None => {
                    decides.insert(child.key.clone());
                }
            }
        }
        if changes.is_empty() && decides.is_empty() {
            return;
        }
        match self.all.found.last_mut() {
            Some(last) if last.input == *input => {
                last.changes.append(&mut changes);
                last.decides.append(&mut decides);
            }
            _ => self.all.found.push(Dependency {
                input: input.clone(),
                value: value.cloned(),
                changes,
                decides,
            }),
        }
    }
}

/// Returns the same child of another pass: by its name, or by its declaration if its name is another one.
fn counterpart<'c>(child: &Child, others: &'c [Child]) -> Option<&'c Child> {
    let by_name = others.iter().find(|other| other.key == child.key);
    by_name.or_else(|| others.iter().find(|other| other.place == child.place))
}

/// Returns the list with another object at an index.
fn with(list: &[Node], at: usize, object: Node) -> Vec<Node> {
    let mut list = list.to_vec();
    list[at] = object;
    list
}

/// Returns the object with another value at a path, or without one.
fn changed(object: &Node, path: &Path, other: Option<Node>) -> Node {
    match other {
        Some(other) => {
            let mut object = object.clone();
            set(&mut object, path, other);
            object
        }
        None => without(object, std::slice::from_ref(path)),
    }
}

/// False for metadata that the API server sets, and for what Orkestra keeps on the object: another value would be another object.
fn is_tried(path: &Path) -> bool {
    let field = |at: usize| match path.steps().get(at) {
        Some(PathStep::Field(key)) => Some(&**key),
        _ => None,
    };
    match (field(0), field(1)) {
        (Some("metadata"), Some("name" | "namespace")) => true,
        (Some("metadata"), Some("labels" | "annotations")) => {
            path.steps().len() > 2
                && !is_mark(path)
                && !field(2).is_some_and(|key| key.starts_with("kubectl.kubernetes.io/"))
        }
        (Some("metadata" | "apiVersion" | "kind"), _) => false,
        _ => true,
    }
}

/// Calls `visit` with each scalar and each empty container at and below a node, and its path. Unlike the leaves of a difference, a null
/// counts: a template reads it.
pub(crate) fn leaves(node: &Node, path: &Path, visit: &mut dyn FnMut(&Path, &Node)) {
    match node {
        Node::Map(map) if map.iter().next().is_some() => {
            for (key, below) in map.iter() {
                let mut path = path.clone();
                path.push_field(key.clone());
                leaves(below, &path, visit);
            }
        }
        Node::List(items) if !items.is_empty() => {
            for (index, below) in items.iter().enumerate() {
                let mut path = path.clone();
                path.push_index(index);
                leaves(below, &path, visit);
            }
        }
        _ => visit(path, node),
    }
}

/// Calls `visit` with each path at which two objects differ, without those that Orkestra writes for itself.
fn differences(before: &Node, after: &Node, path: &Path, visit: &mut dyn FnMut(Path)) {
    match (before, after) {
        (Node::Map(one), Node::Map(other)) => {
            let keys = one
                .keys()
                .chain(other.keys().filter(|key| one.get(key).is_none()));
            for key in keys {
                let mut path = path.clone();
                path.push_field(key.clone());
                pair((one.get(key), other.get(key)), path, visit);
            }
        }
        (Node::List(one), Node::List(other)) => {
            for index in 0..one.len().max(other.len()) {
                let mut path = path.clone();
                path.push_index(index);
                pair((one.get(index), other.get(index)), path, visit);
            }
        }
        _ if before == after => {}
        _ => visit(path.clone()),
    }
}

fn pair((before, after): (Option<&Node>, Option<&Node>), path: Path, visit: &mut dyn FnMut(Path)) {
    if is_mark(&path) {
        return;
    }
    match (before, after) {
        (Some(before), Some(after)) => differences(before, after, &path, visit),
        (None, None) => {}
        _ => visit(path),
    }
}
