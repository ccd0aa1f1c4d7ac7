//! `.hook`: the data that hooks return. What hooks see of the custom resource and its children is read, too.

use super::{RootRead, TemplateSource};
use crate::compile::{
    hooks::roots_of_resource,
    known_schemas::KnownSchemas,
    reads::{PlanReads, ReadScope},
};
use orkestra_language::{
    diagnostics::{Code, nearest_or_all},
    schema::Type,
};
use orkestra_plan::{HOOK, HOOK_CHILDREN, HookPlan, ManagedKind, OperatorPlan};

/// The stages of hooks, for messages.
const ORDER: &str = "hooks are called after all `external` calls: `before` hooks before the templates, `after` hooks before the \
                     status, and hooks of a later stage read the data of those before them";

/// `.hook`.
pub(crate) struct HookReads;

impl TemplateSource for HookReads {
    fn roots(&self) -> &'static [&'static str] {
        &[HOOK, HOOK_CHILDREN]
    }

    fn add(&self, read: RootRead<'_>, around: ReadScope<'_>, gathered: &mut PlanReads) {
        let (hooks, place) = (&around.plan.hooks, read.place);
        if read.root == HOOK_CHILDREN {
            // Only the declarations of a hook's children have its place.
            if !hooks.iter().any(|hook| hook.path == *place.at.place) {
                let message = format!("there is no `.{HOOK_CHILDREN}`");
                let hint = format!("the data that hooks return is at `.{HOOK}`");
                gathered.unreadable(Code::UnknownData, place, HOOK_CHILDREN, message, Some(hint));
            }
            return;
        }
        let Some(name) = read.name() else { return };
        let names = || hooks.iter().map(|hook| &*hook.name);
        let (message, hint) = match names().position(|known| known == name) {
            Some(position) if around.calls.plan.calls.len() + position < around.calls.made => {
                return;
            }
            Some(_) => {
                let message = format!("the hook `{name}` has not been called at this point");
                (message, ORDER.to_owned())
            }
            None if hooks.is_empty() => {
                let hint = "hooks are declared under `hooks` of the operatorBox".to_owned();
                (format!("there is no hook `{name}`"), hint)
            }
            None => {
                let hint = nearest_or_all(&name, &format!(".{HOOK}."), names());
                (format!("there is no hook `{name}`"), hint)
            }
        };
        let text = format!("{HOOK}.{name}");
        gathered.unreadable(Code::UnknownData, place, &text, message, Some(hint));
    }

    fn root_type<'s>(
        &self,
        _root: &'static str,
        _known: KnownSchemas<'s>,
        _plan: &OperatorPlan,
    ) -> Type<'s> {
        Type::any()
    }

    fn settle(&self, gathered: &mut PlanReads, plan: &mut OperatorPlan) {
        if plan.hooks.is_empty() {
            return;
        }
        let roots: Vec<_> = roots_of_resource(&plan.roots).collect();
        gathered.reads.cr.extend(HookPlan::reads(&roots));
        for ManagedKind { kind, roots } in plan.hooks.iter().flat_map(|hook| &hook.managed) {
            let kept = gathered
                .reads
                .children
                .entry(kind.group_kind())
                .or_default();
            kept.extend(HookPlan::reads(roots));
            kept.sort();
            kept.dedup();
        }
    }
}
