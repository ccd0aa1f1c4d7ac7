//! Permits random values only in children that are created once.
//!
//! A pass renders everything again, so a value drawn in each pass would cause a write in each pass. Only the body of a
//! child that is created once is rendered once.

use std::collections::BTreeSet;

use crate::scope::At;
use orkestra_language::diagnostics::Code;
use orkestra_plan::{
    ConditionPlan, Leaf, Operand, OperatorPlan, PlaceRef, PlanPlace,
    walk::{Expression, Purpose},
};
use orkestra_template::Template;

/// Where a random value would not be kept, and the hint for a fix.
const CHILD: (&str, &str) = (
    "each pass would generate a new value, and so change the child",
    "only an object that is created once keeps the value: move the entry to `onCreate`, without `reconcile: true`, or set `once: true` \
     in a Secret",
);
const NAME: (&str, &str) = (
    "each pass would give the child a different name",
    "use a value that does not change, such as `{{ .metadata.name }}`",
);
const CONDITION: (&str, &str) = (
    "the condition would have a random result in each pass",
    "test a value that can be observed",
);
const INPUT: (&str, &str) = (
    "the input would be different in each pass",
    "generate the value where it is kept: in a child that the Motif creates once",
);
const PREPARED: (&str, &str) = (
    "each pass would see a different custom resource",
    "rules set values that do not change: generate the value where it is kept, in a child that is created once",
);
const CROSS: (&str, &str) = (
    "each pass would read a different resource",
    "select it by a value that does not change, such as `{{ .metadata.name }}`",
);
const KEY: (&str, &str) = (
    "each change would map to a different custom resource",
    "identify it by a field of the object, such as `{{ .metadata.name }}`",
);
const STATUS: (&str, &str) = (
    "the status would be different in each pass",
    "keep the value in a Secret or a ConfigMap of `onCreate`, and read it from `.children`",
);

const CALL: (&str, &str) = (
    "a call is the same throughout a pass, and a random value would make it different each time",
    "send a value of the custom resource, such as `.metadata.uid`",
);

/// Reports the templates of an operator that draw random values and do not keep them. `at` is any place in the Katalog.
pub(crate) fn check(at: &At<'_>, plan: &OperatorPlan) {
    let mut check = Check {
        at,
        reported: BTreeSet::new(),
    };
    plan.visit(&mut |expression, place| {
        let why = match place.purpose {
            Purpose::Input => INPUT,
            Purpose::Cross => CROSS,
            Purpose::Key => KEY,
            Purpose::Name => NAME,
            Purpose::Gate => CONDITION,
            Purpose::Reconciled => CHILD,
            Purpose::Status => STATUS,
            Purpose::Prepared => PREPARED,
            Purpose::Call => CALL,
            Purpose::Label => LABEL,
            Purpose::Once => return,
        };
        match expression {
            Expression::Leaf(leaf) => check.leaf(leaf, why),
            Expression::Condition(condition) => check.condition(condition, why),
            // A path draws no random values.
            Expression::ForEach(_) | Expression::Body(_) => {}
        }
    });
}

const LABEL: (&str, &str) = (
    "the label would be different in each pass",
    "use a value that does not change",
);

struct Check<'a> {
    at: &'a At<'a>,
    /// A body may contain the name, which is already reported.
    reported: BTreeSet<(PlanPlace, Option<&'static str>, usize)>,
}

impl Check<'_> {
    fn condition(&mut self, condition: &ConditionPlan, why: (&str, &str)) {
        if let Some(Operand::Template(template)) = condition.operand() {
            self.template(condition.path.field("field"), template, why);
        }
        for leaf in condition.leaves() {
            self.leaf(leaf, why);
        }
    }

    fn leaf(&mut self, leaf: &Leaf, why: (&str, &str)) {
        self.template(leaf.path.here(), &leaf.template, why);
    }

    fn template(
        &mut self,
        place: PlaceRef<'_>,
        template: &Template,
        (message, hint): (&str, &str),
    ) {
        let Some(offset) = template.random_offset() else {
            return;
        };
        if self
            .reported
            .insert((place.place.clone(), place.field, offset))
        {
            self.at.place(place).error_in_text(
                Code::RandomValue,
                Some(offset),
                message.to_owned(),
                Some(hint.to_owned()),
            );
        }
    }
}
