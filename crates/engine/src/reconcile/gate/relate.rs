//! Comparisons.

use std::cmp::Ordering;

use super::{Renderer, trimmed};
use crate::reconcile::{patch::is_unchanged, reason::Reason, render::RenderError};
use orkestra_language::api::ValueType;
use orkestra_object::value::Node;
use orkestra_plan::{
    Coerce, ConditionPlan, JsonType, Leaf, Members, OLD, Operand, OperandRelation, Order, Pattern,
    Test, gate,
};
use orkestra_template::Number;

/// Why values cannot be compared. The test does not hold then.
struct Incomparable(String);

/// Why a test has no result.
enum Unanswered {
    Failed(RenderError),
    Doubtful(String),
}

impl From<RenderError> for Unanswered {
    fn from(error: RenderError) -> Self {
        Self::Failed(error)
    }
}

impl From<Incomparable> for Unanswered {
    fn from(doubt: Incomparable) -> Self {
        Self::Doubtful(doubt.0)
    }
}

impl Renderer<'_, '_> {
    /// True if a test holds. Values that cannot be compared are reported, and it does not hold.
    pub(crate) fn test(
        &mut self,
        condition: &ConditionPlan,
        operand: &Node,
        test: &Test,
    ) -> Result<bool, RenderError> {
        match self.relates(condition, operand, &test.relation) {
            Ok(so) => Ok(so != test.not),
            Err(Unanswered::Failed(error)) => Err(error),
            Err(Unanswered::Doubtful(message)) => {
                self.frame.effects.doubt(&condition.path, message);
                Ok(false)
            }
        }
    }

    fn relates(
        &mut self,
        condition: &ConditionPlan,
        operand: &Node,
        relation: &OperandRelation,
    ) -> Result<bool, Unanswered> {
        let text = trimmed(operand);
        Ok(match relation {
            OperandRelation::Exists => !text.is_empty() && !is_empty_collection(operand),
            OperandRelation::Equals(right, of) => {
                let right = self.text(right)?;
                equal(*of, &text, &right, || left(condition))?
            }
            OperandRelation::Contains(right) => text.contains(&self.text(right)?),
            OperandRelation::Prefix(right) => text.starts_with(&self.text(right)?),
            OperandRelation::Suffix(right) => text.ends_with(&self.text(right)?),
            OperandRelation::Matches(Pattern::Fixed(regex)) => regex.is_match(&text),
            OperandRelation::Matches(Pattern::Rendered(right)) => self.matches(&text, right)?,
            OperandRelation::Is(order, right) => {
                let right = self.text(right)?;
                let (a, b) = (
                    number(&text, || left(condition))?,
                    number(&right, || "the right side".to_owned())?,
                );
                holds(*order, a.order(b))
            }
            OperandRelation::Between(bounds) => {
                let bounds = self.members(bounds)?;
                let [from, to] = &bounds[..] else {
                    return Err(Unanswered::Doubtful(
                        "the operand is not two numbers".into(),
                    ));
                };
                let bound = |text: &str| number(text, || "the right side".to_owned());
                let (from, to) = (bound(from)?, bound(to)?);
                let value = number(&text, || left(condition))?;
                value.order(from).is_some_and(Ordering::is_ge)
                    && value.order(to).is_some_and(Ordering::is_le)
            }
            OperandRelation::In(values, of) => {
                let mut found = false;
                for value in self.members(values)? {
                    found |= equal(*of, &text, &value, || left(condition))?;
                }
                found
            }
            OperandRelation::Unique => self.is_unique(condition)?,
            OperandRelation::Type(of) => json_type(operand) == *of,
            OperandRelation::Unchanged => self.is_unchanged(condition, operand),
        })
    }

    fn matches(&mut self, text: &str, right: &Leaf) -> Result<bool, RenderError> {
        let pattern = self.text(right)?;
        match gate::regex(&pattern) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(why) => Err(RenderError {
                path: right.path.clone().into(),
                message: format!(
                    "`{}` must return a regular expression: {why}",
                    right.template.source()
                ),
                reason: Reason::WrongType,
            }),
        }
    }

    /// True if the operand is the value before an update at its path, or there was none.
    fn is_unchanged(&self, condition: &ConditionPlan, operand: &Node) -> bool {
        let Some(Operand::Path(path)) = condition.operand() else {
            return true;
        };
        let before = self.data.get(OLD).and_then(|old| old.at(path));
        before.is_none_or(|before| !is_given(before) || is_unchanged(before, operand))
    }

    /// True if no other custom resource has the text, or the condition has no path.
    fn is_unique(&self, condition: &ConditionPlan) -> Result<bool, RenderError> {
        let Some(path) = condition.unique() else {
            return Ok(true);
        };
        self.frame
            .sources
            .is_unique(path)
            .map_err(|why| RenderError {
                path: condition.path.clone().into(),
                message: why.to_owned(),
                reason: Reason::Unavailable,
            })
    }

    /// Returns the values of a list, trimmed.
    fn members(&mut self, members: &Members) -> Result<Vec<String>, RenderError> {
        match members {
            Members::Each(leaves) => leaves.iter().map(|leaf| self.text(leaf)).collect(),
            Members::Split(leaf) => {
                let value = self.leaf(leaf)?.unwrap_or_default();
                Ok(match &value {
                    Node::List(items) => items
                        .iter()
                        .map(|item| trimmed(item).into_owned())
                        .collect(),
                    other => other
                        .to_text()
                        .split(',')
                        .map(|item| item.trim().to_owned())
                        .collect(),
                })
            }
        }
    }
}

/// Names the left side for messages. Its value may be secret.
fn left(condition: &ConditionPlan) -> String {
    match condition.operand() {
        Some(Operand::Path(path)) => format!("`{path}`"),
        Some(Operand::Template(template)) => format!("`{}`", template.source()),
        None => "the time".to_owned(),
    }
}

/// Parses a number; empty text is 0.
fn number(text: &str, name: impl Fn() -> String) -> Result<Number, Incomparable> {
    if let Ok(whole) = text.parse::<i128>() {
        return Ok(Number::Int(whole));
    }
    Number::read(&Node::from(if text.is_empty() { "0" } else { text }))
        .ok_or_else(|| Incomparable(format!("{} is not a number", name())))
}

/// True if two texts are equal as values of a type.
fn equal(
    of: ValueType,
    left: &str,
    right: &str,
    name: impl Fn() -> String,
) -> Result<bool, Incomparable> {
    let side = || "the right side".to_owned();
    match of {
        ValueType::String => Ok(left == right),
        ValueType::Int => {
            let (a, b) = (integer(left, name)?, integer(right, side)?);
            Ok(a.order(b) == Some(Ordering::Equal))
        }
        ValueType::Float => {
            let (a, b) = (number(left, name)?, number(right, side)?);
            Ok(a.order(b) == Some(Ordering::Equal))
        }
        ValueType::Bool => Ok(flag(left, name)? == flag(right, side)?),
    }
}

fn integer(text: &str, name: impl Fn() -> String) -> Result<Number, Incomparable> {
    let whole = |number: &Number| match number {
        Number::Int(_) => true,
        Number::Float(number) => number.fract() == 0.0,
    };
    number(text, &name)
        .ok()
        .filter(whole)
        .ok_or_else(|| Incomparable(format!("{} is not an integer", name())))
}

fn flag(text: &str, name: impl Fn() -> String) -> Result<bool, Incomparable> {
    match Coerce::Bool.apply(Node::from(text)) {
        Ok(flag) => Ok(flag == Some(Node::Bool(true))),
        Err(_) => Err(Incomparable(format!(
            "{} is neither true nor false",
            name()
        ))),
    }
}

/// True if values in this order match.
fn holds(order: Order, found: Option<Ordering>) -> bool {
    found.is_some_and(match order {
        Order::Greater => Ordering::is_gt,
        Order::GreaterOrEqual => Ordering::is_ge,
        Order::Less => Ordering::is_lt,
        Order::LessOrEqual => Ordering::is_le,
    })
}

fn is_empty_collection(node: &Node) -> bool {
    match node {
        Node::List(items) => items.is_empty(),
        Node::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

fn json_type(node: &Node) -> JsonType {
    match node {
        Node::Null => JsonType::Null,
        Node::Bool(_) => JsonType::Bool,
        Node::Int(_) | Node::UInt(_) | Node::Float(_) => JsonType::Number,
        Node::Str(_) => JsonType::String,
        Node::List(_) => JsonType::List,
        Node::Map(_) => JsonType::Map,
    }
}

/// True if a value is given, so that no default applies: `0` and `false` are values.
pub(crate) fn is_given(node: &Node) -> bool {
    !matches!(node, Node::Null) && node.as_str() != Some("")
}
