//! Rules at admission: the decision of a pass about an object that is being written.
//!
//! ```text
//!  normalize ──► calls of mutation, mutation ──► calls of validation, validation
//! ```
//!
//! A pass uses the same functions, so that both have the same verdict. Rules that read data that only passes have are skipped.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    cycle::StepResult,
    external,
    failure::Failure,
    identity::Identity,
    prepare,
    record::{CrRecord, Observed},
    sources::{Answers, Read},
    template_data::TemplateData,
    unique,
};
use orkestra_language::api::Operation;
use orkestra_object::value::Node;
use orkestra_plan::{Moment, ObjectKey, OperatorPlan, Stage};

/// An object that is being written.
#[derive(Clone, Debug)]
pub struct ReviewedObject {
    /// Its namespace and name; the name is empty while the API server has not generated it.
    pub key: ObjectKey,
    /// The operation.
    pub operation: Operation,
    /// The object: as submitted, or the one that is deleted.
    pub object: Node,
    /// The object before an update, or the one that is deleted; null otherwise.
    pub old: Node,
}

/// The result of [`judge`].
#[derive(Debug)]
pub enum Reviewed {
    /// These reads must be answered first.
    Need(Vec<Read>),
    /// The result of the rules, in [`TemplateData::prepared`]; and failures other than those of rules, such as a failed call.
    Done(Box<TemplateData>, Vec<Failure>),
}

/// Applies the rules of `plan` to an object that is being written, up to those of the stage `until`. `answers` are those to the reads of earlier calls.
pub fn judge(
    plan: &OperatorPlan,
    subject: &ReviewedObject,
    now: Timestamp,
    (answers, until): (&Answers, Stage),
) -> Reviewed {
    let observed = observed(subject, answers);
    match sources(plan, subject, &observed, (now, until)) {
        Ok(sources) => Reviewed::Done(Box::new(sources), Vec::new()),
        Err(StepResult::Need(reads)) => Reviewed::Need(reads),
        Err(StepResult::Done(cycle)) => Reviewed::Done(Box::new(cycle.sources), cycle.failures),
    }
}

fn sources(
    plan: &OperatorPlan,
    subject: &ReviewedObject,
    observed: &Observed,
    (now, until): (Timestamp, Stage),
) -> Result<TemplateData, StepResult> {
    let mut sources = TemplateData {
        moment: Moment::Admission,
        written: (subject.old.clone(), Node::from(subject.operation.as_str())),
        same: unique::of(plan, observed)?,
        ..TemplateData::default()
    };
    if plan.rules.late {
        prepare::complete(plan, observed, now, &[], &mut sources);
    }
    for stage in [Stage::Mutation, Stage::Validation] {
        if sources.is_refused() || stage > until {
            break;
        }
        external::make(plan, observed, &mut sources, stage, now)?;
        if stage == Stage::Mutation {
            prepare::complete(plan, observed, now, &plan.rules.mutation, &mut sources);
        } else {
            prepare::validate(plan, observed, now, &mut sources);
        }
    }
    Ok(sources)
}

/// Returns what a pass would observe of the object, without children.
fn observed(subject: &ReviewedObject, answers: &Answers) -> Observed {
    let cr = CrRecord {
        id: Identity {
            key: subject.key.clone(),
            uid: "".into(),
            resource_version: "0".into(),
        },
        generation: 0,
        deleting: false,
        deleted: None,
        created: None,
        skips_on_delete: false,
        suspended: false,
        finalizer: false,
        other_finalizers: Box::default(),
        managed: false,
        is_child: false,
        inventory: Arc::default(),
        requested: None,
        holds: None,
        view: subject.object.clone(),
        unread: None,
    };
    Observed {
        inventory: Arc::default(),
        cr: Arc::new(cr),
        children: Vec::new(),
        orphans: Vec::new(),
        unseen: std::collections::BTreeSet::new(),
        reported: None,
        answers: answers.clone(),
    }
}
