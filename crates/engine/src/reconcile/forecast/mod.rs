//! What a pass would write, field by field, without writing it.
//!
//! ```text
//!  Cycle (intents) ─┐
//!  live objects ────┼── writes ──► PlannedWrite: created, changed field by field, replaced, adopted, deleted, or refused
//!  field ownership ─┘
//! ```
//!
//! The decision about an object is that of the executor: [`difference`]. What would be left alone there is left alone here.

mod fields;
mod immutable;

use std::collections::{BTreeMap, BTreeSet};

pub use self::fields::FieldChange;
use super::{
    cycle::{Cycle, Intent, Rendered},
    differ::difference,
    metadata::{Malformed, controller},
    preview::{Assumptions, Preview, passed},
    record::{ChildRecord, Observed},
};
use orkestra_object::value::{Node, Path};
use orkestra_plan::{ChildKey, ChildPlan, OperatorPlan, REPLICAS};

/// A write of a pass to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedWrite {
    /// The object.
    pub key: ChildKey,
    /// The declaration in the Katalog; none if the object is no longer declared.
    pub declared: Option<Box<str>>,
    /// What happens to it.
    pub action: PlannedAction,
}

/// What happens to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedAction {
    /// It is deleted.
    Delete,
    /// It is deleted and created again: these immutable fields change.
    Replace(Vec<FieldChange>),
    /// The API server refuses the change of these immutable fields.
    Immutable(Vec<FieldChange>),
    /// An object of this name exists and is not the custom resource's, with the reason.
    Refuse(&'static str),
    /// An existing object is taken over, with these changes.
    Adopt(Vec<FieldChange>),
    /// It is created.
    Create,
    /// These fields change.
    Update(Vec<FieldChange>),
}

impl PlannedAction {
    /// Returns what happens to a declared child whose name an object has that is no child of the custom resource.
    pub fn of_stranger(plan: &OperatorPlan, declared: Option<&str>, object: &Node) -> Self {
        let mut children = plan.children.iter();
        let child = children.find(|child| declared == Some(&*child.path));
        if controller(object).is_some() {
            Self::Refuse(CONTROLLED)
        } else if child.is_some_and(|child| child.adopt) {
            Self::Adopt(Vec::new())
        } else {
            Self::Refuse(TAKEN)
        }
    }

    /// Returns the changed fields.
    pub fn fields(&self) -> &[FieldChange] {
        match self {
            Self::Delete | Self::Refuse(_) | Self::Create => &[],
            Self::Replace(fields)
            | Self::Immutable(fields)
            | Self::Adopt(fields)
            | Self::Update(fields) => fields,
        }
    }
}

/// Runs one pass over the assumed inputs, and returns with its result what it would write. `scaled` are objects that an autoscaler
/// targets.
///
/// # Errors
/// [`Malformed`] as for [`preview`](super::preview::preview).
pub fn forecast(
    plan: &OperatorPlan,
    assumed: Assumptions<'_>,
    scaled: &BTreeSet<ChildKey>,
) -> Result<(Preview, Vec<PlannedWrite>), Malformed> {
    let objects = assumed.children;
    let (preview, observed, cycle) = passed(plan, assumed)?;
    let live = (objects.iter())
        .filter_map(|object| Some((ChildKey::of(object)?, object)))
        .collect();
    let writes = writes(plan, &observed, &cycle, &live, scaled);
    Ok((preview, writes))
}

/// Returns what a pass writes to objects. `live` are the objects of the cluster with the names of its children, as far as they are
/// known; `scaled` are those that an autoscaler targets: a pass leaves their replicas alone.
fn writes(
    plan: &OperatorPlan,
    observed: &Observed,
    cycle: &Cycle,
    live: &BTreeMap<ChildKey, &Node>,
    scaled: &BTreeSet<ChildKey>,
) -> Vec<PlannedWrite> {
    let mut planned = Vec::new();
    for intent in &cycle.intents {
        let (rendered, is_once) = match intent {
            Intent::Keep(_) | Intent::Unlink(_) => continue,
            Intent::Delete(deletion) => {
                planned.push(PlannedWrite {
                    key: deletion.key.clone(),
                    declared: None,
                    action: PlannedAction::Delete,
                });
                continue;
            }
            Intent::Apply(rendered) => (rendered, false),
            Intent::Create(rendered) => (rendered, true),
        };
        let declared = &plan.children[rendered.declared];
        let found = live.get(&rendered.key).copied();
        let record = observed.child(&rendered.key);
        let action = match (found, record) {
            (Some(object), Some(record)) => existing(
                (plan, declared),
                observed,
                (rendered, is_once),
                (object, record),
                scaled,
            ),
            (Some(_), None) => Some(PlannedAction::Refuse(TAKEN)),
            (None, _) => Some(PlannedAction::Create),
        };
        planned.extend(action.map(|action| PlannedWrite {
            key: rendered.key.clone(),
            declared: Some((&*declared.path).into()),
            action,
        }));
    }
    planned
}

/// Why an object that another one controls is not taken over.
pub const CONTROLLED: &str = "an object of this name exists, and another object controls it";
/// Why an object of another client is not taken over.
pub const TAKEN: &str = "an object of this name exists and was not created for this custom resource; `adopt: true` adopts it";

/// Returns what happens to an object that exists; none if it stays as it is.
fn existing(
    (plan, declared): (&OperatorPlan, &ChildPlan),
    observed: &Observed,
    (rendered, is_once): (&Rendered, bool),
    (object, record): (&Node, &ChildRecord),
    scaled: &BTreeSet<ChildKey>,
) -> Option<PlannedAction> {
    let manager = plan.field_manager();
    let is_ours = record.is_ours(&observed.cr.id.uid, &manager);
    if !is_ours && record.controlled {
        return Some(PlannedAction::Refuse(CONTROLLED));
    }
    if !is_ours && !declared.adopt {
        return Some(PlannedAction::Refuse(TAKEN));
    }
    if is_once || record.deleting || rendered.is_outdated(record) {
        return None;
    }
    let found = difference(&rendered.wanted(declared), record, &manager, &[]);
    if is_ours && !found.needs_write() {
        return None;
    }
    let replicas = Path::of_fields(REPLICAS);
    let mut left: Vec<Path> = found.held.into_iter().map(|held| held.path).collect();
    if declared.may_be_scaled() && scaled.contains(&rendered.key) {
        left.push(replicas);
    }
    let wanted = super::differ::without(&rendered.object, &left);
    let changed = fields::changes((object, &wanted), &left, declared, record, &manager);
    let (fixed, free): (Vec<_>, Vec<_>) = changed
        .into_iter()
        .partition(|change| immutable::is_fixed(&rendered.key.kind, &change.path, object));
    match (is_ours, fixed.is_empty()) {
        (_, false) if declared.recreates => Some(PlannedAction::Replace(fixed)),
        (_, false) => Some(PlannedAction::Immutable(fixed)),
        (false, true) => Some(PlannedAction::Adopt(free)),
        (true, true) => (!free.is_empty()).then_some(PlannedAction::Update(free)),
    }
}
