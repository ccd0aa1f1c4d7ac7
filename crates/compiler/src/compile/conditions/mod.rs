//! Compiles `when` and `or` lists.

pub(crate) mod relations;
mod windows;

use crate::scope::At;
use orkestra_language::{api::GateCondition, diagnostics::Code};
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{
    ConditionPlan, ForEachPlan, Gate, ImportPlan, OnFalsePlan, Operand, OperandRelation, Question,
    Test, inputs::is_intent, roots::CR_ROOTS,
};

/// Compiles the `when` and `or` of the item at `at`; invalid conditions are reported and left out.
pub fn gate(at: &At<'_>, when: &[GateCondition], or: &[GateCondition]) -> Gate {
    Gate {
        all: conditions(&at.field("when"), when),
        any: conditions(&at.field("or"), or),
    }
}

/// Compiles the list at `at`; all of its conditions must hold.
pub(crate) fn all(at: &At<'_>, list: &[GateCondition]) -> Gate {
    Gate {
        all: conditions(at, list),
        any: Box::default(),
    }
}

/// Compiles the single condition at `at`; with `immutable`, it also requires that its field is unchanged.
pub(crate) fn demand(at: &At<'_>, declared: &GateCondition, immutable: bool) -> Gate {
    let compiled = if immutable {
        unchanged(at, declared)
    } else {
        condition(at, declared)
    };
    Gate {
        all: compiled.into_iter().collect(),
        any: Box::default(),
    }
}

/// Returns a gate that requires the fields that `gate` reads to be present.
pub(crate) fn presence(gate: &Gate) -> Gate {
    let exists = || Test {
        relation: OperandRelation::Exists,
        not: false,
    };
    let present = gate.iter().filter_map(|condition| match &condition.asks {
        Question::Value(operand, _) => Some(ConditionPlan {
            asks: Question::Value(operand.clone(), [exists()].into()),
            negate: false,
            path: condition.path.clone(),
        }),
        Question::Time(_) => None,
    });
    Gate {
        all: present.collect(),
        any: Box::default(),
    }
}

/// Compiles the list at `at`.
fn conditions(at: &At<'_>, list: &[GateCondition]) -> Box<[ConditionPlan]> {
    list.iter()
        .enumerate()
        .filter_map(|(index, declared)| condition(&at.index(index), declared))
        .collect()
}

/// Compiles the condition at `at`; `None` after an error, which is reported.
pub(crate) fn condition(at: &At<'_>, declared: &GateCondition) -> Option<ConditionPlan> {
    let windows = windows::of_condition(at, declared);
    let tests = relations::of_condition(at, declared);
    let asks = match (&declared.field, windows) {
        (None, Some(windows)) => {
            if tests.is_some_and(|tests| !tests.is_empty()) {
                without_field(at);
                return None;
            }
            Question::Time(windows?)
        }
        (Some(_), Some(_)) => {
            at.error_hint(
                Code::TimeCondition,
                "a condition tests either a field or the time",
                "split it into two conditions",
            );
            return None;
        }
        (None, None) => {
            without_field(at);
            return None;
        }
        (Some(field), None) => {
            let operand = operand(&at.field("field"), field);
            let (operand, tests) = (operand?, tests?);
            let condition = Question::Value(operand, tests);
            check_unique(at, &condition)?;
            condition
        }
    };
    Some(ConditionPlan {
        asks,
        negate: declared.negate.unwrap_or(false),
        path: at.kept(),
    })
}

/// Compiles the condition at `at`, which also requires that its field is unchanged.
fn unchanged(at: &At<'_>, declared: &GateCondition) -> Option<ConditionPlan> {
    let field = declared.field.as_deref().unwrap_or_default();
    let place = at.field("immutable");
    if field.trim().is_empty() || field.contains("{{") {
        let hint = "name its path, such as `spec.engine`";
        place.error_hint(
            Code::ConditionWithoutField,
            "`immutable` needs a field",
            hint,
        );
        return None;
    }
    if declared.negate == Some(true) {
        place.error(
            Code::Exclusive,
            "`negate` and `immutable` are mutually exclusive",
        );
        return None;
    }
    let tests = if relations::comparisons(declared).is_empty() {
        Box::default()
    } else {
        relations::of_condition(at, declared)?
    };
    let unchanged = Test {
        relation: OperandRelation::Unchanged,
        not: false,
    };
    let tests = tests.into_vec().into_iter().chain([unchanged]);
    let asks = Question::Value(operand(&at.field("field"), field)?, tests.collect());
    check_unique(at, &asks)?;
    Some(ConditionPlan {
        asks,
        negate: false,
        path: at.kept(),
    })
}

fn without_field(at: &At<'_>) {
    at.error_hint(
        Code::ConditionWithoutField,
        "a condition needs a `field`",
        "name one, such as `spec.environment`, or write a template",
    );
}

fn operand(at: &At<'_>, text: &str) -> Option<Operand> {
    if text.contains("{{") {
        return at.template(text).map(Operand::Template);
    }
    let (written, text) = (text, text.trim());
    if text.trim_matches('.').is_empty() {
        without_field(at);
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

/// Other custom resources are read as the API server has them: only their own fields can be compared.
fn check_unique(at: &At<'_>, asks: &Question) -> Option<()> {
    let Question::Value(operand, tests) = asks else {
        return Some(());
    };
    if !tests.iter().any(relations::is_unique) {
        return Some(());
    }
    let on_cr = |path: &Path| matches!(path.steps().first(), Some(PathStep::Field(root)) if CR_ROOTS.contains(&&**root));
    if matches!(operand, Operand::Path(path) if on_cr(path)) {
        return Some(());
    }
    at.field("field").error_hint(
        Code::UniqueOperand,
        "`unique` compares one field of the custom resources",
        "name its path, such as `spec.host`",
    );
    None
}

/// Returns the default action for a child whose gate closes: it is deleted if only the user's intent decides, and kept if
/// the gate depends on the state of the cluster. `import` is the import that declares the child, `each` its `forEach`,
/// `live` the fields of the custom resource that depend on the state of the cluster.
///
/// Source: language reference, lifecycle blocks.
pub(crate) fn default_on_false<'a>(
    gates: impl IntoIterator<Item = &'a Gate>,
    import: Option<&ImportPlan>,
    each: Option<&ForEachPlan>,
    live: &[Path],
) -> OnFalsePlan {
    let is_live = |path: &Path| {
        let mut live = live.iter();
        live.any(|live| live.overlaps(path))
    };
    let mut intent = each.is_none_or(|each| each.is_intent(import) && !is_live(&each.field));
    // An element has the origin of its list.
    let is_element = |path: &Path| each.is_some_and(|each| each.is_read_by(path));
    for condition in gates.into_iter().flat_map(Gate::iter) {
        intent &= !condition.asks_elsewhere();
        condition.visit_reads(&mut |path| {
            intent &= (is_element(path) && !path.is_empty())
                || (is_intent(path, import) && !is_live(path));
        });
    }
    if intent {
        OnFalsePlan::Delete
    } else {
        OnFalsePlan::Keep
    }
}
