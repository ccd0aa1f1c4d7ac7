//! The declarations of the children that hooks return.

use std::sync::Arc;

use super::HookContext;
use crate::{compile::conditions, scope::At};
use orkestra_object::value::Key;
use orkestra_plan::{
    BlockPlan, ChildPlan, Coerce, ForEachPlan, HookPlan, ManagedKind, Mode, ObjectTree, PlanPlace,
    Reach, ResourceType, for_each::ITEM, kinds,
};

/// Returns the declaration of the children of a kind that a hook returns.
pub(crate) fn declared(
    at: &At<'_>,
    (hook, block): (&HookPlan, &BlockPlan),
    managed: &ManagedKind,
    context: &HookContext<'_>,
) -> Option<ChildPlan> {
    let kind = &managed.kind;
    // The children of a namespaced custom resource are in its namespace.
    let is_elsewhere = context
        .resource
        .is_some_and(|own| own.namespaced == Some(false))
        && kind.namespaced != Some(false);
    let namespace = if is_elsewhere {
        Some(at.leaf("{{ .item.metadata.namespace }}", Coerce::OptionalText)?)
    } else {
        None
    };
    Some(ChildPlan {
        path: hook.path.clone(),
        import: None,
        block: hook.block,
        kind: kind.clone(),
        mode: Mode::Reconciled,
        for_each: Some(Box::new(each(hook, kind))),
        gate: <_>::default(),
        on_false: conditions::default_on_false([&block.gate], None, None, context.live),
        name: at.leaf("{{ .item.metadata.name }}", Coerce::OptionalText)?,
        name_rule: kinds::name_rule(&kind.group_kind()),
        namespace,
        reach: Reach::default(),
        body: ObjectTree::Leaf(at.leaf("{{ .item }}", Coerce::Native)?),
        whole_lists: Box::default(),
        list_keys: Arc::default(),
        force_conflict: context.force_conflict,
        adopt: false,
        recreates: false,
        generated: None,
        copy: None,
        scale: None,
        bound_roles: Box::default(),
        rolls: false,
        spread: false,
        shows_secrets: false,
    })
}

fn each(hook: &HookPlan, kind: &ResourceType) -> ForEachPlan {
    ForEachPlan {
        field: HookPlan::children_path(&hook.name, kind),
        name: Key::from(ITEM),
        pairs: false,
        path: PlanPlace::clone(&hook.path),
    }
}
