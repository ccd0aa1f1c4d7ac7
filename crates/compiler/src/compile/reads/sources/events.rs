//! `.events`: the latest Events of `observe.events`.

use super::{RootRead, TemplateSource};
use crate::compile::{
    known_schemas::KnownSchemas,
    reads::{PlanReads, ReadScope, without_covered},
};
use orkestra_language::{
    diagnostics::{Code, nearest_or_all},
    schema::Type,
};
use orkestra_object::value::Path;
use orkestra_plan::{
    OperatorPlan,
    observe::{EVENTS, event_kind},
};

/// `.events`.
pub(crate) struct EventReads;

impl TemplateSource for EventReads {
    fn roots(&self) -> &'static [&'static str] {
        &[EVENTS]
    }

    fn add(&self, read: RootRead<'_>, around: ReadScope<'_>, gathered: &mut PlanReads) {
        let Some(name) = read.name() else {
            return self.add_all(around, gathered);
        };
        let names = || (around.plan.observe.events.iter()).map(|entry| &*entry.name);
        if names().any(|known| known == name) {
            return gathered.add_entry(EVENTS, &name, read.below[1..].iter().cloned().collect());
        }
        if !around.known.all {
            return;
        }
        let hint = if around.plan.observe.events.is_empty() {
            "events are declared under `observe.events` of the operatorBox".to_owned()
        } else {
            nearest_or_all(&name, &format!(".{EVENTS}."), names())
        };
        let message = format!("`observe.events` has no `{name}`");
        let text = format!("{EVENTS}.{name}");
        gathered.unreadable(Code::UnknownData, read.place, &text, message, Some(hint));
    }

    fn add_all(&self, around: ReadScope<'_>, gathered: &mut PlanReads) {
        for entry in &around.plan.observe.events {
            gathered.add_entry(EVENTS, &entry.name, Path::root());
        }
    }

    fn root_type<'s>(
        &self,
        _root: &'static str,
        known: KnownSchemas<'s>,
        plan: &OperatorPlan,
    ) -> Type<'s> {
        let event = known.objects(&event_kind());
        let names = plan.observe.events.iter();
        Type::of_names(names.map(|entry| (entry.name.to_string(), event.clone())))
    }

    fn settle(&self, gathered: &mut PlanReads, plan: &mut OperatorPlan) {
        for entry in &mut plan.observe.events {
            entry.reads = without_covered(gathered.take_entry(EVENTS, &entry.name));
        }
    }
}
