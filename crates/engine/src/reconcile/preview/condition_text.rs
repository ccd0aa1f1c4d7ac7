//! Conditions as text, with the values that they compare.

use crate::reconcile::render::Renderer;
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{
    ConditionPlan, Leaf, Members, Operand, OperandRelation, Pattern, Question, Test,
    describe::relation, roots::CR_ROOTS,
};

/// The longest text or value that is shown, in characters.
const LONGEST: usize = 60;

/// Returns a condition with the values of its sides, such as `spec.tier equals gold (spec.tier is "bronze")`; none for one about the
/// time. Only values of the custom resource itself are shown: others may be secret.
pub(crate) fn said(renderer: &mut Renderer<'_, '_>, condition: &ConditionPlan) -> Option<String> {
    let Question::Value(operand, tests) = &condition.asks else {
        return None;
    };
    let left = match operand {
        Operand::Path(path) => path.to_string(),
        Operand::Template(template) => shortened(template.source().trim()),
    };
    let mut values = Vec::new();
    let reads: &[Path] = match operand {
        Operand::Path(path) => std::slice::from_ref(path),
        Operand::Template(template) => template.reads(),
    };
    if is_shown(reads)
        && let Ok(value) = renderer.operand(condition, operand)
    {
        let value = value.to_text().trim().to_owned();
        values.push(compared(&left, &value));
    }
    let mut said = Vec::new();
    for Test { relation: of, not } in tests {
        let leaves = right(of);
        let text = match of {
            OperandRelation::Matches(Pattern::Fixed(regex)) => regex.as_str().to_owned(),
            OperandRelation::Type(_) | OperandRelation::Exists | OperandRelation::Unique => {
                String::new()
            }
            _ => {
                let sources = leaves.iter().map(|leaf| leaf.template.source().trim());
                sources.collect::<Vec<_>>().join(", ")
            }
        };
        let word = relation(of, *not);
        said.push(
            format!("{left} {word} {}", shortened(&text))
                .trim()
                .to_owned(),
        );
        for leaf in leaves {
            let template = &leaf.template;
            if template.literal().is_none()
                && is_shown(template.reads())
                && let Ok(value) = renderer.text(leaf)
            {
                values.push(compared(&shortened(template.source().trim()), &value));
            }
        }
    }
    let said = said.join(" and ");
    let said = if condition.negate {
        format!("not: {said}")
    } else {
        said
    };
    Some(if values.is_empty() {
        said
    } else {
        format!("{said} ({})", values.join(", "))
    })
}

fn compared(side: &str, value: &str) -> String {
    if value.is_empty() {
        format!("{side} is empty")
    } else {
        format!("{side} is {:?}", shortened(value))
    }
}

/// Returns the right sides of a relation.
fn right(relation: &OperandRelation) -> Vec<&Leaf> {
    match relation {
        OperandRelation::Equals(leaf, _)
        | OperandRelation::Contains(leaf)
        | OperandRelation::Prefix(leaf)
        | OperandRelation::Suffix(leaf)
        | OperandRelation::Matches(Pattern::Rendered(leaf))
        | OperandRelation::Is(_, leaf) => vec![leaf],
        OperandRelation::Between(members) | OperandRelation::In(members, _) => match members {
            Members::Each(leaves) => leaves.iter().collect(),
            Members::Split(leaf) => vec![leaf],
        },
        OperandRelation::Matches(Pattern::Fixed(_))
        | OperandRelation::Exists
        | OperandRelation::Unique
        | OperandRelation::Type(_)
        | OperandRelation::Unchanged => Vec::new(),
    }
}

/// True if everything that is read belongs to the custom resource.
fn is_shown(reads: &[Path]) -> bool {
    reads.iter().all(|path| match path.steps().first() {
        Some(PathStep::Field(root)) => CR_ROOTS.contains(&&**root),
        _ => false,
    })
}

fn shortened(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(LONGEST).map(clean).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
