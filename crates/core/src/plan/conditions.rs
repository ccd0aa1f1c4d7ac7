//! `when` and `or` lists.

use super::{Coerce, Condition, Gate, ImportPlan, Leaf, OnFalse, Operand, Test};
use crate::{
    api::{GateCondition, GateOperator, scalar::Scalar},
    diagnostics::Code,
    resources::scope::At,
    value::{Path, Step},
};

/// Compiles the `when` and `or` of what stands at `at`; what is wrong is reported and left out.
pub(crate) fn gate(at: &At<'_>, when: &[GateCondition], or: &[GateCondition]) -> Gate {
    Gate {
        all: compile(&at.field("when"), when),
        any: compile(&at.field("or"), or),
    }
}

/// Compiles the list at `at`.
fn compile(at: &At<'_>, list: &[GateCondition]) -> Box<[Condition]> {
    list.iter()
        .enumerate()
        .flat_map(|(index, condition)| one(&at.index(index), condition))
        .collect()
}

/// One declared condition: a compiled one for each of its operators, which must all hold.
fn one(at: &At<'_>, condition: &GateCondition) -> Vec<Condition> {
    let tests = tests(at, condition);
    if tests.is_empty() {
        return Vec::new();
    }
    let Some(operand) = operand(&at.field("field"), &condition.field) else {
        return Vec::new();
    };
    let mut operands = vec![operand; tests.len()].into_iter();
    tests
        .into_iter()
        .filter_map(|test| {
            Some(Condition {
                operand: operands.next()?,
                test,
                path: at.text(),
            })
        })
        .collect()
}

fn operand(at: &At<'_>, text: &str) -> Option<Operand> {
    at.text(); // Reads that turn out wrong are reported here.
    if text.contains("{{") {
        return at.template(text).map(Operand::Template);
    }
    let (written, text) = (text, text.trim());
    if text.trim_matches('.').is_empty() {
        at.error_hint(
            Code::ConditionWithoutField,
            "a condition asks for a field",
            "name one, such as `spec.environment`, or write a template",
        );
        return None;
    }
    match Path::parse(text) {
        Ok(path) => Some(Operand::Path(path)),
        Err(why) => {
            at.bad_path(written, text, &why);
            None
        }
    }
}

fn tests(at: &At<'_>, condition: &GateCondition) -> Vec<Test> {
    let GateCondition {
        field: _,
        equals,
        not_equals,
        exists,
        not_exists,
        operator,
        value,
        later: _,
    } = condition;
    let mut tests = Vec::new();
    let leaf = |name: &str, scalar: &Scalar| {
        at.field(name)
            .leaf(&scalar.to_string(), Coerce::OptionalText)
    };
    tests.extend(
        equals
            .as_ref()
            .map(|scalar| leaf("equals", scalar).map(Test::Equals)),
    );
    tests.extend(
        not_equals
            .as_ref()
            .map(|scalar| leaf("notEquals", scalar).map(Test::NotEquals)),
    );
    tests.extend(exists.map(|wanted| {
        Some(if wanted {
            Test::Exists
        } else {
            Test::NotExists
        })
    }));
    tests.extend(not_exists.map(|wanted| {
        Some(if wanted {
            Test::NotExists
        } else {
            Test::Exists
        })
    }));
    if let Some(operator) = operator {
        tests.push(match (operator, value) {
            (GateOperator::Equals, Some(scalar)) => leaf("value", scalar).map(Test::Equals),
            (GateOperator::NotEquals, Some(scalar)) => leaf("value", scalar).map(Test::NotEquals),
            (GateOperator::Equals | GateOperator::NotEquals, None) => {
                at.field("operator")
                    .error(Code::OperatorWithoutValue, "the operator needs a `value`");
                None
            }
            (GateOperator::Exists, _) => Some(Test::Exists),
            (GateOperator::NotExists, _) => Some(Test::NotExists),
        });
    } else if value.is_some() {
        at.field("value").error_hint(
            Code::ValueWithoutOperator,
            "a `value` without an operator",
            "write `equals`, or `operator: equals` beside `value`",
        );
        return Vec::new();
    }
    if tests.is_empty() {
        at.error_hint(
            Code::AsksNothing,
            "the condition asks nothing",
            "add `equals`, `notEquals`, `exists: true` or `notExists: true`",
        );
    }
    tests.into_iter().flatten().collect()
}

impl Condition {
    /// Calls `visit` with every path that is read to answer it.
    pub(crate) fn visit_reads(&self, visit: &mut dyn FnMut(&Path)) {
        match &self.operand {
            Operand::Path(path) => visit(path),
            Operand::Template(template) => template.reads().iter().for_each(&mut *visit),
        }
        if let Some(leaf) = self.right() {
            leaf.template.reads().iter().for_each(visit);
        }
    }

    /// The right side, where the test has one.
    pub fn right(&self) -> Option<&Leaf> {
        match &self.test {
            Test::Equals(leaf) | Test::NotEquals(leaf) => Some(leaf),
            Test::Exists | Test::NotExists => None,
        }
    }
}

/// What becomes of a child whose gate closes, when nothing is declared: it is deleted when the user's intent alone decides,
/// and kept when the live world has a say. `import` is where a Motif's child comes from.
///
/// Source: language reference, lifecycle blocks.
pub(crate) fn default_on_false<'a>(
    gates: impl IntoIterator<Item = &'a Gate>,
    import: Option<&ImportPlan>,
) -> OnFalse {
    let mut intent = true;
    for condition in gates.into_iter().flat_map(Gate::iter) {
        condition.visit_reads(&mut |path| intent &= is_intent(path, import));
    }
    if intent {
        OnFalse::Delete
    } else {
        OnFalse::Keep
    }
}

/// Whether the user alone says what stands at a path. An input is what it was made from.
pub(crate) fn is_intent(path: &Path, import: Option<&ImportPlan>) -> bool {
    let Some(Step::Field(root)) = path.steps().first() else {
        return false;
    };
    if &**root != "inputs" {
        return matches!(&**root, "apiVersion" | "kind" | "metadata" | "spec");
    }
    let inputs = import.map_or(&[][..], |import| &import.inputs);
    match path.steps().get(1) {
        Some(Step::Field(name)) => inputs
            .iter()
            .any(|input| input.name == *name && input.is_intent),
        _ => inputs.iter().all(|input| input.is_intent),
    }
}
