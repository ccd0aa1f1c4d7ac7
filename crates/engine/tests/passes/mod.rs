//! The first pass over a custom resource, for tests and benchmarks of other behaviour.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    record::{CrRecord, Observed, kept_paths},
    sources::{Answer, Answers},
    status::written_paths,
    step::{Cycle, StepResult, step},
};
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, OperatorPlan};
use orkestra_template::Entropy;
use serde_json::Value;

/// Returns the observation of an object without children.
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

/// Returns the scopes of a plan's kinds. Kinds of unknown scope count as namespaced.
pub(crate) fn scopes(plan: &OperatorPlan) -> BTreeMap<GroupKind, bool> {
    let kinds = plan.children.iter().map(|child| &child.kind);
    kinds
        .map(|kind| (kind.group_kind(), kind.namespaced.unwrap_or(true)))
        .collect()
}

/// Returns the decisions of the first pass, if none of the objects that it reads exists.
pub(crate) fn first(plan: &OperatorPlan, object: &Value) -> Cycle {
    let (scopes, entropy) = (scopes(plan), Entropy::seeded([7; 32]));
    let mut observed = observed(plan, object);
    loop {
        match step(plan, &scopes, &observed, Timestamp::UNIX_EPOCH, &entropy) {
            StepResult::Done(cycle) => return *cycle,
            StepResult::Need(reads) => {
                assert!(!reads.is_empty(), "no read is requested");
                for read in reads {
                    let before = observed.answers.insert(read, Answer::Absent);
                    assert_eq!(before, None, "read twice");
                }
            }
        }
    }
}
