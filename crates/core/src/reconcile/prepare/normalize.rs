//! Values of the spec in one form: in memory for the pass, and, where nobody else holds them, on the resource itself.
//!
//! What is written must be what the next pass wants, or one write would lead to another. So everything is evaluated once
//! more over the resource as it would be stored; where that gives anything else, nothing is stored.

use super::{Rules, is_same, listed};
use crate::{
    plan::{Normalized, RulesPlan},
    reconcile::{holds::Holds, patch::merge_patch, render::RenderError},
    value::{Node, Path, set},
};

/// What became of `normalize`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Normalization {
    /// The JSON merge patch of `spec` that stores what differs; none where nothing is to be written.
    pub patch: Option<Node>,
    /// The fields that it writes.
    pub stored: Vec<Path>,
    /// The fields that are normalized in memory only, and why.
    pub held: Vec<(Path, Box<str>)>,
}

impl Normalization {
    /// Nothing is written after all: what would have been is held in memory.
    pub fn withhold(&mut self, why: &str) {
        self.patch = None;
        let stored = std::mem::take(&mut self.stored);
        let stored = stored.into_iter().map(|path| (path, why.into()));
        self.held.extend(stored);
        self.held.sort();
    }

    /// Whether all of the resource's own fields are in their form.
    pub fn is_stored(&self) -> bool {
        self.held.is_empty()
    }

    /// What a condition says.
    pub fn message(&self) -> String {
        if self.is_stored() {
            return "the resource holds each normalized field in its form".to_owned();
        }
        let mut whys: Vec<&str> = Vec::new();
        for (_, why) in &self.held {
            if !whys.contains(&&**why) {
                whys.push(why);
            }
        }
        let told = whys.into_iter().map(|why| {
            let paths = self.held.iter().filter(|(_, other)| &**other == why);
            format!("{} in memory: {why}", listed(paths.map(|(path, _)| path)))
        });
        told.collect::<Vec<_>>().join("; ")
    }
}

/// A custom resource with its values in one form.
pub(super) struct Formed {
    pub(super) cr: Node,
    pub(super) changes: Vec<(Path, Node)>,
    pub(super) told: Option<Normalization>,
    /// What templates read of the changes, where they do.
    pub(super) audit: Node,
}

/// Why a change is kept in memory.
const DECLARED: &str = "`persist: false`";
const UNKNOWN: &str = "the definition has no such field";
const UNSTABLE: &str = "the stored value would be normalized to another one";

impl Rules<'_> {
    /// Normalizes `raw`, of which `holds` tells who else writes it.
    ///
    /// # Errors
    /// The first value's that cannot be rendered.
    pub(super) fn normalize(
        &self,
        raw: &Node,
        holds: Option<&Holds>,
    ) -> Result<Formed, RenderError> {
        let RulesPlan {
            normalize, persist, ..
        } = &self.plan.rules;
        let values = self.values(raw, normalize)?;
        let mut formed = Formed {
            cr: raw.clone(),
            changes: Vec::new(),
            told: (!normalize.is_empty()).then(Normalization::default),
            audit: Node::Null,
        };
        let mut audit = Vec::new();
        let Some(told) = &mut formed.told else {
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
            } else {
                holds.and_then(|holds| holds.of(&one.path))
            };
            if let Some(why) = why {
                told.held.push((one.path.clone(), why.into()));
            } else {
                set(&mut stored, &one.path, value.clone());
                told.stored.push(one.path.clone());
            }
            set(&mut formed.cr, &one.path, value.clone());
            formed.changes.push((one.path.clone(), value.clone()));
        }
        if self.plan.rules.audit {
            formed.audit = Node::List(audit.into());
        }
        if told.stored.is_empty() {
            return Ok(formed);
        }
        let again = self.values(&stored, normalize);
        if again.is_ok_and(|again| agrees(raw, normalize, &values, &again)) {
            let spec = |cr: &Node| cr.get("spec").cloned().unwrap_or_else(|| Node::object([]));
            told.patch = merge_patch(&spec(raw), &spec(&stored));
        } else {
            told.withhold(UNSTABLE);
        }
        Ok(formed)
    }

    /// The values over `cr`; none where a field stays as it is.
    fn values(
        &self,
        cr: &Node,
        normalize: &[Normalized],
    ) -> Result<Vec<Option<Node>>, RenderError> {
        let value = |one: &Normalized| self.on(cr, None, |renderer| renderer.leaf(&one.value));
        let values = normalize.iter().map(value);
        values.collect()
    }
}

/// Whether a value is another one than `cr` has. A field that is not there is not made empty.
fn differs(cr: &Node, one: &Normalized, value: &Node) -> bool {
    match cr.at(&one.path) {
        Some(there) if *there != Node::Null => !is_same(there, value),
        _ => says_something(value),
    }
}

/// What `audit` says of a change; nothing where the text stays the same.
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

/// Whether the values over what would be stored are those over what is stored now.
fn agrees(
    raw: &Node,
    normalize: &[Normalized],
    values: &[Option<Node>],
    again: &[Option<Node>],
) -> bool {
    let mut pairs = normalize.iter().zip(values.iter().zip(again));
    pairs.all(|(one, pair)| match pair {
        (Some(a), Some(b)) => is_same(a, b),
        (None, None) => true,
        // What says nothing over one of them leaves the field as it is.
        (Some(a), None) | (None, Some(a)) => !differs(raw, one, a),
    })
}
