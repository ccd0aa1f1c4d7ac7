//! Objects with expressions at the leaves.

use std::sync::Arc;

use super::{Coerce, GroupKind, ListKeys, PlanPlace};
use orkestra_object::value::{Key, Node};
use orkestra_template::Template;

/// A compiled string or scalar at a leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The expression, or a literal.
    pub template: Template,
    /// The type of the field.
    pub coerce: Coerce,
    /// Its path in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0].replicas`.
    pub path: PlanPlace,
}

/// The values of all profiles in one place, and the choice between them.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The name of the profile, ignoring case.
    pub name: Leaf,
    /// The values by profile name in lower case; a profile may have none.
    pub options: Box<[(Box<str>, Option<ObjectTree>)]>,
}

/// An object, or a part of one, with expressions at its leaves.
#[derive(Clone, Debug)]
pub enum ObjectTree {
    /// A value without expressions.
    Fixed(Node),
    /// One rendered value.
    Leaf(Leaf),
    /// A map with fixed keys; a value that is left out removes its key. The map itself stays, even if empty.
    Map(Box<[(Key, ObjectTree)]>),
    /// A map that is left out if the value of its first key is: a port without a number.
    Part(Box<[(Key, ObjectTree)]>),
    /// A list; values that are left out are removed, and an empty list is left out.
    List(Box<[ObjectTree]>),
    /// The name of the container of `image` in the workload with this name: `plan::container_name`.
    ContainerName(Leaf),
    /// An image, and its tag if it has none: `plan::tagged_image`.
    Image(Box<(Leaf, Leaf)>),
    /// The value of a profile that each custom resource chooses.
    Chosen(Box<Chosen>),
    /// Maps or lists that are combined: of maps, later parts take precedence; lists follow one another. Parts that are left out
    /// add nothing.
    Joined(Box<[ObjectTree]>),
    /// An object, the patch merged into it, and the lists that are merged item by item.
    Patched(Box<(ObjectTree, ObjectTree, Arc<ListKeys>)>),
    /// The value of [`orkestra_language::api::names::LABEL_WORKLOAD`] for the workload of this kind and rendered name.
    Workload(Box<(GroupKind, Leaf)>),
    /// A part of the custom resource as the value of a label.
    Owner(OwnerPart),
}

/// The part of a custom resource in the value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerPart {
    /// Its kind in lower case.
    Kind,
    /// Its name.
    Name,
}

impl ObjectTree {
    /// True if the tree has a value other than `false` at the path, or a template that may render one: what a template gives
    /// is up to the author of a custom resource. `*` is any item or key, and `a/*` any key with that prefix.
    pub(crate) fn may_have(&self, path: &[&str]) -> bool {
        self.may_have_other(path, &|value| {
            matches!(value, DeclaredValue::Fixed(Node::Bool(false)))
        })
    }

    /// True if the tree has a value at the path that is not permitted, or a template that may render one. Null is permitted.
    pub(crate) fn may_have_other(
        &self,
        path: &[&str],
        is_permitted: &dyn Fn(DeclaredValue<'_>) -> bool,
    ) -> bool {
        let below = |tree: &Self, path: &[&str]| tree.may_have_other(path, is_permitted);
        match (self, path.split_first()) {
            (Self::Fixed(node), _) => has(node, path, is_permitted),
            (Self::Leaf(leaf), None) => match leaf.template.literal() {
                Some(text) => !is_permitted(DeclaredValue::Text(text)),
                None => !is_permitted(DeclaredValue::Template(leaf)),
            },
            (Self::Leaf(leaf), Some(_)) => leaf.template.literal().is_none(),
            (
                Self::Map(_)
                | Self::Part(_)
                | Self::List(_)
                | Self::ContainerName(_)
                | Self::Image(_)
                | Self::Workload(_)
                | Self::Owner(_),
                None,
            ) => true,
            (Self::Map(entries) | Self::Part(entries), Some((step, rest))) => entries
                .iter()
                .any(|(key, tree)| is_step(step, key) && below(tree, rest)),
            (Self::List(items), Some((step, rest))) => {
                *step == "*" && items.iter().any(|item| below(item, rest))
            }
            (Self::Joined(parts), _) => parts.iter().any(|part| below(part, path)),
            (Self::Patched(parts), _) => below(&parts.0, path) || below(&parts.1, path),
            (Self::Chosen(chosen), _) => chosen.trees().any(|tree| below(tree, path)),
            (
                Self::ContainerName(_) | Self::Image(_) | Self::Workload(_) | Self::Owner(_),
                Some(_),
            ) => false,
        }
    }

    /// True if some expression in it draws random bytes.
    pub(crate) fn is_random(&self) -> bool {
        let mut is_random = false;
        self.visit(&mut |leaf| is_random |= leaf.template.is_random());
        is_random
    }

    /// Calls `visit` with every leaf, in order.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Leaf)) {
        match self {
            Self::Fixed(_) | Self::Owner(_) => {}
            Self::Leaf(leaf) | Self::ContainerName(leaf) => visit(leaf),
            Self::Workload(workload) => visit(&workload.1),
            Self::Image(parts) => [&parts.0, &parts.1].into_iter().for_each(visit),
            Self::Patched(parts) => {
                parts.0.visit(visit);
                parts.1.visit(visit);
            }
            Self::Chosen(chosen) => {
                visit(&chosen.name);
                chosen.trees().for_each(|tree| tree.visit(visit));
            }
            Self::Map(entries) | Self::Part(entries) => {
                for (_, below) in entries {
                    below.visit(visit);
                }
            }
            Self::List(items) | Self::Joined(items) => {
                items.iter().for_each(|item| item.visit(visit));
            }
        }
    }

    /// Calls `visit` with every choice between profiles, in order.
    pub fn visit_chosen<'a>(&'a self, visit: &mut dyn FnMut(&'a Chosen)) {
        match self {
            Self::Fixed(_)
            | Self::Owner(_)
            | Self::Leaf(_)
            | Self::ContainerName(_)
            | Self::Workload(_)
            | Self::Image(_) => {}
            Self::Patched(parts) => {
                parts.0.visit_chosen(visit);
                parts.1.visit_chosen(visit);
            }
            Self::Chosen(chosen) => {
                visit(chosen);
                chosen.trees().for_each(|tree| tree.visit_chosen(visit));
            }
            Self::Map(entries) | Self::Part(entries) => {
                for (_, below) in entries {
                    below.visit_chosen(visit);
                }
            }
            Self::List(items) | Self::Joined(items) => {
                items.iter().for_each(|item| item.visit_chosen(visit));
            }
        }
    }

    /// Returns fixed text.
    pub fn text(text: &str) -> Self {
        Self::Fixed(Node::from(text))
    }

    /// Returns a list of fixed texts.
    pub fn texts(texts: &[&str]) -> Self {
        let texts: Vec<Node> = texts.iter().map(|text| Node::from(*text)).collect();
        Self::Fixed(Node::from(texts))
    }

    /// Returns a list; fixed if all items are.
    pub fn list(items: Vec<Self>) -> Self {
        if items.iter().all(|item| matches!(item, Self::Fixed(_))) {
            return Self::Fixed(Node::from(
                items
                    .into_iter()
                    .filter_map(Self::into_fixed)
                    .collect::<Vec<_>>(),
            ));
        }
        Self::List(items.into())
    }

    /// Returns the value if it is fixed.
    pub fn into_fixed(self) -> Option<Node> {
        if let Self::Fixed(node) = self {
            Some(node)
        } else {
            None
        }
    }
}

fn has(node: &Node, path: &[&str], is_permitted: &dyn Fn(DeclaredValue<'_>) -> bool) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return !matches!(node, Node::Null) && !is_permitted(DeclaredValue::Fixed(node));
    };
    match node {
        Node::List(items) => *step == "*" && items.iter().any(|item| has(item, rest, is_permitted)),
        Node::Map(entries) => entries
            .iter()
            .any(|(key, below)| is_step(step, key) && has(below, rest, is_permitted)),
        _ => false,
    }
}

/// True if the step of a path names the key.
fn is_step(step: &str, key: &str) -> bool {
    match step.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix),
        None => step == key,
    }
}

/// A value in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeclaredValue<'a> {
    /// A value without expressions.
    Fixed(&'a Node),
    /// Text without expressions, which the type of its field may turn into a number or a boolean.
    Text(&'a str),
    /// What a template renders.
    Template(&'a Leaf),
}

impl Chosen {
    /// Returns the trees of the profiles.
    pub fn trees(&self) -> impl Iterator<Item = &ObjectTree> {
        self.options.iter().filter_map(|(_, tree)| tree.as_ref())
    }
}
