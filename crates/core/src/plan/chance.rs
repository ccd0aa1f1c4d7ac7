//! Random values only where they are kept.
//!
//! A pass renders everything again and again; what is drawn anew each time would be written for ever. Only the body of a
//! child that is made once is rendered once.

use std::collections::BTreeSet;

use super::{ChildPlan, Condition, ImportPlan, Leaf, Mode, Operand, StatusPlan};
use crate::{diagnostics::Code, resources::scope::At, template::Template};

/// Where a random value would not last, and what to do about it.
const CHILD: (&str, &str) = (
    "the value is another one in each pass, and so is the child",
    "only what is made once keeps it: move the entry to `onCreate`, without `reconcile: true`",
);
const NAME: (&str, &str) = (
    "each pass would name another child",
    "names are made of what stays as it is, such as `{{ .metadata.name }}`",
);
const CONDITION: (&str, &str) = (
    "the condition would be left to chance in each pass",
    "ask for something that can be observed",
);
const INPUT: (&str, &str) = (
    "the input would be another one in each pass",
    "draw the value where it is kept: in what the Motif makes once",
);
const STATUS: (&str, &str) = (
    "the status would be another one in each pass",
    "keep the value in a Secret or a ConfigMap of `onCreate`, and read it from `.children`",
);

/// Reports the templates of an operator that draw random values and do not keep them. `at` is any place of the Katalog.
pub(crate) fn check(
    at: &At<'_>,
    imports: &[ImportPlan],
    children: &[ChildPlan],
    status: &StatusPlan,
) {
    let mut check = Check {
        at,
        told: BTreeSet::new(),
    };
    for input in imports.iter().flat_map(|import| &import.inputs) {
        for tree in input.given.iter().chain(&input.default) {
            tree.visit(&mut |leaf| check.leaf(leaf, INPUT));
        }
    }
    for child in children {
        check.leaf(&child.name, NAME);
        if let Some(namespace) = &child.namespace {
            check.leaf(namespace, NAME);
        }
        check.conditions(&child.when);
        if child.mode == Mode::Reconciled {
            child.body.visit(&mut |leaf| check.leaf(leaf, CHILD));
        }
    }
    for field in &status.fields {
        check.leaf(&field.value, STATUS);
        check.conditions(&field.when);
    }
}

struct Check<'a> {
    at: &'a At<'a>,
    /// A body may hold the name that is told already.
    told: BTreeSet<(Box<str>, usize)>,
}

impl Check<'_> {
    fn conditions(&mut self, conditions: &[Condition]) {
        for condition in conditions {
            if let Operand::Template(template) = &condition.operand {
                let place = format!("{}.field", condition.path);
                self.template(&place, template, CONDITION);
            }
            if let Some(leaf) = condition.right() {
                self.leaf(leaf, CONDITION);
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf, why: (&str, &str)) {
        self.template(&leaf.path, &leaf.template, why);
    }

    fn template(&mut self, place: &str, template: &Template, (message, hint): (&str, &str)) {
        let Some(offset) = template.random_offset() else {
            return;
        };
        if self.told.insert((place.into(), offset)) {
            self.at.place(place).error_in_text(
                Code::RandomValue,
                Some(offset),
                message.to_owned(),
                Some(hint.to_owned()),
            );
        }
    }
}
