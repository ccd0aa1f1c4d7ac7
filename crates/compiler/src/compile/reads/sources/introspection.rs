//! `.health`, `.metrics` and `.ork`: the operator and its process.

use super::{RootRead, TemplateSource};
use crate::compile::{
    known_schemas::KnownSchemas,
    reads::{PlanReads, ReadScope},
};
use orkestra_language::{
    diagnostics::{Code, nearest_or_all},
    schema::Type,
};
use orkestra_plan::{OperatorPlan, introspection::Introspection};

/// The roots of [`Introspection`].
pub(crate) struct IntrospectionReads;

impl TemplateSource for IntrospectionReads {
    fn roots(&self) -> &'static [&'static str] {
        Introspection::ROOTS
    }

    fn add(&self, read: RootRead<'_>, _around: ReadScope<'_>, gathered: &mut PlanReads) {
        let Some(about) = Introspection::of_root(read.root) else {
            return;
        };
        let fields = || about.fields().into_iter().map(|(field, _)| field);
        if let Some(name) = read.name()
            && !fields().any(|field| field == name)
        {
            let hint = nearest_or_all(&name, &format!("{about}."), fields().collect::<Vec<_>>());
            let message = format!("`{about}` has no `{name}`");
            let text = format!("{}.{name}", read.root);
            return gathered.unreadable(Code::UnknownData, read.place, &text, message, Some(hint));
        }
        gathered.reads.roots.insert(about.root());
    }

    fn root_type<'s>(
        &self,
        root: &'static str,
        _known: KnownSchemas<'s>,
        _plan: &OperatorPlan,
    ) -> Type<'s> {
        Introspection::of_root(root).map_or_else(Type::any, Introspection::template_type)
    }
}
