//! Warns about conditions that wait for a text that a status field never has, and about status fields that are probably misspelled.

use std::collections::BTreeSet;

use crate::scope::At;
use orkestra_language::{
    diagnostics::{Code, nearest},
    schema::{NestedSchema, Schema},
};
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{
    ConditionPlan, Operand, OperandRelation, OperatorPlan, Question, walk::Expression,
};

/// Warns about status fields that are read, that nothing declares, and whose name is similar to one that `status.fields` writes. A schema
/// that describes the status reports them by itself.
pub(crate) fn check_names(at: &At<'_>, plan: &OperatorPlan, schema: Option<Schema<'_>>) {
    let names: BTreeSet<&str> = plan
        .status
        .fields
        .iter()
        .filter_map(|field| name(&field.path, 0))
        .collect();
    let mut found = BTreeSet::new();
    plan.visit(&mut |expression, _| {
        let place = match expression {
            Expression::Leaf(leaf) => &leaf.path,
            Expression::Condition(condition) => &condition.path,
            Expression::ForEach(_) | Expression::Body(_) => return,
        };
        expression.each_read(&mut |path| {
            let (Some("status"), Some(read)) = (name(path, 0), name(path, 1)) else {
                return;
            };
            // All names of one or two letters are similar.
            let is_short = read.len() <= 2;
            if is_short || names.contains(read) || OWN.contains(&read) || is_described(schema, path)
            {
                return;
            }
            if let Some(near) = nearest(read, names.iter().copied())
                && found.insert((place.to_string(), read.to_owned()))
            {
                let message = format!("`status.fields` writes no `{read}`");
                let hint = format!("did you mean `{near}`?");
                at.place(place).warn_hint(Code::NeverWritten, message, hint);
            }
        });
    });
}

/// The fields that every operator writes.
const OWN: [&str; 2] = ["conditions", "observedGeneration"];

/// Returns the field at a step of a path.
fn name(path: &Path, step: usize) -> Option<&str> {
    match path.steps().get(step) {
        Some(PathStep::Field(name)) => Some(name),
        _ => None,
    }
}

/// True if the schema of the kind decides whether there is such a field.
fn is_described(schema: Option<Schema<'_>>, path: &Path) -> bool {
    let field = schema.map(|schema| schema.at(&path.steps()[..2]));
    field.is_some_and(|field| !matches!(field, NestedSchema::Anything))
}

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
