//! The custom resources that are reconciled.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    Subject,
    stored::{key_of, next_generation, uid, with_text},
};
use crate::{
    api::names,
    plan::{GroupKind, OperatorPlan},
    reconcile::{
        facts::CrdFacts,
        inventory::Inventory,
        labels::Labels,
        marks::set_in,
        preview::{assume, merge, scopes},
        record::{CrRecord, Malformed, kept_paths},
        status::written_paths,
    },
    template::Entropy,
    value::{Node, Path},
};

/// A subject, and what is remembered of it.
pub(super) struct Actor<'a> {
    pub(super) plan: &'a OperatorPlan,
    pub(super) scopes: BTreeMap<GroupKind, bool>,
    pub(super) facts: CrdFacts,
    /// What its records keep.
    paths: Vec<Path>,
    pub(super) entropy: Entropy,
    pub(super) cr: Node,
    /// Whether its own operator has normalized what its user wrote.
    pub(super) is_normalized: bool,
}

impl<'a> Actor<'a> {
    pub(super) fn new(subject: Subject<'a>, now: Timestamp) -> Result<Self, Malformed> {
        let Subject {
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
            facts: CrdFacts::assumed(namespaced, version),
            paths: kept_paths(&plan.reads.cr, written_paths(plan).into_iter()),
            plan,
            cr,
            is_normalized: false,
        })
    }

    pub(super) fn record(&self) -> Result<Arc<CrRecord>, Malformed> {
        CrRecord::read(&self.cr, &self.paths).map(Arc::new)
    }

    /// Applies a merge patch, as a user does.
    pub(super) fn change(&mut self, patch: &Node) {
        let before = self.cr.get("spec").cloned();
        merge(&mut self.cr, patch);
        if self.cr.get("spec") != before.as_ref() {
            next_generation(&mut self.cr);
        }
        self.is_normalized = false;
    }

    /// Puts finalizers, labels and the inventory on the resource; whether anything was missing.
    pub(super) fn mark(&mut self, inventory: &Inventory, labels: &Labels) -> bool {
        let before = self.cr.get("metadata").cloned();
        let own = self.plan.finalizer.then_some(names::FINALIZER);
        let others = self.plan.other_finalizers.iter().map(|name| &**name);
        for finalizer in own.into_iter().chain(others) {
            let list = self
                .cr
                .get("metadata")
                .and_then(|meta| meta.get("finalizers"));
            if let Some(list) = with_text(list, finalizer) {
                set_in(&mut self.cr, &["metadata"], "finalizers", list);
            }
        }
        let worn = labels
            .iter()
            .map(|(key, text)| (key.field(), key.key(), &**text));
        for (field, key, text) in worn.chain([("labels", names::LABEL_MANAGED, "true")]) {
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

/// Adds what the API server would have: the namespace, a uid of its own, and the rest.
pub(super) fn complete(
    object: &mut Node,
    namespaced: bool,
    now: Timestamp,
) -> Result<(), Malformed> {
    let has_uid = object
        .get("metadata")
        .and_then(|meta| meta.get("uid"))
        .is_some();
    if !has_uid {
        let id = uid(&key_of(object)?.to_string());
        set_in(object, &["metadata"], "uid", Node::from(id));
    }
    assume::custom_resource(object, namespaced, now);
    Ok(())
}
