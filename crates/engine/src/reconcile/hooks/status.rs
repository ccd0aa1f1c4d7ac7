//! What hooks say about the status of a custom resource.

use crate::reconcile::{
    crd_status::{CONDITIONS, CrdStatus, GENERATION},
    requested::LAST_HANDLED,
    template_data::TemplateData,
};
use orkestra_language::api::conditions::Condition;
use orkestra_object::value::{Key, Map, Node, Path, PathStep, set};
use orkestra_plan::{HookProtocol, OperatorPlan};

/// Writes the fields of the status that hooks returned, as far as the definition has them: a field that it lacks would be
/// dropped silently, and written again in each pass.
pub(crate) fn write_status(
    (plan, crd_status): (&OperatorPlan, &CrdStatus),
    sources: &TemplateData,
    wanted: &mut Node,
) {
    for (place, response) in &sources.hooks.answered {
        if response.replaces_status {
            let declared = |key: &Key| {
                let mut fields = plan.status.fields.iter();
                fields.any(|field| field.path.starts_with(&Path::of_fields([key.clone()])))
            };
            let others = wanted.as_map().into_iter().flat_map(Map::keys);
            let gone: Vec<Key> = others
                .filter(|key| {
                    response.status.get(key).is_none() && !declared(key) && !is_runtimes(key)
                })
                .cloned()
                .collect();
            for key in gone {
                set(wanted, &Path::of_fields([key]), Node::Null);
            }
        }
        let is_whole = plan.hooks[*place].protocol == HookProtocol::Metacontroller;
        for (key, value) in response.status.iter().filter(|(key, _)| !is_runtimes(key)) {
            put(
                crd_status,
                &Path::of_fields([key.clone()]),
                value,
                is_whole,
                wanted,
            );
        }
    }
}

/// True if the runtime itself writes the field of the status.
fn is_runtimes(key: &Key) -> bool {
    [CONDITIONS, GENERATION, LAST_HANDLED].contains(&&**key)
}

/// Sets a field of the status; maps are merged, unless the field is set as a whole.
fn put(crd_status: &CrdStatus, path: &Path, value: &Node, is_whole: bool, wanted: &mut Node) {
    match value {
        Node::Map(fields) if !is_whole && !fields.is_empty() => {
            for (key, value) in fields.iter() {
                let steps = path.steps().iter().cloned();
                let below = steps.chain([PathStep::Field(key.clone())]).collect();
                put(crd_status, &below, value, is_whole, wanted);
            }
        }
        value if crd_status.status.holds(path) => set(wanted, path, value.clone()),
        _ => {}
    }
}

/// Returns the conditions that hooks returned.
pub(crate) fn conditions(sources: &TemplateData) -> impl Iterator<Item = &Condition> {
    sources
        .hooks
        .iter()
        .flat_map(|response| &response.conditions)
}

/// Returns why a hook reports the custom resource as not ready.
pub(crate) fn unready(sources: &TemplateData) -> Option<Box<str>> {
    sources
        .hooks
        .iter()
        .find_map(|response| response.unready.clone())
}
