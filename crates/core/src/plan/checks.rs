//! Checks of children against each other.

use std::collections::BTreeMap;

use super::{ChildPlan, Condition, GroupKind, Leaf, Mode, OperatorPlan, ResourceType, describe};
use crate::{
    diagnostics::Code,
    resources::scope::{At, Problems},
    value::Node,
};

/// Refuses children of one box that would be the same object at the same time.
///
/// An entry that stands in `onCreate` and, equal, in `onReconcile` is the latter: it is named twice, not made twice.
pub(crate) fn within(at: &At<'_>, children: Vec<ChildPlan>) -> Vec<ChildPlan> {
    let mut kept: Vec<ChildPlan> = Vec::with_capacity(children.len());
    for child in children {
        let Some(position) = kept.iter().position(|other| {
            same_object(other, &child) && could_both_hold(&other.when, &child.when)
        }) else {
            kept.push(child);
            continue;
        };
        let other = &kept[position];
        let equal = describe::tree(&other.body) == describe::tree(&child.body)
            && same_when(&other.when, &child.when);
        if other.mode == Mode::Once && child.mode == Mode::Reconciled && equal {
            kept[position] = child;
        } else {
            at.place(&child.path).error_hint(
                Code::SameChildTwice,
                format!("{} is this {} too", other.path, child.kind.kind),
                "give them different names, or `when` conditions that exclude each other",
            );
        }
    }
    kept
}

/// Refuses children of different operators that are the same object whatever the custom resources are called.
pub(crate) fn across(problems: &Problems, operators: &[OperatorPlan]) {
    let mut seen: BTreeMap<(GroupKind, Option<String>, String), (&str, &ChildPlan)> =
        BTreeMap::new();
    for operator in operators {
        for child in &operator.children {
            let Some(key) = fixed_object(child) else {
                continue;
            };
            match seen.get(&key) {
                Some((owner, other))
                    if *owner != operator.name && could_both_hold(&other.when, &child.when) =>
                {
                    problems.place(&child.path).error_hint(
                        Code::SameChildTwice,
                        format!(
                            "{} is the same {}, whatever the custom resources are called",
                            other.path, child.kind.kind
                        ),
                        "put `{{ .metadata.name }}` into the names",
                    );
                }
                Some(_) => {}
                None => {
                    seen.insert(key, (&operator.name, child));
                }
            }
        }
    }
}

/// Tells which children stay behind when their custom resource, which has no finalizer, is deleted: owner references reach
/// into the own namespace only.
pub(crate) fn left_behind(at: &At<'_>, children: &[ChildPlan], owner: Option<&ResourceType>) {
    let anywhere = owner.is_some_and(|owner| owner.namespaced == Some(false));
    for child in children.iter().filter(|_| !anywhere) {
        if child.namespace.is_some() || child.kind.namespaced == Some(false) {
            at.place(&child.path).warn(
                Code::LeftBehind,
                "with `finalizers: []` this stays when its custom resource is deleted",
            );
        }
    }
}

/// Kind, namespace and name of a child whose place in the cluster depends on no custom resource.
fn fixed_object(child: &ChildPlan) -> Option<(GroupKind, Option<String>, String)> {
    let literal = |leaf: &Leaf| leaf.template.literal().map(|text| text.trim().to_owned());
    let namespace = if child.kind.namespaced == Some(false) {
        None
    } else {
        Some(literal(child.namespace.as_ref()?)?)
    };
    Some((child.kind.group_kind(), namespace, literal(&child.name)?))
}

fn same_object(a: &ChildPlan, b: &ChildPlan) -> bool {
    let text = |leaf: &Leaf| leaf.template.source().trim().to_owned();
    a.kind.group_kind() == b.kind.group_kind()
        && text(&a.name) == text(&b.name)
        && a.namespace.as_ref().map(text) == b.namespace.as_ref().map(text)
}

/// Whether two gates may be open at the same time, as far as that can be told: those that differ are taken to exclude each
/// other.
fn could_both_hold(a: &[Condition], b: &[Condition]) -> bool {
    a.is_empty() || b.is_empty() || same_when(a, b)
}

fn same_when(a: &[Condition], b: &[Condition]) -> bool {
    let describe = |when: &[Condition]| when.iter().map(describe::condition).collect::<Vec<Node>>();
    describe(a) == describe(b)
}
