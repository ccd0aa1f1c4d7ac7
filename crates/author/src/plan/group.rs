//! Groups custom resources that change alike.

use std::{collections::BTreeMap, fmt::Write as _};

use orkestra_engine::reconcile::forecast::{FieldChange, PlannedAction, PlannedWrite};
use orkestra_object::value::{MASK, Node};
use orkestra_plan::{GroupKind, OperatorPlan};
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
        let with_hides = |write: PlannedWrite| {
            let hides = hides(&write);
            (write, hides)
        };
        let mut writes: Vec<_> = writes.into_iter().map(with_hides).collect();
        writes.sort_by_key(|(write, _)| Severity::of(&write.action));
        Self {
            operator: operator.name.clone(),
            own: cr.meta_text("name").unwrap_or_default().to_owned(),
            name,
            writes,
        }
    }

    /// Returns the changed fields of the child at that place.
    fn fields(&self, place: usize) -> &[FieldChange] {
        let write = self.writes.get(place);
        write.map_or(&[], |(write, _)| write.action.fields())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the number of children that are deleted or replaced.
    pub(crate) fn deletions(&self) -> usize {
        let ends = |action: &PlannedAction| Severity::of(action) <= Severity::Replace;
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
                Severity::of(&planned.action),
                planned.key.kind
            );
            for field in planned.action.fields() {
                let _ = write!(shape, " {}", field.path);
            }
        }
        shape
    }
}

/// Returns what a pass does to the children of one custom resource.
pub(crate) fn planned_changes(
    operator: &OperatorPlan,
    cr: &Node,
    writes: &[PlannedWrite],
    shows_secrets: bool,
) -> Vec<PlannedChange> {
    let instance = Instance::new(operator, cr, String::new(), writes.to_vec());
    changes(&instance, std::slice::from_ref(&instance), shows_secrets)
}

impl Severity {
    fn of(action: &PlannedAction) -> Self {
        match action {
            PlannedAction::Delete => Self::Delete,
            PlannedAction::Replace(_) => Self::Replace,
            PlannedAction::Immutable(_) => Self::Immutable,
            PlannedAction::Refuse(_) => Self::Refuse,
            PlannedAction::Adopt(_) => Self::Adopt,
            PlannedAction::Create => Self::Create,
            PlannedAction::Update(_) => Self::Update,
        }
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
        .filter_map(|alike| Some(group(alike.first()?, &alike, shows_secrets)))
        .collect();
    groups.sort_by_key(|group| {
        let worst = group.changes.first().map(|change| change.action);
        (worst, usize::MAX - group.count)
    });
    groups
}

/// Returns the group of custom resources that change alike, with the values of the first one.
fn group(first: &Instance, alike: &[Instance], shows_secrets: bool) -> PlanGroup {
    let names = alike.iter().take(MOST_NAMED).map(|one| one.name.clone());
    PlanGroup {
        operator: first.operator.clone(),
        count: alike.len(),
        examples: names.collect(),
        changes: changes(first, alike, shows_secrets),
    }
}

fn changes(first: &Instance, alike: &[Instance], shows_secrets: bool) -> Vec<PlannedChange> {
    let writes = first.writes.iter().enumerate();
    let change = |(place, (write, hides)): (usize, &(PlannedWrite, bool))| PlannedChange {
        action: Severity::of(&write.action),
        object: write.key.to_string(),
        declared: write.declared.clone(),
        reason: match &write.action {
            PlannedAction::Refuse(why) => Some(*why),
            _ => None,
        },
        fields: fields((first, alike), place, *hides && !shows_secrets),
    };
    writes.map(change).collect()
}

/// Returns the changed fields of the child at that place, with the values of the first custom resource.
fn fields(
    (first, alike): (&Instance, &[Instance]),
    place: usize,
    hides: bool,
) -> Vec<PlannedField> {
    let own = |node: &Option<Node>, instance: &Instance| {
        let text = node.as_ref().map(|node| node.to_json().to_string());
        text.map(|text| template(&text, &instance.own))
    };
    let shown = |node: &Option<Node>| {
        let node = node.as_ref();
        node.map(|node| if hides { MASK.into() } else { node.to_json() })
    };
    let of_first = first.fields(place).iter().enumerate();
    let listed = of_first.map(|(index, field)| {
        let is_same = |other: &Instance| {
            other.fields(place).get(index).is_some_and(|theirs| {
                own(&theirs.before, other) == own(&field.before, first)
                    && own(&theirs.after, other) == own(&field.after, first)
            })
        };
        PlannedField {
            differs: !alike.iter().all(is_same),
            path: field.path.clone(),
            before: shown(&field.before),
            after: shown(&field.after),
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
