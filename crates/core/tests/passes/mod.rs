//! The first pass over a custom resource, for tests and benchmarks that are not about passes.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use orkestra_core::{
    plan::{GroupKind, OperatorPlan},
    reconcile::{
        record::{CrRecord, Observed, kept_paths},
        sources::{Answer, Answers},
        status::written_paths,
        step::{Cycle, StepResult, step},
    },
    template::Entropy,
    value::Node,
};
use serde_json::Value;

/// What an operator sees of an object that has no children yet.
pub(crate) fn observed(plan: &OperatorPlan, object: &Value) -> Observed {
    let paths = kept_paths(&plan.reads.cr, written_paths(plan).into_iter());
    let cr = Arc::new(CrRecord::read(&Node::from(object), &paths).unwrap());
    Observed {
        inventory: cr.inventory.clone(),
        orphans: Vec::new(),
        cr,
        children: Vec::new().into_iter().collect(),
        unseen: Vec::new().into_iter().collect(),
        reported: None,
        answers: Answers::new(),
    }
}

/// The scopes of a plan's kinds, those that it does not know taken for namespaced.
pub(crate) fn scopes(plan: &OperatorPlan) -> BTreeMap<GroupKind, bool> {
    let kinds = plan.children.iter().map(|child| &child.kind);
    kinds
        .map(|kind| (kind.group_kind(), kind.namespaced.unwrap_or(true)))
        .collect()
}

/// What the first pass decides where nothing of what it asks for is there.
pub(crate) fn first(plan: &OperatorPlan, object: &Value) -> Cycle {
    let (scopes, entropy) = (scopes(plan), Entropy::seeded([7; 32]));
    let mut observed = observed(plan, object);
    loop {
        match step(plan, &scopes, &observed, Timestamp::UNIX_EPOCH, &entropy) {
            StepResult::Done(cycle) => return *cycle,
            StepResult::Need(reads) => {
                assert!(!reads.is_empty(), "it asks for nothing");
                for read in reads {
                    let before = observed.answers.insert(read, Answer::Absent);
                    assert_eq!(before, None, "asked twice");
                }
            }
        }
    }
}
