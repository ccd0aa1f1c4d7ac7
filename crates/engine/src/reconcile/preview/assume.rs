//! Adds the fields that an API server sets to objects from files, and removes them from the output.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::super::{
    calls,
    child_metadata::set_in,
    data_source::{self, Given},
    external::{answered, assumed},
    metadata::{Malformed, NAMESPACE, group_kind, owner_label},
    record::{CrRecord, OwnerMark, child_mark},
    sources::{Answer, CERTIFICATE_PARTS, Read},
};
use orkestra_language::api::names;
use orkestra_object::value::{Node, hash, hash_text};
use orkestra_plan::{ObjectKey, OperatorPlan};
use orkestra_template::Entropy;

/// The uid of objects without one.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Completes a custom resource; true if it had no uid.
pub(crate) fn custom_resource(cr: &mut Node, namespaced: bool, now: Timestamp) -> bool {
    let had_uid = has(cr, "uid");
    complete(cr, namespaced.then_some(NAMESPACE), now);
    if !has(cr, "generation") {
        set_in(cr, &["metadata"], "generation", Node::Int(1));
    }
    !had_uid
}

/// Removes the fields that [`custom_resource`] added.
pub(crate) fn forget(cr: &mut Node, had_no_uid: bool) {
    if had_no_uid {
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            remove(cr, &["metadata"], field);
        }
    }
}

/// The owner of an object that is given as a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The custom resource, according to an owner reference, a label or an annotation.
    This,
    /// Another object.
    Other,
    /// Unknown: it may be a child written by hand, or an object that the custom resource only reads.
    Unknown,
}

/// Returns the owner of an object, for a custom resource of the kind of `plan`. A resource without a uid is recognized by
/// kind and name.
pub(crate) fn owner(object: &Node, plan: &OperatorPlan, cr: &CrRecord, had_no_uid: bool) -> Owner {
    let judge = |is_this| if is_this { Owner::This } else { Owner::Other };
    let (own, key) = (plan.resource.group_kind(), &cr.id.key);
    let is_own_uid = |uid: Option<&str>| uid.is_some_and(|uid| cr.id.uid == *uid);
    let owners = object.meta("ownerReferences").and_then(Node::as_list);
    let mut owners = owners.unwrap_or_default().iter();
    if let Some(owner) = owners.find(|owner| is_true(owner, "controller")) {
        let text = |field| owner.get(field).and_then(Node::as_str);
        let is_same =
            || group_kind(owner).is_ok_and(|kind| kind == own) && text("name") == Some(&*key.name);
        return judge(is_own_uid(text("uid")) || (had_no_uid && is_same()));
    }
    if let Some(mark) = object
        .annotation(names::ANNOTATION_OWNER)
        .and_then(OwnerMark::parse)
    {
        let is_same = mark.kind == own && mark.key == *key;
        return judge(mark.uid == cr.id.uid || (had_no_uid && is_same));
    }
    let label = owner_label(object).filter(|_| !had_no_uid);
    if label.is_some() {
        return judge(is_own_uid(label));
    }
    if object.annotation(names::ANNOTATION_CHILD).is_some() {
        Owner::This
    } else {
        Owner::Unknown
    }
}

fn is_true(node: &Node, field: &str) -> bool {
    node.get(field).and_then(Node::as_bool) == Some(true)
}

/// Returns a child with the fields that an API server and the operator add; with `is_own`, including the proof that it
/// belongs to the custom resource. A missing creation time becomes `created`.
pub(crate) fn child(
    mut object: Node,
    plan: &OperatorPlan,
    cr: &CrRecord,
    is_own: bool,
    created: Timestamp,
) -> Result<Node, Malformed> {
    let kind = group_kind(&object)?;
    let name = object
        .meta_text("name")
        .ok_or(Malformed("name"))?
        .to_owned();
    complete(&mut object, None, created);
    if is_own {
        let owner = Node::object([
            ("uid", Node::from(&cr.id.uid)),
            ("controller", Node::Bool(true)),
        ]);
        let owners = Node::List([owner].into());
        set_in(&mut object, &["metadata"], "ownerReferences", owners);
    }
    let mark = Node::from(child_mark(&kind, &name));
    set_in(
        &mut object,
        &["metadata", "annotations"],
        names::ANNOTATION_CHILD,
        mark,
    );
    // kubectl hides managed fields: values count as ours, so that a certificate does not count as foreign.
    if !has(&object, "managedFields") {
        let entry = Node::object([
            ("manager", Node::from(plan.field_manager())),
            ("operation", Node::from("Apply")),
            ("fieldsV1", Node::object([("f:data", Node::object([]))])),
        ]);
        set_in(
            &mut object,
            &["metadata"],
            "managedFields",
            Node::List([entry].into()),
        );
    }
    Ok(object)
}

/// Answers the reads of a pass: from the given objects and answers to calls, with a placeholder certificate, and with the
/// assumptions of the sources.
pub(crate) fn answer(
    read: &Read,
    (objects, calls): (&[Node], &BTreeMap<String, Node>),
    given: Given<'_>,
) -> Answer {
    match read {
        Read::Object(key) => {
            let is_meant = |object: &&Node| {
                group_kind(object).is_ok_and(|kind| kind == key.kind)
                    && object.meta_text("name") == Some(&*key.object.name)
                    && object.meta_text("namespace") == key.object.namespace.as_deref()
            };
            let found = objects.iter().find(is_meant);
            found.map_or(Answer::Absent, |object| {
                Answer::Ready(Arc::new(object.clone()))
            })
        }
        Read::Certificate(_) => {
            let part = |name: &'static str| (name, Node::from("made by the operator"));
            Answer::Ready(Arc::new(Node::object(CERTIFICATE_PARTS.map(part))))
        }
        Read::Call(request) => called(request, calls),
        // It is the only custom resource.
        Read::Same(..) => Answer::Absent,
        read => data_source::assumed(read, given),
    }
}

/// Returns the assumed answer to a call.
fn called(request: &calls::CallRequest, given: &BTreeMap<String, Node>) -> Answer {
    match given
        .get(&*request.name)
        .map(|answer| assumed(answer, request))
    {
        None => Answer::Absent,
        Some(Ok(answer)) => answered(&answer),
        Some(Err(why)) => Answer::Unavailable(why.into()),
    }
}

/// Removes fields that contain the uid from a rendered object, if the uid is made up: the garbage collector would delete the
/// object for it.
pub(crate) fn unmark(object: &mut Node, had_no_uid: bool) {
    if !had_no_uid {
        return;
    }
    remove(object, &["metadata"], "ownerReferences");
    remove(object, &["metadata", "labels"], names::LABEL_OWNER_UID);
    remove(
        object,
        &["metadata", "annotations"],
        names::ANNOTATION_OWNER,
    );
    remove(
        object,
        &["metadata", "annotations"],
        names::ANNOTATION_APPLIED,
    );
}

/// Returns the random source of the custom resource: always the same.
pub(crate) fn entropy(plan: &OperatorPlan, key: &ObjectKey) -> Entropy {
    let text = hash_text(&format!("{}\n{key}", plan.resource.group_kind()));
    let mut seed = [0; 32];
    for (byte, digit) in seed.iter_mut().zip(text.bytes()) {
        *byte = digit;
    }
    Entropy::seeded(seed)
}

fn complete(object: &mut Node, namespace: Option<&str>, now: Timestamp) {
    let version = hash(object);
    let fields = [
        ("namespace", namespace.map(Node::from)),
        ("uid", Some(Node::from(NO_UID))),
        ("resourceVersion", Some(Node::from(version))),
        ("creationTimestamp", Some(Node::from(now.to_string()))),
    ];
    for (name, value) in fields {
        if let Some(value) = value.filter(|_| !has(object, name)) {
            set_in(object, &["metadata"], name, value);
        }
    }
}

fn has(object: &Node, name: &str) -> bool {
    object
        .meta(name)
        .is_some_and(|value| !value.is_empty_value())
}

fn remove(object: &mut Node, parents: &[&str], name: &str) {
    let mut node = object;
    for parent in parents {
        let Node::Map(map) = node else { return };
        let Some(below) = map.get_mut(parent) else {
            return;
        };
        node = below;
    }
    if let Node::Map(map) = node {
        map.remove(name);
    }
}
