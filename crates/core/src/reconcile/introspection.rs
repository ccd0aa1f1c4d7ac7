//! `.health`, `.metrics` and `.ork`, as a pass sees them.

use super::{
    data_source::{DataSource, PassInput, all_answered},
    sources::{Answer, Read},
    template_data::TemplateData,
};
use crate::{
    plan::{OperatorPlan, introspection::Introspection},
    value::{Key, Node, Path, PathStep},
};

/// What the plan reads about its operator.
pub(super) struct Introspected;

impl DataSource for Introspected {
    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>> {
        let PassInput { plan, observed, .. } = input;
        let mut lacking = Vec::new();
        for &introspection in &plan.reads.introspection {
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
        for &introspection in &plan.reads.introspection {
            hide(sources, introspection, why);
        }
    }
}

fn hide(sources: &mut TemplateData, introspection: Introspection, why: &str) {
    let root = PathStep::Field(Key::from(introspection.root()));
    sources
        .unavailable
        .push((Path::from_iter([root]), why.into()));
}
