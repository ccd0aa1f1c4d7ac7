//! `.health`, `.metrics` and `.ork`, as template data of a pass.

use std::sync::Arc;

use super::{
    super::{
        sources::{Answer, Read},
        template_data::TemplateData,
    },
    DataSource, Given, PassInput, ReadsDependOn, all_answered,
};
use orkestra_object::value::{Key, Node};
use orkestra_plan::{OperatorPlan, introspection::Introspection};

/// What the plan reads about its operator.
pub(crate) struct Introspected;

impl DataSource for Introspected {
    fn depends_on(&self) -> ReadsDependOn {
        ReadsDependOn::Plan
    }

    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>> {
        let PassInput { plan, observed, .. } = input;
        let mut lacking = Vec::new();
        for introspection in read(plan) {
            let read = Read::Introspection(introspection);
            match observed.answers.get(&read) {
                None => lacking.push(read),
                Some(Answer::Ready(crd_status)) => {
                    (sources.roots).insert(introspection.root(), Node::clone(crd_status));
                }
                Some(Answer::Absent) => hide(sources, introspection, "the operator does not run"),
                Some(Answer::Unavailable(why)) => hide(sources, introspection, why),
            }
        }
        all_answered(lacking)
    }

    fn hide(&self, plan: &OperatorPlan, sources: &mut TemplateData, why: &str) {
        for introspection in read(plan) {
            hide(sources, introspection, why);
        }
    }

    fn assumed(&self, read: &Read, _given: Given<'_>) -> Option<Answer> {
        match read {
            Read::Introspection(read) => Some(Answer::Ready(Arc::new(read.assumed()))),
            _ => None,
        }
    }
}

/// Returns what templates read.
fn read(plan: &OperatorPlan) -> impl Iterator<Item = Introspection> {
    let roots = plan.reads.roots.iter();
    roots.filter_map(|root| Introspection::of_root(root))
}

fn hide(sources: &mut TemplateData, introspection: Introspection, why: &str) {
    sources.hide([Key::from(introspection.root())], why);
}
