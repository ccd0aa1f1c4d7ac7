//! `priorityClasses`.

use super::{Child, ChildList, Metadata, Shorthand};
use crate::{
    api::children::{Common, PriorityClass},
    plan::Coerce,
    scope::Fields,
};

const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

impl Shorthand for PriorityClass {
    fn row(&self) -> &'static ChildList {
        &ChildList {
            list: "priorityClasses",
            group: "scheduling.k8s.io",
            version: "v1",
            kind: "PriorityClass",
            name: None,
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

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
