//! Compiles rules of `mutation` to JSON patches in CEL.
//!
//! Rules apply in order, and the webhook evaluates all of them again after the policies. Therefore only the rules before the first
//! one that CEL cannot express become patches, and no rule whose condition depends on a field that rules set: the patches must have
//! no effect when they are applied a second time.

use super::{CelContext, CelResult, fields, side::CelType};
use orkestra_object::value::{Node, pointer_token};
use orkestra_plan::{Completion, CompletionTarget, Leaf, Moment, OperatorPlan, cel::quoted};
use orkestra_template::{Data, EvalBudget};

/// Why there is no patch beside rules of `normalize`.
const NORMALIZED: &str = "rules of `normalize` apply before it";
/// Why there is none after a rule that CEL cannot say.
const LATER: &str = "rules apply in order, and an earlier one is for the webhook alone";

/// Returns the patches of the rules of `mutation`, in order, or why there is none.
pub(crate) fn patches(
    plan: &OperatorPlan,
    context: Result<&CelContext<'_>, &str>,
) -> Vec<Result<Box<str>, Box<str>>> {
    let mut why = why_none(plan).map(str::to_owned);
    let rules = plan.rules.mutation.iter();
    rules
        .map(|rule| {
            if !rule.moments.includes(Moment::Admission) {
                return Err("it applies in passes only".into());
            }
            if let Some(why) = &why {
                return Err(why.as_str().into());
            }
            let said = context
                .map_err(str::to_owned)
                .and_then(|context| context.patch(rule));
            if said.is_err() {
                why = Some(LATER.to_owned());
            }
            said.map(String::into_boxed_str)
                .map_err(String::into_boxed_str)
        })
        .collect()
}

/// Returns why no rule of the operator is a patch, if so.
fn why_none(plan: &OperatorPlan) -> Option<&'static str> {
    if !plan.rules.normalize.is_empty() {
        return Some(NORMALIZED);
    }
    super::why_not_selected(plan)
}

impl CelContext<'_> {
    /// Returns an expression whose value is the list of the patch's operations: none if the rule does not apply.
    fn patch(&self, rule: &Completion) -> CelResult<String> {
        let Completion {
            import,
            target,
            value,
            always,
            gate,
            moments: _,
            cel: _,
        } = rule;
        if import.is_some() {
            return Err("a Motif declares it, and inputs of Motifs may be templates".to_owned());
        }
        let CompletionTarget::Path(path) = target else {
            return Err("its field is computed".to_owned());
        };
        let names = fields(path)?;
        let mut present = Vec::new();
        let (live, schema) = self.descend(path, ("object", &names), &mut present)?;
        let kind = CelType::of(schema).ok_or_else(|| super::side::unknown_type(path))?;
        let value = literal(value, kind)?;
        let mut applies = Vec::new();
        if !gate.is_empty() {
            applies.push(self.gate(gate)?);
        }
        if !always {
            let mut given = present.clone();
            if kind == CelType::Text {
                given.push(format!("{live} != \"\""));
            }
            applies.push(format!("!({})", given.join(" && ")));
        }
        let operations = operations(&names, &present, &value);
        Ok(if applies.is_empty() {
            operations
        } else {
            format!("({}) ? ({operations}) : []", applies.join(") && ("))
        })
    }
}

/// Returns the operations that set the field: the maps around it are added where they are missing. `present` has a condition for
/// each of `names`.
fn operations(names: &[&str], present: &[String], value: &str) -> String {
    let add = |depth: usize, value: &str| {
        let mut pointer = String::new();
        for name in &names[..depth] {
            pointer.push('/');
            pointer.push_str(&pointer_token(name));
        }
        let pointer = quoted(&pointer);
        format!("[JSONPatch{{op: \"add\", path: {pointer}, value: {value}}}]")
    };
    // Every object has `metadata`.
    let around = (1..names.len()).filter(|depth| names[..*depth] != ["metadata"]);
    let around = around.map(|depth| {
        let present = present[..depth].join(" && ");
        format!("(({present}) ? [] : {})", add(depth, "{}"))
    });
    let all: Vec<String> = around.chain([add(names.len(), value)]).collect();
    all.join(" + ")
}

/// Returns the value of a rule as a literal of CEL that a field of that type takes.
fn literal(leaf: &Leaf, kind: CelType) -> CelResult<String> {
    let source = leaf.template.source();
    if leaf.template.literal().is_none() {
        return Err(format!("`{source}` is computed"));
    }
    let value = leaf.template.eval(&Data::new(), &mut EvalBudget::default());
    let value = value.map_err(|error| error.to_string())?.into_owned();
    let value = leaf
        .coerce
        .apply(value)
        .map_err(|error| error.to_string())?;
    match (value, kind) {
        (Some(Node::Str(text)), CelType::Text) => Ok(quoted(&text)),
        (Some(Node::Bool(flag)), CelType::Bool) => Ok(flag.to_string()),
        (Some(Node::Int(number)), CelType::Int | CelType::Number) => Ok(number.to_string()),
        (Some(Node::Float(number)), CelType::Number) if number.is_finite() => {
            Ok(format!("{number:?}"))
        }
        _ => Err(format!("`{source}` is no value of the field's type")),
    }
}
