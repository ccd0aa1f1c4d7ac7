//! `priorityClasses`.

use super::{Child, Metadata, Shorthand};
use crate::scope::Fields;
use orkestra_language::api::children::PriorityClass;
use orkestra_plan::Coerce;

const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

impl Shorthand for PriorityClass {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let PriorityClass {
            common: _,
            value,
            global_default,
            preemption_policy,
            description,
        } = self;
        let at = &child.at;
        let mut root = Fields::default();
        root.put("value", at.scalar_field("value", Some(value), Coerce::Int));
        root.put(
            "globalDefault",
            at.scalar_field("globalDefault", global_default.as_ref(), Coerce::Bool),
        );
        root.put(
            "preemptionPolicy",
            at.word_field(
                "preemptionPolicy",
                preemption_policy.as_ref(),
                &PREEMPTION_POLICIES,
            ),
        );
        root.put(
            "description",
            at.text_field("description", description.as_ref()),
        );
        root
    }
}
