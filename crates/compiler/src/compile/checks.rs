//! Checks the declared children: conflicts between them, children that outlive their custom resource, and ignored parts of Motifs.

use std::collections::BTreeMap;

use super::imports::Imported;
use crate::scope::{At, Problems};
use orkestra_language::diagnostics::Code;
use orkestra_object::value::{self, Node, Path, PathStep};
use orkestra_plan::{
    BlockPlan, ChildPlan, Gate, GroupKind, ImportPlan, Leaf, Mode, OperatorPlan, ResourceType,
    describe, inputs::known_text,
};

/// Warns about parts of Motifs that imports of a whole Katalog ignore: only entries have custom resources and therefore
/// children.
pub(crate) fn only_contributes(wide: &[Imported<'_>]) {
    for import in wide.iter().filter(|import| import.is_outermost()) {
        let has_parts = import.motif.resources.is_some() || import.motif.status.is_some();
        let what = match (has_parts, import.gives_inputs()) {
            (true, _) => {
                "only its profiles and functions are imported here, not its resources and status"
            }
            (false, true) => "profiles and functions take no inputs",
            (false, false) => continue,
        };
        let hint = "import it in an entry of `spec.crds`";
        let place = import.place.field(if has_parts { "motif" } else { "with" });
        place.warn_hint(Code::UnusedParts, what, hint);
    }
}

/// Refuses children of one operator that would be the same object at the same time.
///
/// An entry in `onCreate` that is equal to one in `onReconcile` counts as the latter: it is declared twice, not created
/// twice. A child of the Katalog overrides a Motif's, and a child of a Motif overrides those of the Motifs that it imports.
pub(crate) fn within(
    at: &At<'_>,
    imports: &[ImportPlan],
    blocks: &[BlockPlan],
    children: Vec<ChildPlan>,
) -> Vec<ChildPlan> {
    let identify = |child: &ChildPlan| Identity::of(imports, child);
    let mut kept: Vec<(Identity, ChildPlan)> = Vec::with_capacity(children.len());
    for (identity, child) in without_overridden(at, (imports, blocks), children, identify) {
        let Some(position) = kept.iter().position(|(other_identity, other)| {
            *other_identity == identity && could_both_hold(blocks, other, &child)
        }) else {
            kept.push((identity, child));
            continue;
        };
        let other = &kept[position].1;
        let equal = describe::tree(&other.body) == describe::tree(&child.body)
            && gates(blocks, other) == gates(blocks, &child)
            && other.import == child.import;
        if other.mode == Mode::Once && child.mode == Mode::Reconciled && equal {
            kept[position].1 = child;
        } else {
            let hint = if other.import == child.import {
                "give them different names, or `when` conditions that are mutually exclusive"
            } else {
                "set inputs of the imports that result in different names, or remove one import; a child of this name in the operatorBox replaces both"
            };
            at.place(&child.path).error_hint(
                Code::SameChildTwice,
                format!("{} declares the same {}", other.path, child.kind.kind),
                hint,
            );
        }
    }
    kept.into_iter().map(|(_, child)| child).collect()
}

/// Returns the children with their identities, without those of Motifs that a child of the importer overrides.
fn without_overridden(
    at: &At<'_>,
    (imports, blocks): (&[ImportPlan], &[BlockPlan]),
    children: Vec<ChildPlan>,
    identify: impl Fn(&ChildPlan) -> Identity,
) -> Vec<(Identity, ChildPlan)> {
    let children: Vec<_> = children
        .into_iter()
        .map(|child| (identify(&child), child))
        .collect();
    let is_overridden = |(identity, child): &(Identity, ChildPlan)| {
        let overrider = children.iter().find(|(other_identity, other)| {
            child
                .import
                .is_some_and(|inner| is_above(imports, other.import, inner))
                && other_identity == identity
                && could_both_hold(blocks, other, child)
        });
        if let Some((_, other)) = overrider {
            let message = format!("this replaces {}", child.path);
            at.place(&other.path).warn(Code::Override, message);
        }
        overrider.is_some()
    };
    let overridden: Vec<bool> = children.iter().map(is_overridden).collect();
    let kept = children.into_iter().zip(overridden);
    kept.filter(|(_, overridden)| !overridden)
        .map(|(child, _)| child)
        .collect()
}

/// The identity of a child within one operator, independent of the custom resource.
#[derive(PartialEq)]
struct Identity {
    kind: GroupKind,
    namespace: Option<String>,
    name: String,
}

impl Identity {
    fn of(imports: &[ImportPlan], child: &ChildPlan) -> Self {
        let text = |leaf: &Leaf| {
            let text = known_text(imports, child.import, leaf);
            let text = text.unwrap_or_else(|| unknown_text(imports, child, leaf));
            match &child.for_each {
                // Elements of two lists have different names.
                Some(each) => format!("{} {text}", each.field),
                None => text,
            }
        };
        Self {
            kind: child.kind.group_kind(),
            namespace: child.namespace.as_ref().map(text),
            name: text(&child.name),
        }
    }
}

/// True if the document of `outer`, or the Katalog, leads to the import `inner`.
fn is_above(imports: &[ImportPlan], outer: Option<usize>, inner: usize) -> bool {
    let mut above = imports.get(inner).map(|import| import.outer);
    while let Some(at) = above {
        if at == outer {
            return true;
        }
        above = at.and_then(|at| imports.get(at)).map(|import| import.outer);
    }
    false
}

/// Refuses children of different operators that are the same object for any custom resource.
pub(crate) fn across(problems: &Problems, operators: &[OperatorPlan]) {
    let mut seen: BTreeMap<_, (&OperatorPlan, &ChildPlan)> = BTreeMap::new();
    for operator in operators {
        for child in &operator.children {
            let Some(key) = fixed_object(&operator.imports, child) else {
                continue;
            };
            match seen.get(&key) {
                Some((owner, other))
                    if owner.name != operator.name
                        && (is_always(&owner.blocks, other)
                            || is_always(&operator.blocks, child)
                            || gates(&owner.blocks, other) == gates(&operator.blocks, child)) =>
                {
                    problems.place(&child.path).error_hint(
                        Code::SameChildTwice,
                        format!(
                            "{} declares the same {} for every custom resource",
                            other.path, child.kind.kind
                        ),
                        "include `{{ .metadata.name }}` in the names",
                    );
                }
                Some(_) => {}
                None => {
                    seen.insert(key, (operator, child));
                }
            }
        }
    }
}

/// Warns about children that stay when their custom resource, which has no finalizer, is deleted: owner references work
/// only within one namespace.
pub(crate) fn left_behind(at: &At<'_>, children: &[ChildPlan], owner: Option<&ResourceType>) {
    let anywhere = owner.is_some_and(|owner| owner.namespaced == Some(false));
    for child in children.iter().filter(|_| !anywhere) {
        if child.namespace.is_some() || child.kind.namespaced == Some(false) {
            at.place(&child.path).warn(
                Code::LeftBehind,
                "with `finalizers: []` this child remains when its custom resource is deleted",
            );
        }
    }
}

/// Returns kind, namespace and name of a child that do not depend on the custom resource.
fn fixed_object(
    imports: &[ImportPlan],
    child: &ChildPlan,
) -> Option<(GroupKind, Option<String>, String)> {
    let literal = |leaf: &Leaf| known_text(imports, child.import, leaf);
    let namespace = if child.kind.namespaced == Some(false) {
        None
    } else {
        Some(literal(child.namespace.as_ref()?)?)
    };
    Some((child.kind.group_kind(), namespace, literal(&child.name)?))
}

/// Returns a text that identifies a leaf that depends on the custom resource: its source and the inputs that it reads.
pub(crate) fn unknown_text(imports: &[ImportPlan], child: &ChildPlan, leaf: &Leaf) -> String {
    let source = leaf.template.source().trim();
    let is_input = |path: &Path| matches!(path.steps().first(), Some(PathStep::Field(root)) if &**root == "inputs");
    let reads_inputs = leaf.template.reads().iter().any(is_input);
    let mut text = source.to_owned();
    let mut import = child.import.filter(|_| reads_inputs);
    while let Some(plan) = import.and_then(|import| imports.get(import)) {
        text.push_str(&value::hash(&describe::inputs(plan)));
        import = plan.outer;
    }
    text
}

/// True if two children of an operator may be wanted at the same time, as far as is known: different gates are taken to
/// exclude each other.
fn could_both_hold(blocks: &[BlockPlan], a: &ChildPlan, b: &ChildPlan) -> bool {
    is_always(blocks, a) || is_always(blocks, b) || gates(blocks, a) == gates(blocks, b)
}

fn is_always(blocks: &[BlockPlan], child: &ChildPlan) -> bool {
    child.gate.is_empty() && block_gate(blocks, child).is_none_or(Gate::is_empty)
}

/// Returns the gates of a child in a form that can be compared.
fn gates(blocks: &[BlockPlan], child: &ChildPlan) -> [Option<Node>; 2] {
    let block = block_gate(blocks, child).filter(|gate| !gate.is_empty());
    [block.map(describe::gate), Some(describe::gate(&child.gate))]
}

fn block_gate<'a>(blocks: &'a [BlockPlan], child: &ChildPlan) -> Option<&'a Gate> {
    blocks.get(child.block).map(|block| &block.gate)
}

/// Returns the path of a child that may be the same object as `entry` of the same operator.
pub(crate) fn same<'a>(plan: &'a OperatorPlan, entry: &ChildPlan) -> Option<&'a str> {
    let identity = Identity::of(&plan.imports, entry);
    let is_same = |child: &&ChildPlan| Identity::of(&plan.imports, child) == identity;
    plan.children.iter().find(is_same).map(|child| &*child.path)
}
