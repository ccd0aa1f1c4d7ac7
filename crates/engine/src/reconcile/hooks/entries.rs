//! Children that a hook returns as entries of the language, such as `deployments: [{name: web, image: nginx}]`: they are compiled
//! and rendered as those of a Katalog are, and are whole objects from then on.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::HookError;
use crate::reconcile::{
    cycle::{Intent, StepResult},
    inventory::Inventory,
    record::Observed,
    sources::Answers,
    step::{ServedScopes, step},
};
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, HookPlan, OperatorPlan};
use orkestra_template::Entropy;

/// The scopes of the kinds of a plan.
struct DeclaredScopes<'a>(&'a OperatorPlan);

impl ServedScopes for DeclaredScopes<'_> {
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool> {
        let mut kinds = self.0.kinds();
        let known = kinds.find(|known| known.group_kind() == *kind)?;
        Some(known.namespaced.unwrap_or(true))
    }
}

/// Returns the whole objects of entries, by list, for the custom resource.
///
/// # Errors
/// An entry is not valid, or needs more than itself: generated values, or objects that it copies.
pub(crate) fn objects(
    (plan, hook): (&OperatorPlan, &HookPlan),
    observed: &Observed,
    entries: &Node,
    now: Timestamp,
) -> Result<Vec<Node>, HookError> {
    let refused = |message: String| HookError {
        message: format!("`children`: {message}"),
        permanent: true,
    };
    let expanded = (hook.entries)(&plan.resource, entries).map_err(refused)?;
    if let Some(drawn) = expanded.children.iter().find(|child| child.draws_once()) {
        let path = &drawn.path;
        return Err(refused(format!(
            "{path}: values that are generated once cannot be part of an answer"
        )));
    }
    // The custom resource alone: the entries have everything else.
    let alone = Observed {
        cr: observed.cr.clone(),
        inventory: Inventory::default().into(),
        children: Vec::new(),
        orphans: Vec::new(),
        unseen: BTreeSet::new(),
        reported: None,
        answers: Answers::new(),
    };
    let entropy = Entropy::seeded([0; 32]);
    let cycle = match step(&expanded, &DeclaredScopes(&expanded), &alone, now, &entropy) {
        StepResult::Done(cycle) => cycle,
        StepResult::Need(_) => {
            return Err(refused(
                "entries that read other objects cannot be part of an answer".to_owned(),
            ));
        }
    };
    if let Some(failure) = cycle.failures.first() {
        return Err(refused(format!("{}: {}", failure.at, failure.message)));
    }
    let made = cycle.intents.into_iter().filter_map(|intent| match intent {
        Intent::Apply(rendered) | Intent::Create(rendered) => Some(rendered.object),
        Intent::Keep(_) | Intent::Unlink(_) | Intent::Delete(_) => None,
    });
    Ok(made.collect())
}
