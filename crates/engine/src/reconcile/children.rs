//! `.children`: the existing children, as template data.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    expand::Elements,
    inputs::{Inputs, TemplateRoots},
    record::{Observed, ObservedChild},
    render::{Frame, Renderer},
};
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{GroupKind, NameForm, OperatorPlan};
use orkestra_template::{Data, EvalBudget};

/// Returns `.children`: by kind the first declared object that exists (`deployment`), for Jobs the most recently created one,
/// and all objects by name (`deployments`).
pub(crate) fn children_data(plan: &OperatorPlan, observed: &Observed, frame: Frame<'_>) -> Node {
    if plan.children_names.is_empty() {
        return Node::default();
    }
    let manager = plan.field_manager();
    let mut by_kind: BTreeMap<&GroupKind, Vec<&ObservedChild>> = BTreeMap::new();
    for child in &observed.children {
        if child.record.is_ours(&observed.cr.id.uid, &manager) {
            by_kind.entry(&child.key.kind).or_default().push(child);
        }
    }
    // The order of a single child is known without rendering names.
    let order = by_kind.values().any(|children| children.len() > 1);
    let order = order.then(|| DeclaredOrder::of(plan, observed, frame));
    for (kind, children) in &mut by_kind {
        let Some(order) = &order else { break };
        let position = |child: &&ObservedChild| order.position(kind, &child.key.object.name);
        if is_job(kind) {
            children.sort_by_key(|child| Reverse((child.record.created(), position(child))));
        } else {
            children.sort_by_key(|child| position(child).unwrap_or(usize::MAX));
        }
    }
    let seen = |child: &ObservedChild| view(child, frame);
    let aliases = plan.children_names.iter().filter_map(|alias| {
        if let Some(watched) = frame.sources.watched.get(&alias.kind) {
            return Some((alias.name.clone(), of_watched(watched, alias.number)?));
        }
        let children = by_kind.get(&alias.kind)?;
        let node = if alias.number == NameForm::Plural {
            Node::Map(
                children
                    .iter()
                    .rev()
                    .map(|child| (Key::from(&*child.key.object.name), seen(child)))
                    .collect::<Map>(),
            )
        } else {
            seen(children.first()?)
        };
        Some((alias.name.clone(), node))
    });
    Node::Map(aliases.collect::<Map>())
}

/// Returns objects that the operator does not create, as templates read them: the first by name, or all of them.
fn of_watched(watched: &Node, number: NameForm) -> Option<Node> {
    match number {
        NameForm::Plural => Some(watched.clone()),
        NameForm::Singular => {
            let (_, first) = watched.as_map()?.iter().next()?;
            Some(first.clone())
        }
    }
}

/// Returns a child as templates read it, with its additions.
fn view(child: &ObservedChild, frame: Frame<'_>) -> Node {
    let mut node = child.record.view.clone();
    let added = &frame.sources.added;
    let mine = added.iter().filter(|((key, _), _)| *key == child.key);
    for ((_, name), value) in mine {
        if let Node::Map(map) = &mut node {
            map.insert(Key::from(*name), value.clone());
        }
    }
    node
}

fn is_job(kind: &GroupKind) -> bool {
    (&*kind.group, &*kind.kind) == ("batch", "Job")
}

/// Calls `visit` with each declaration whose name can be rendered, by its index, for each element that it is expanded for: with the
/// name, and a renderer of its templates.
pub(crate) fn each_named(
    plan: &OperatorPlan,
    frame: Frame<'_>,
    around: &TemplateRoots<'_>,
    mut visit: impl FnMut(usize, String, &mut Renderer<'_, '_>),
) {
    for (index, child) in plan.children.iter().enumerate() {
        let mut budget = EvalBudget::default();
        let Ok(data) = around.of(child.import) else {
            continue;
        };
        let renderer = frame.renderer(data, &mut budget);
        let elements = match &child.for_each {
            None => None,
            Some(each) => match Elements::of(each, &renderer) {
                Ok(elements) => Some(elements),
                Err(_) => continue,
            },
        };
        let mut named = |data: &Data<'_>| {
            let mut renderer = frame.renderer(data, &mut budget);
            if let Ok(name) = renderer.text(&child.name) {
                visit(index, name, &mut renderer);
            }
        };
        match &elements {
            None => named(data),
            Some(elements) => elements.data(data).for_each(|(_, data)| named(&data)),
        }
    }
}

/// The declaration order of children of one kind. Names that themselves read children come after all others.
pub(crate) struct DeclaredOrder(BTreeMap<(GroupKind, String), usize>);

impl DeclaredOrder {
    /// Renders the names that can be rendered.
    pub(crate) fn of(plan: &OperatorPlan, observed: &Observed, frame: Frame<'_>) -> Self {
        let data = frame.sources.data(observed);
        let inputs = Inputs::of(plan, &data, frame);
        let around = inputs.around(data.clone());
        let mut positions = BTreeMap::new();
        each_named(plan, frame, &around, |index, name, _| {
            let position = positions.len();
            positions
                .entry((plan.children[index].kind.group_kind(), name))
                .or_insert(position);
        });
        Self(positions)
    }

    /// True if an entry declares a child of that kind and name.
    pub(crate) fn has(&self, kind: &GroupKind, name: &str) -> bool {
        self.position(kind, name).is_some()
    }

    fn position(&self, kind: &GroupKind, name: &str) -> Option<usize> {
        self.0.get(&(kind.clone(), name.to_owned())).copied()
    }
}
