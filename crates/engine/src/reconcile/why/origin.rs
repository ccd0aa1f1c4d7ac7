//! Where the value of a field comes from: the expressions that render it, found by walking the declaration of its child along the path
//! of the field.

use jiff::Timestamp;

use super::is_mark;
use crate::reconcile::{
    children::each_named,
    cycle::{Cycle, Rendered},
    inputs::Inputs,
    record::Observed,
    render::{RenderError, Renderer, Setting},
    view::PassView,
};
use orkestra_object::value::{Key, Node, Path, PathStep};
use orkestra_plan::{ChildPlan, Leaf, ListKeys, ObjectTree, OperatorPlan, PlanPlace, REPLICAS};

/// Where the value of a field comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// These expressions render it, or decide between its values.
    Expressions(Vec<Expression>),
    /// The entry of the child has it without an expression, or Orkestra derives it from the kind.
    Fixed,
    /// The child is a copy, and its source has it.
    Copied,
    /// Orkestra generates it and keeps it: a password, a key or a certificate.
    Generated,
    /// Orkestra sets it for itself, such as to recognize the child.
    Mark,
}

/// A template or a literal of a Katalog or Motif.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Its text.
    pub source: Box<str>,
    /// Its place.
    pub place: PlanPlace,
}

/// Returns where the value of a field of a rendered child comes from.
pub(crate) fn origin(
    plan: &OperatorPlan,
    (observed, cycle): (&Observed, &Cycle),
    rendered: &Rendered,
    path: &Path,
    now: Timestamp,
) -> Origin {
    let declared = &plan.children[rendered.declared];
    if is_mark(path) {
        return Origin::Mark;
    }
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, &cycle.sources), &setting, now);
    let data = view.data();
    let inputs = Inputs::of(plan, &data, view.frame);
    let around = inputs.around(data.clone());
    let mut found: Option<Vec<&Leaf>> = None;
    each_named(plan, view.frame, &around, |index, name, renderer| {
        let is_it = index == rendered.declared
            && *name == *rendered.key.object.name
            && is_in(renderer, declared, rendered.key.object.namespace.as_ref());
        if is_it && found.is_none() {
            let mut leaves = Vec::new();
            // What cannot be rendered here was not rendered by the pass either: only the entry is known.
            let _ = of_field(renderer, declared, path, &mut leaves);
            found = Some(leaves);
        }
    });
    let leaves = found.unwrap_or_default();
    let expressions: Vec<Expression> = leaves.into_iter().map(Expression::of).collect();
    if !expressions.is_empty() {
        return Origin::Expressions(expressions);
    }
    let is_data = matches!(path.steps().first(), Some(PathStep::Field(key)) if matches!(&**key, "data" | "stringData" | "type"));
    match (&declared.copy, &declared.generated) {
        (Some(_), _) if is_data => Origin::Copied,
        (None, Some(_)) if is_data => Origin::Generated,
        _ => Origin::Fixed,
    }
}

impl Expression {
    fn of(leaf: &Leaf) -> Self {
        Self {
            source: leaf.template.source().into(),
            place: leaf.path.clone(),
        }
    }
}

/// True if the declaration, with the data of the renderer, is for that namespace.
fn is_in(renderer: &mut Renderer<'_, '_>, declared: &ChildPlan, namespace: Option<&Key>) -> bool {
    let Some(leaf) = &declared.namespace else {
        return true;
    };
    let text = renderer.text(leaf).unwrap_or_default();
    text.is_empty() || namespace.is_none_or(|namespace| **namespace == *text)
}

fn of_field<'p>(
    renderer: &mut Renderer<'_, '_>,
    declared: &'p ChildPlan,
    path: &Path,
    found: &mut Vec<&'p Leaf>,
) -> Result<(), RenderError> {
    let is = |fields: &[&str]| path.starts_with(&Path::of_fields(fields.iter().copied()));
    if is(&["metadata", "name"]) {
        found.push(&declared.name);
        return Ok(());
    }
    if is(&["metadata", "namespace"]) {
        found.extend(&declared.namespace);
        return Ok(());
    }
    if is(&REPLICAS)
        && let Some(scale) = &declared.scale
    {
        found.extend(scale.leaves());
    }
    of_tree(renderer, &declared.body, path.steps(), found)
}

/// Adds the leaves that render the value at a path of the tree's value.
fn of_tree<'p>(
    renderer: &mut Renderer<'_, '_>,
    tree: &'p ObjectTree,
    path: &[PathStep],
    found: &mut Vec<&'p Leaf>,
) -> Result<(), RenderError> {
    match tree {
        ObjectTree::Fixed(_) | ObjectTree::Owner(_) => {}
        ObjectTree::Leaf(leaf) | ObjectTree::ContainerName(leaf) => found.push(leaf),
        ObjectTree::Workload(workload) => found.push(&workload.1),
        ObjectTree::Image(parts) => {
            let is_given = |leaf: &&Leaf| leaf.template.literal() != Some("");
            found.extend([&parts.0, &parts.1].into_iter().filter(is_given));
        }
        ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
            for (key, below) in entries {
                match path.split_first() {
                    None => of_tree(renderer, below, path, found)?,
                    Some((step, rest)) if is_key(step, key) => {
                        of_tree(renderer, below, rest, found)?;
                    }
                    Some(_) => {}
                }
            }
        }
        ObjectTree::List(items) => of_items(renderer, items, path, found)?,
        ObjectTree::Joined(parts) => of_joined(renderer, parts, path, found)?,
        ObjectTree::Patched(parts) => of_patched(renderer, parts, path, found)?,
        ObjectTree::Chosen(chosen) => {
            found.push(&chosen.name);
            let name = renderer.text(&chosen.name)?.to_lowercase();
            let option = chosen.options.iter().find(|(known, _)| **known == *name);
            if let Some((_, Some(tree))) = option {
                of_tree(renderer, tree, path, found)?;
            }
        }
    }
    Ok(())
}

fn is_key(step: &PathStep, key: &Key) -> bool {
    matches!(step, PathStep::Field(name) if name == key)
}

/// Returns the index that a path begins with.
fn index(path: &[PathStep]) -> Option<(usize, &[PathStep])> {
    match path.split_first() {
        Some((PathStep::Index(index), rest)) => Some((*index, rest)),
        Some((PathStep::Field(key), rest)) => Some((key.parse().ok()?, rest)),
        None => None,
    }
}

/// Follows a list: items that are left out are not counted.
fn of_items<'p>(
    renderer: &mut Renderer<'_, '_>,
    items: &'p [ObjectTree],
    path: &[PathStep],
    found: &mut Vec<&'p Leaf>,
) -> Result<(), RenderError> {
    let Some((wanted, rest)) = index(path) else {
        return items
            .iter()
            .try_for_each(|item| of_tree(renderer, item, &[], found));
    };
    let mut at = 0;
    for item in items {
        if renderer.tree(item)?.is_none() {
            continue;
        }
        if at == wanted {
            return of_tree(renderer, item, rest, found);
        }
        at += 1;
    }
    Ok(())
}

/// Follows combined maps and lists: of maps, the last part that has the key counts; lists follow one another.
fn of_joined<'p>(
    renderer: &mut Renderer<'_, '_>,
    parts: &'p [ObjectTree],
    path: &[PathStep],
    found: &mut Vec<&'p Leaf>,
) -> Result<(), RenderError> {
    let mut counted: Option<(&ObjectTree, Vec<PathStep>)> = None;
    let mut before = 0;
    for part in parts {
        let value = renderer.tree(part)?;
        match (&value, path.split_first()) {
            (None, _) => {}
            (Some(_), None) => of_tree(renderer, part, path, found)?,
            (Some(Node::List(items)), Some((_, rest))) => {
                let wanted = index(path).map_or(usize::MAX, |(wanted, _)| wanted);
                if (before..before + items.len()).contains(&wanted) {
                    let step = PathStep::Index(wanted - before);
                    counted = Some((
                        part,
                        std::iter::once(step).chain(rest.iter().cloned()).collect(),
                    ));
                }
                before += items.len();
            }
            (Some(Node::Map(map)), Some((step, _))) => {
                if map.keys().any(|key| is_key(step, key)) {
                    counted = Some((part, path.to_vec()));
                }
            }
            (Some(_), Some(_)) => counted = Some((part, path.to_vec())),
        }
    }
    match counted {
        Some((part, path)) => of_tree(renderer, part, &path, found),
        None => Ok(()),
    }
}

/// Follows an object with a patch: what the patch has counts, and the object for the rest.
fn of_patched<'p>(
    renderer: &mut Renderer<'_, '_>,
    parts: &'p (ObjectTree, ObjectTree, std::sync::Arc<ListKeys>),
    path: &[PathStep],
    found: &mut Vec<&'p Leaf>,
) -> Result<(), RenderError> {
    let (object, changes) = (renderer.tree(&parts.0)?, renderer.tree(&parts.1)?);
    let (Some(object), Some(changes)) = (object, changes) else {
        return of_tree(renderer, &parts.0, path, found);
    };
    let merged = orkestra_plan::patch::merged(object.clone(), &changes, &parts.2);
    let in_patch = translated(&merged, &changes, path, Some(&parts.2));
    if let Some(path) = in_patch {
        of_tree(renderer, &parts.1, &path, found)?;
        if changes
            .at(&path.iter().cloned().collect())
            .is_some_and(|node| node.as_map().is_none())
        {
            return Ok(());
        }
    }
    match translated(&merged, &object, path, Some(&parts.2)) {
        Some(path) => of_tree(renderer, &parts.0, &path, found),
        None => Ok(()),
    }
}

/// Returns the path in `part` of the value at `path` in `merged`: items of a list that is merged by keys have other indexes.
fn translated(
    merged: &Node,
    part: &Node,
    path: &[PathStep],
    lists: Option<&ListKeys>,
) -> Option<Vec<PathStep>> {
    let Some((step, rest)) = path.split_first() else {
        return Some(Vec::new());
    };
    let (step, below, part, lists) = if let (Node::List(items), Node::List(others)) = (merged, part)
    {
        let (at, _) = index(path)?;
        let item = items.get(at)?;
        let at = match lists.filter(|lists| lists.is_associative()) {
            Some(lists) => others.iter().position(|other| lists.is_same(item, other))?,
            None => at,
        };
        let each = lists.and_then(ListKeys::each);
        (PathStep::Index(at), item, others.get(at)?, each)
    } else {
        let PathStep::Field(key) = step else {
            return None;
        };
        let below = lists.and_then(|lists| lists.field(key));
        (step.clone(), merged.get(key)?, part.get(key)?, below)
    };
    let mut whole = vec![step];
    whole.extend(translated(below, part, rest, lists)?);
    Some(whole)
}
