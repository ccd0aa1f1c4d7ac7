//! The sources of template data with roots of their own: which reads they permit, and the types of their data.
//!
//! A source is a file here, with its `mod` and its line in [`ALL`].

mod children;
mod cross;
mod events;
mod hooks;
mod introspection;

use super::{PlanReads, ReadPosition, ReadScope};
use crate::compile::known_schemas::KnownSchemas;
use orkestra_language::schema::Type;
use orkestra_object::value::PathStep;
use orkestra_plan::OperatorPlan;

/// All sources.
static ALL: [&dyn TemplateSource; 5] = [
    &children::ChildReads,
    &cross::CrossReads,
    &events::EventReads,
    &hooks::HookReads,
    &introspection::IntrospectionReads,
];

/// A source of template data, as the compiler sees it.
pub(crate) trait TemplateSource: Sync {
    /// Returns the names of its roots.
    fn roots(&self) -> &'static [&'static str];

    /// Records a valid read below a root, and reports an invalid one.
    fn add(&self, read: RootRead<'_>, around: ReadScope<'_>, gathered: &mut PlanReads);

    /// Records the reads of a template that reads the root of all data.
    fn add_all(&self, _around: ReadScope<'_>, _gathered: &mut PlanReads) {}

    /// Returns the type of the data at a root.
    fn root_type<'s>(
        &self,
        root: &'static str,
        known: KnownSchemas<'s>,
        plan: &OperatorPlan,
    ) -> Type<'s>;

    /// Sets the reads of its entries in the plan.
    fn settle(&self, _gathered: &mut PlanReads, _plan: &mut OperatorPlan) {}
}

/// A read below a root of a source.
#[derive(Clone, Copy)]
pub(crate) struct RootRead<'a> {
    /// The root.
    pub(crate) root: &'static str,
    /// The path below the root.
    pub(crate) below: &'a [PathStep],
    /// The place of the read.
    pub(crate) place: ReadPosition<'a>,
}

impl RootRead<'_> {
    /// Returns the first step below the root as text; none if the root is read as a whole.
    fn name(&self) -> Option<String> {
        match self.below.first()? {
            PathStep::Field(name) => Some(name.to_string()),
            PathStep::Index(index) => Some(index.to_string()),
        }
    }
}

/// Returns all sources.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn TemplateSource> {
    ALL.into_iter()
}

/// Returns the names of the roots of all sources.
pub(crate) fn roots<'a>() -> impl Iterator<Item = &'a str> {
    all().flat_map(|source| source.roots().iter().copied())
}

/// Returns the source with a root of that name, and the name.
pub(crate) fn of_root(name: &str) -> Option<(&'static dyn TemplateSource, &'static str)> {
    all().find_map(|source| {
        let root = source.roots().iter().find(|root| **root == name)?;
        Some((source, *root))
    })
}

/// Returns the types of the roots of all sources.
pub(crate) fn types<'s>(
    known: KnownSchemas<'s>,
    plan: &OperatorPlan,
) -> impl Iterator<Item = (String, Type<'s>)> {
    all().flat_map(move |source| {
        let roots = source.roots().iter();
        roots.map(move |root| (root.to_string(), source.root_type(root, known, plan)))
    })
}
