//! Groups custom resources that change alike.

use std::{collections::BTreeMap, fmt::Write as _};

use orkestra_engine::reconcile::forecast::{PlannedAction, PlannedWrite};
use orkestra_object::value::{MASK, Node};
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan};
use serde::Serialize;
use serde_json::Value;

/// How many custom resources of a group are named.
const MOST_NAMED: usize = 3;

/// How much a change can cost, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// An object is deleted.
    Delete,
    /// An object is deleted and created again.
    Replace,
    /// The API server refuses the change of an immutable field.
    Immutable,
    /// An object of another client has the name.
    Refuse,
    /// An existing object is taken over.
    Adopt,
    /// Fields of an object change.
    Update,
    /// An object is created.
    Create,
}

/// Custom resources that change alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanGroup {
    /// The operator.
    pub operator: String,
    /// The number of custom resources.
    pub count: usize,
    /// Some of them.
    pub examples: Vec<String>,
    /// What happens to the children of each, the worst first. Names and values are those of the first example.
    pub changes: Vec<PlannedChange>,
}

/// What happens to a child.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// What happens.
    pub action: Severity,
    /// The object: `Deployment.apps default/north`.
    pub object: String,
    /// Its declaration in the Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<Box<str>>,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The changed fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<PlannedField>,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedField {
    /// The field.
    pub path: String,
    /// The value before; none if the field is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; none if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// True if the values of other custom resources of the group differ from these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub differs: bool,
}

/// What happens to the children of one custom resource.
pub(crate) struct Instance {
    operator: String,
    name: String,
    /// The name of the custom resource itself, which the names of its children contain.
    own: String,
    writes: Vec<(PlannedWrite, bool)>,
}

impl Instance {
    pub(crate) fn new(
        operator: &OperatorPlan,
        cr: &Node,
        name: String,
        writes: Vec<PlannedWrite>,
    ) -> Self {
        let hides = |write: &PlannedWrite| {
            let secret = GroupKind::parse("Secret");
            let mut children = operator.children.iter();
            let declared = children.find(|child| write.declared.as_deref() == Some(&*child.path));
            write.key.kind == secret || declared.is_none_or(|child| child.shows_secrets)
        };
        let mut writes: Vec<(PlannedWrite, bool)> = writes
            .into_iter()
            .map(|write| (hides(&write), write))
            .map(|(hides, write)| (write, hides))
            .collect();
        writes.sort_by_key(|(write, _)| severity(&write.action));
        Self {
            operator: operator.name.clone(),
            own: cr.meta_text("name").unwrap_or_default().to_owned(),
            name,
            writes,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the number of children that are deleted or replaced.
    pub(crate) fn deletions(&self) -> usize {
        let ends = |action: &PlannedAction| severity(action) <= Severity::Replace;
        self.writes
            .iter()
            .filter(|(write, _)| ends(&write.action))
            .count()
    }

    /// Returns what two custom resources have in common that change alike: actions, kinds, declarations and fields, without values
    /// and without their own names.
    fn shape(&self) -> String {
        let mut shape = self.operator.clone();
        for (planned, _) in &self.writes {
            let name = template(&planned.key.object.name, &self.own);
            let of = planned.declared.as_deref().unwrap_or(&name);
            // Writing to a String cannot fail.
            let _ = write!(
                shape,
                "\n{:?} {} {of}",
                severity(&planned.action),
                planned.key.kind
            );
            for field in planned.action.fields() {
                let _ = write!(shape, " {}", field.path);
            }
        }
        shape
    }
}

fn severity(action: &PlannedAction) -> Severity {
    match action {
        PlannedAction::Delete => Severity::Delete,
        PlannedAction::Replace(_) => Severity::Replace,
        PlannedAction::Immutable(_) => Severity::Immutable,
        PlannedAction::Refuse(_) => Severity::Refuse,
        PlannedAction::Adopt(_) => Severity::Adopt,
        PlannedAction::Create => Severity::Create,
        PlannedAction::Update(_) => Severity::Update,
    }
}

/// Groups the custom resources; those with the worst changes come first, then the largest groups.
pub(crate) fn groups(instances: Vec<Instance>, shows_secrets: bool) -> Vec<PlanGroup> {
    let mut by_shape: BTreeMap<String, Vec<Instance>> = BTreeMap::new();
    for instance in instances.into_iter().filter(|one| !one.is_empty()) {
        by_shape.entry(instance.shape()).or_default().push(instance);
    }
    let mut groups: Vec<PlanGroup> = by_shape
        .into_values()
        .map(|alike| group(&alike, shows_secrets))
        .collect();
    groups.sort_by_key(|group| {
        let worst = group.changes.first().map(|change| change.action);
        (worst, usize::MAX - group.count)
    });
    groups
}

/// Returns the group of custom resources that change alike; there is at least one.
fn group(alike: &[Instance], shows_secrets: bool) -> PlanGroup {
    let Some(first) = alike.first() else {
        return PlanGroup {
            operator: String::new(),
            count: 0,
            examples: Vec::new(),
            changes: Vec::new(),
        };
    };
    let changes = first
        .writes
        .iter()
        .enumerate()
        .map(|(place, (write, hides))| PlannedChange {
            action: severity(&write.action),
            object: object(&write.key),
            declared: write.declared.clone(),
            reason: match &write.action {
                PlannedAction::Refuse(why) => Some(why),
                _ => None,
            },
            fields: fields(alike, place, *hides && !shows_secrets),
        });
    PlanGroup {
        operator: first.operator.clone(),
        count: alike.len(),
        examples: alike
            .iter()
            .take(MOST_NAMED)
            .map(|one| one.name.clone())
            .collect(),
        changes: changes.collect(),
    }
}

/// Returns the changed fields of the child at that place, with the values of the first custom resource.
fn fields(alike: &[Instance], place: usize, hides: bool) -> Vec<PlannedField> {
    let of = |instance: &'_ Instance| -> Vec<(String, Option<Node>, Option<Node>)> {
        let write = instance
            .writes
            .get(place)
            .map(|(write, _)| write.action.fields());
        let fields = write.unwrap_or_default().iter();
        fields
            .map(|field| {
                (
                    field.path.clone(),
                    field.before.clone(),
                    field.after.clone(),
                )
            })
            .collect()
    };
    let Some(first) = alike.first() else {
        return Vec::new();
    };
    let own = |node: &Option<Node>, instance: &Instance| {
        node.as_ref()
            .map(|node| template(&node.to_json().to_string(), &instance.own))
    };
    let shown = |node: Option<&Node>| {
        node.map(|node| {
            if hides {
                Value::from(MASK)
            } else {
                node.to_json()
            }
        })
    };
    let listed = of(first)
        .into_iter()
        .enumerate()
        .map(|(index, (path, before, after))| {
            let same = |other: &Instance| {
                of(other).get(index).is_some_and(|(_, b, a)| {
                    own(b, other) == own(&before, first) && own(a, other) == own(&after, first)
                })
            };
            PlannedField {
                differs: !alike.iter().all(same),
                path,
                before: shown(before.as_ref()),
                after: shown(after.as_ref()),
            }
        });
    listed.collect()
}

/// Returns a text with a placeholder for the name of a custom resource, where it stands as a word.
fn template(text: &str, own: &str) -> String {
    if own.is_empty() {
        return text.to_owned();
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(own) {
        let (before, after) = (&rest[..at], &rest[at + own.len()..]);
        let is_word = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        let is_whole = is_word(before.chars().last().or(result.chars().last()))
            && is_word(after.chars().next());
        result += before;
        result += if is_whole { "{name}" } else { own };
        rest = after;
    }
    result + rest
}

fn object(key: &ChildKey) -> String {
    key.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_name_is_replaced_where_it_is_a_word() {
        assert_eq!(template("north-db.north", "north"), "{name}-db.{name}");
        assert_eq!(template("northern", "north"), "northern");
        assert_eq!(template("a", ""), "a");
    }
}
