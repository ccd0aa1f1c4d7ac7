//! Normalizes values of the spec: in memory for the pass, and, if no other manager holds them, on the resource itself.
//!
//! The stored value must be the value that the next pass wants, or one write would lead to another. So everything is
//! evaluated once more over the resource as it would be stored; if that gives another value, nothing is stored.

use super::Rules;
use crate::reconcile::{
    field_holders::Holds,
    patch::{is_unchanged, merge_patch},
    prepared::Normalization,
    render::RenderError,
};
use orkestra_object::value::{Node, Path, set};
use orkestra_plan::{Moment, Normalized, RulesPlan};

/// A custom resource with normalized values.
pub(crate) struct Formed {
    pub(crate) cr: Node,
    pub(crate) changes: Vec<(Path, Node)>,
    pub(crate) reported: Option<Normalization>,
    /// The changes as templates read them, if they do.
    pub(crate) audit: Node,
}

/// Why a change is kept in memory.
const DECLARED: &str = "`persist: false`";
const UNKNOWN: &str = "the definition has no such field";
const AT_ADMISSION: &str = "admission stores it when the resource is written next";
const UNSTABLE: &str = "the stored value would be normalized to another one";

impl Rules<'_> {
    /// Normalizes `raw`; `holds` lists other writers of its fields.
    ///
    /// # Errors
    /// The error of the first value that cannot be rendered.
    pub(crate) fn normalize(
        &self,
        raw: &Node,
        holds: Option<&Holds>,
    ) -> Result<Formed, RenderError> {
        let RulesPlan {
            normalize, persist, ..
        } = &self.plan.rules;
        let is_pass = self.moment() == Moment::Pass;
        let by_admission = is_pass && self.plan.admission.stores_normalized();
        let values = self.values(raw, normalize)?;
        let mut formed = Formed {
            cr: raw.clone(),
            changes: Vec::new(),
            reported: (!normalize.is_empty()).then(Normalization::default),
            audit: Node::Null,
        };
        let mut audit = Vec::new();
        let Some(reported) = &mut formed.reported else {
            return Ok(formed);
        };
        let mut stored = raw.clone();
        for (one, value) in normalize.iter().zip(&values) {
            let Some(value) = value.as_ref().filter(|value| differs(raw, one, value)) else {
                continue;
            };
            audit.extend(change(raw, one, value));
            let why = if !one.is_known {
                Some(UNKNOWN)
            } else if !persist {
                Some(DECLARED)
            } else if by_admission && one.moments.includes(Moment::Admission) {
                Some(AT_ADMISSION)
            } else {
                holds.and_then(|holds| holds.of(&one.path))
            };
            if let Some(why) = why {
                reported.held.push((one.path.clone(), why.into()));
            } else {
                set(&mut stored, &one.path, value.clone());
                reported.stored.push(one.path.clone());
            }
            set(&mut formed.cr, &one.path, value.clone());
            formed.changes.push((one.path.clone(), value.clone()));
        }
        if self.plan.rules.audit {
            formed.audit = Node::List(audit.into());
        }
        if reported.stored.is_empty() {
            return Ok(formed);
        }
        let again = self.values(&stored, normalize);
        if again.is_ok_and(|again| agrees(raw, normalize, &values, &again)) {
            let spec = |cr: &Node| cr.get("spec").cloned().unwrap_or_else(|| Node::object([]));
            reported.patch = merge_patch(&spec(raw), &spec(&stored));
        } else {
            reported.withhold(UNSTABLE);
        }
        Ok(formed)
    }

    /// Returns the values over `cr`; none for a field that stays as it is.
    fn values(
        &self,
        cr: &Node,
        normalize: &[Normalized],
    ) -> Result<Vec<Option<Node>>, RenderError> {
        let moment = self.moment();
        let value = |one: &Normalized| {
            if !one.moments.includes(moment) {
                return Ok(None);
            }
            self.on(cr, None, |renderer| renderer.leaf(&one.value))
        };
        let values = normalize.iter().map(value);
        values.collect()
    }
}

/// True if a value differs from that of `cr`. A missing field is not set to an empty value.
fn differs(cr: &Node, one: &Normalized, value: &Node) -> bool {
    match cr.at(&one.path) {
        Some(there) if *there != Node::Null => !is_unchanged(there, value),
        _ => says_something(value),
    }
}

/// Returns the entry of `audit` for a change; none if the text stays the same.
fn change(raw: &Node, one: &Normalized, value: &Node) -> Option<Node> {
    let from = raw.at(&one.path).cloned().unwrap_or_default();
    if from.to_text() == value.to_text() {
        return None;
    }
    let field: Path = one.path.steps().iter().skip(1).cloned().collect();
    Some(Node::object([
        ("field", Node::from(field.to_string())),
        ("from", from),
        ("to", value.clone()),
    ]))
}

fn says_something(value: &Node) -> bool {
    match value {
        Node::Null => false,
        Node::Str(text) => !text.is_empty(),
        Node::List(items) => !items.is_empty(),
        Node::Map(map) => !map.is_empty(),
        _ => true,
    }
}

/// True if the values over the resource as it would be stored equal those over the current one.
fn agrees(
    raw: &Node,
    normalize: &[Normalized],
    values: &[Option<Node>],
    again: &[Option<Node>],
) -> bool {
    let mut pairs = normalize.iter().zip(values.iter().zip(again));
    pairs.all(|(one, pair)| match pair {
        (Some(a), Some(b)) => is_unchanged(a, b),
        (None, None) => true,
        // A missing value on either side leaves the field as it is.
        (Some(a), None) | (None, Some(a)) => !differs(raw, one, a),
    })
}
