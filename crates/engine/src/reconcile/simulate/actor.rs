//! The reconciled custom resources.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    SimulatedResource,
    stored::{key_of, next_generation, uid, with_text},
};
use crate::reconcile::{
    child_metadata::set_in,
    crd_status::CrdStatus,
    inventory::Inventory,
    labels::Labels,
    metadata::Malformed,
    preview::{assume, merge, scopes},
    record::{CrRecord, kept_paths},
    status::written_paths,
};
use orkestra_language::api::names;
use orkestra_object::value::{Node, Path};
use orkestra_plan::{GroupKind, OperatorPlan};
use orkestra_template::Entropy;

/// A subject, and its state.
pub(crate) struct Actor<'a> {
    pub(crate) plan: &'a OperatorPlan,
    pub(crate) scopes: BTreeMap<GroupKind, bool>,
    pub(crate) crd_status: CrdStatus,
    /// The paths that its records keep.
    paths: Vec<Path>,
    pub(crate) entropy: Entropy,
    pub(crate) cr: Node,
    /// Whether its own operator has normalized the user's input.
    pub(crate) is_normalized: bool,
    /// Whether it was deleted, and nothing holds it any more.
    pub(crate) is_gone: bool,
}

impl<'a> Actor<'a> {
    pub(crate) fn new(subject: SimulatedResource<'a>, now: Timestamp) -> Result<Self, Malformed> {
        let SimulatedResource {
            plan,
            version,
            scopes: known,
            mut cr,
        } = subject;
        if let Some(version) = version {
            version.set_defaults(&mut cr);
        }
        let namespaced = plan.resource.namespaced.unwrap_or(true);
        complete(&mut cr, namespaced, now)?;
        Ok(Self {
            entropy: assume::entropy(plan, &key_of(&cr)?.object),
            scopes: scopes(plan, &known).0,
            crd_status: CrdStatus::assumed(namespaced, version),
            paths: kept_paths(&plan.reads.cr, written_paths(plan).into_iter()),
            plan,
            cr,
            is_normalized: false,
            is_gone: false,
        })
    }

    pub(crate) fn record(&self) -> Result<Arc<CrRecord>, Malformed> {
        CrRecord::read(&self.cr, &self.paths).map(Arc::new)
    }

    /// Applies a merge patch as a user does.
    pub(crate) fn change(&mut self, patch: &Node) {
        let before = self.cr.get("spec").cloned();
        merge(&mut self.cr, patch);
        if self.cr.get("spec") != before.as_ref() {
            next_generation(&mut self.cr);
        }
        self.is_normalized = false;
    }

    /// Requests its deletion at a moment, as a user does.
    pub(crate) fn request_deletion(&mut self, now: Timestamp) {
        let moment = Node::from(now.to_string());
        if !self.is_deleting() {
            set_in(&mut self.cr, &["metadata"], "deletionTimestamp", moment);
            next_generation(&mut self.cr);
        }
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.cr.meta("deletionTimestamp").is_some()
    }

    /// Takes the operator's finalizers off; whether any was there.
    pub(crate) fn release(&mut self) -> bool {
        let Some(Node::List(list)) = self.cr.meta("finalizers").cloned() else {
            return false;
        };
        let others = &self.plan.other_finalizers;
        let is_own = |one: &Node| {
            let name = one.as_str().unwrap_or_default();
            name == names::FINALIZER || others.iter().any(|other| **other == *name)
        };
        let left: Vec<Node> = list.iter().filter(|one| !is_own(one)).cloned().collect();
        let is_changed = left.len() < list.len();
        set_in(&mut self.cr, &["metadata"], "finalizers", Node::from(left));
        is_changed
    }

    /// Whether nothing holds it.
    pub(crate) fn is_free(&self) -> bool {
        let finalizers = self.cr.meta("finalizers").and_then(Node::as_list);
        finalizers.is_none_or(<[Node]>::is_empty)
    }

    /// Puts finalizers, labels and the inventory on the resource; whether anything was missing.
    pub(crate) fn mark(&mut self, inventory: &Inventory, labels: &Labels) -> bool {
        let before = self.cr.get("metadata").cloned();
        let own = self.plan.finalizer.then_some(names::FINALIZER);
        let others = self.plan.other_finalizers.iter().map(|name| &**name);
        for finalizer in own.into_iter().chain(others) {
            let list = self.cr.meta("finalizers");
            if let Some(list) = with_text(list, finalizer) {
                set_in(&mut self.cr, &["metadata"], "finalizers", list);
            }
        }
        let declared = labels
            .iter()
            .map(|(key, text)| (key.field(), key.key(), &**text));
        for (field, key, text) in declared.chain([("labels", names::LABEL_MANAGED, "true")]) {
            set_in(&mut self.cr, &["metadata", field], key, text.into());
        }
        let text = inventory.text();
        if !text.is_empty() {
            let parents = ["metadata", "annotations"];
            set_in(
                &mut self.cr,
                &parents,
                names::ANNOTATION_INVENTORY,
                text.into(),
            );
        }
        self.cr.get("metadata") != before.as_ref()
    }
}

/// Adds the fields that the API server would set: the namespace, a unique uid, and the rest.
pub(crate) fn complete(
    object: &mut Node,
    namespaced: bool,
    now: Timestamp,
) -> Result<(), Malformed> {
    let has_uid = object.meta("uid").is_some();
    if !has_uid {
        let id = uid(&key_of(object)?.to_string());
        set_in(object, &["metadata"], "uid", Node::from(id));
    }
    assume::custom_resource(object, namespaced, now);
    Ok(())
}
