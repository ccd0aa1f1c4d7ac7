//! Custom resources of other operators, from files.

use std::sync::Arc;

use super::{
    super::sources::{Answer, CrossBy, CrossRead},
    assume,
};
use crate::{
    plan::{
        OperatorPlan,
        cross::{CrossPlan, CrossTarget, label_path},
    },
    value::{Node, project},
};

/// Returns the given object for a read: for an entry of the same Katalog an object of its kind, for another Katalog's any.
pub(in crate::reconcile) fn answer(
    plan: &OperatorPlan,
    read: &CrossRead,
    given: &[Node],
) -> Answer {
    let Some(entry) = plan.cross.iter().find(|entry| entry.name == read.name) else {
        return Answer::Absent;
    };
    let candidates = given.iter().filter(|object| is_meant(entry, read, object));
    match candidates.min_by_key(|object| text(object, "name")) {
        Some(object) => Answer::Ready(Arc::new(project(object, &entry.reads))),
        None => Answer::Absent,
    }
}

fn is_meant(entry: &CrossPlan, read: &CrossRead, object: &Node) -> bool {
    let is_of_kind = match &entry.target {
        CrossTarget::Own(_, kind) => {
            assume::kind(object).is_ok_and(|found| found == kind.group_kind())
        }
        CrossTarget::Other(_) | CrossTarget::Labels(_) => true,
    };
    let namespace = text(object, "namespace");
    let is_there = match read.namespace.as_deref() {
        Some(wanted) => namespace.unwrap_or(assume::NAMESPACE) == wanted,
        None => true,
    };
    let is_chosen = match &read.by {
        CrossBy::Name(name) => text(object, "name") == Some(name),
        CrossBy::Labels(labels) => labels.iter().all(|(key, value)| {
            let label = object.at(&label_path(key));
            label.and_then(Node::as_str) == Some(value)
        }),
    };
    is_of_kind && is_there && is_chosen
}

fn text<'a>(object: &'a Node, field: &str) -> Option<&'a str> {
    object.get("metadata")?.get(field)?.as_str()
}
