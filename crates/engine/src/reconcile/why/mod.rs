//! Why a field of a child is as it is: the expression that renders it, and the values that it depends on.
//!
//! ```text
//!  custom resource, live objects, answers ── pass ───────────────────► the child ── origin ──► expressions, with their places
//!        └── one value changed ───────────── pass ── the child differs? ── dependencies ──► the values that the field depends on
//! ```
//!
//! A field depends on a value if the pass gives another field when that value alone is different: nothing is concluded from the text of
//! a template, so conditions, defaults, profiles, inputs of Motifs, rules that complete the custom resource, hooks and copies all count as
//! they work in a cluster.

mod alternatives;
mod dependencies;
mod origin;

pub use self::{
    dependencies::{Dependencies, Dependency, Input},
    origin::{Expression, Origin},
};
use jiff::Timestamp;

use super::{
    cycle::{Cycle, Intent, Rendered},
    differ::without,
    metadata::Malformed,
    preview::{Assumptions, passed},
    record::Observed,
};
use orkestra_language::api::names;
use orkestra_object::value::{Node, Path, PathStep};
use orkestra_plan::{ChildKey, OperatorPlan, PlanPlace};

/// Why a field is as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The value that the pass gives it; none if it leaves the field out.
    pub value: Option<Node>,
    /// The entry of the Katalog that declares the child.
    pub entry: PlanPlace,
    /// Where the value comes from.
    pub origin: Origin,
    /// The values that it depends on.
    pub inputs: Vec<WhyInput>,
    /// True if not every value could be tried: the custom resource and its children have too many.
    pub is_partial: bool,
    /// True if the child is created once and exists: the answer is how it would be created now.
    pub is_past: bool,
}

/// A value that a field depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct WhyInput {
    /// The value's place.
    pub input: Input,
    /// The value; none if it is not set.
    pub value: Option<Node>,
    /// What it decides.
    pub effect: Effect,
}

/// What a value decides about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The value of the field.
    Value,
    /// Whether the child exists.
    Existence,
}

/// A pass over a custom resource, and what each field of its children depends on.
pub struct Explainer<'a> {
    plan: &'a OperatorPlan,
    now: Timestamp,
    observed: Observed,
    cycle: Cycle,
    dependencies: Dependencies,
}

impl<'a> Explainer<'a> {
    /// Runs the pass, and tries which values its children depend on: up to some seconds of computation.
    ///
    /// # Errors
    /// [`Malformed`] as for [`preview`](super::preview::preview).
    pub fn new(plan: &'a OperatorPlan, assumed: &Assumptions<'_>) -> Result<Self, Malformed> {
        let (preview, observed, cycle) = passed(plan, assumed.clone())?;
        let dependencies = dependencies::search(plan, assumed, (&cycle, preview.failures));
        Ok(Self {
            plan,
            now: assumed.now,
            observed,
            cycle,
            dependencies,
        })
    }

    /// Returns all values that some child depends on.
    pub fn dependencies(&self) -> &Dependencies {
        &self.dependencies
    }

    /// Returns the children that the pass renders.
    pub fn children(&self) -> impl Iterator<Item = (&ChildKey, &Node)> {
        rendered(&self.cycle).map(|one| (&one.key, &one.object))
    }

    /// Explains a field of a child; the root is the whole child. None if the pass does not render the child.
    pub fn why(&self, key: &ChildKey, path: &Path) -> Option<Why> {
        let rendered = rendered(&self.cycle).find(|one| one.key == *key)?;
        let declared = &self.plan.children[rendered.declared];
        let input = |one: &Dependency| {
            let effect = if one
                .changes
                .iter()
                .any(|(of, at)| of == key && at.overlaps(path))
            {
                Effect::Value
            } else if one.decides.contains(key) {
                Effect::Existence
            } else {
                return None;
            };
            Some(WhyInput {
                input: one.input.clone(),
                value: one.value.clone(),
                effect,
            })
        };
        let found = &self.dependencies.found;
        let mut inputs: Vec<WhyInput> = found.iter().filter_map(input).collect();
        inputs.sort_by_key(|one| one.effect);
        let pass = (&self.observed, &self.cycle);
        Some(Why {
            value: rendered.object.at(path).cloned(),
            entry: declared.path.clone(),
            origin: origin::origin(self.plan, pass, rendered, path, self.now),
            inputs,
            is_partial: self.dependencies.is_partial,
            is_past: false,
        })
    }
}

/// Explains a field of a child; the root is the whole child. None if no pass renders the child.
///
/// # Errors
/// [`Malformed`] as for [`preview`](super::preview::preview).
pub fn why(
    plan: &OperatorPlan,
    assumed: &Assumptions<'_>,
    (key, path): (&ChildKey, &Path),
) -> Result<Option<Why>, Malformed> {
    let (_, _, cycle) = passed(plan, assumed.clone())?;
    if rendered(&cycle).any(|one| one.key == *key) {
        return Ok(Explainer::new(plan, assumed)?.why(key, path));
    }
    // A child that was created once is not rendered again: it is, for a custom resource that has no children yet.
    let inventory = ["metadata", "annotations", names::ANNOTATION_INVENTORY];
    let is_other = |object: &&Node| ChildKey::of(object).as_ref() != Some(key);
    let others: Vec<Node> = assumed.children.iter().filter(is_other).cloned().collect();
    let fresh = Assumptions {
        cr: without(&assumed.cr, &[Path::of_fields(inventory)]),
        children: &others,
        ..assumed.clone()
    };
    let why = Explainer::new(plan, &fresh)?.why(key, path);
    Ok(why.map(|why| Why {
        is_past: true,
        ..why
    }))
}

/// Returns the rendered children of a pass, in the order of their creation.
fn rendered(cycle: &Cycle) -> impl Iterator<Item = &Rendered> {
    cycle.intents.iter().filter_map(|intent| match intent {
        Intent::Apply(rendered) | Intent::Create(rendered) => Some(&**rendered),
        Intent::Keep(_) | Intent::Unlink(_) | Intent::Delete(_) => None,
    })
}

/// Calls `visit` with the path of each value of a child, without those that Orkestra writes for itself.
pub fn visit_fields(object: &Node, visit: &mut dyn FnMut(&Path)) {
    dependencies::leaves(object, &Path::root(), &mut |path, _| {
        if !is_mark(path) {
            visit(path);
        }
    });
}

/// True for what Orkestra writes for itself: labels and annotations of its own, such as the hash of the whole object, and the owner.
fn is_mark(path: &Path) -> bool {
    let mut keys = path.steps().iter().filter_map(|step| match step {
        PathStep::Field(key) => Some(&**key),
        PathStep::Index(_) => None,
    });
    path.starts_with(&Path::of_fields(["metadata", "ownerReferences"]))
        || keys.any(|key| key.starts_with(names::PREFIX))
}
