//! Warns about conditions that wait for a text that a status field never has.

use crate::{
    diagnostics::{Code, nearest},
    plan::{ConditionPlan, Operand, OperandRelation, OperatorPlan, Question, walk::Expression},
    scope::At,
    value::{Path, PathStep},
};

/// Warns about conditions that compare a status field with a text that is never declared for it. `at` is any place in the
/// Katalog.
pub(crate) fn check(at: &At<'_>, plan: &OperatorPlan) {
    plan.visit(&mut |expression, _| {
        if let Expression::Condition(condition) = expression {
            one(at, plan, condition);
        }
    });
}

fn one(at: &At<'_>, plan: &OperatorPlan, condition: &ConditionPlan) {
    let Question::Value(Operand::Path(path), tests) = &condition.asks else {
        return;
    };
    let Some(written) = written(plan, path) else {
        return;
    };
    for test in tests.iter().filter(|test| !test.not && !condition.negate) {
        let OperandRelation::Equals(leaf, _) = &test.relation else {
            continue;
        };
        let awaited = leaf.template.literal().map(str::trim);
        let Some(awaited) = awaited.filter(|text| !text.is_empty() && !written.contains(text))
        else {
            continue;
        };
        let message = format!("nothing writes `{awaited}` to `{path}`");
        let hint = match nearest(awaited, written.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "add an entry to `status.fields` that writes it, with its own `when`; these values are written: {}",
                written.join(", ")
            ),
        };
        at.place(&leaf.path)
            .warn_hint(Code::NeverWritten, message, hint);
    }
}

/// Returns the declared texts for a path of the status; `None` if it is not declared, or the text is known only in a pass.
fn written<'p>(plan: &'p OperatorPlan, path: &Path) -> Option<Vec<&'p str>> {
    let (PathStep::Field(root), below) = path.steps().split_first()? else {
        return None;
    };
    let below: Path = below.iter().cloned().collect();
    let fields = plan.status.fields.iter();
    let fields = fields.filter(|field| &**root == "status" && field.path == below);
    let texts: Option<Vec<&str>> = fields
        .map(|field| field.value.template.literal().map(str::trim))
        .collect();
    texts.filter(|texts| !texts.is_empty())
}
