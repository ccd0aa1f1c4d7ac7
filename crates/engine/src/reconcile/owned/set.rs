//! Sets of field paths, as in `managedFields`.

use super::super::identity::Uid;
use orkestra_object::value::{Key, Map, Node};

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSet {
    /// Whether the path to this node is in the set itself.
    itself: bool,
    /// Whether it is a map or list of which another manager owns a part, so that it is not atomic: an empty one that was
    /// applied. The path in the set then covers no part of it.
    hollow: bool,
    below: Box<[(Element, FieldSet)]>,
}

/// One step of a field path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    Field(Key),
    Item(Box<[(Key, ElementValue)]>),
    Value(ElementValue),
    Index(u64),
}

/// An object's own values among the keys of list items. They are replaced in the trees, so that the children of a thousand
/// custom resources share one.
#[derive(Clone, Copy, Debug)]
pub struct OwnValues<'a> {
    /// The object's name: containers often have the name of their Deployment.
    pub name: &'a str,
    /// The uid of the object's owner, the key of owner references.
    pub owner: Option<&'a Uid>,
}

impl OwnValues<'_> {
    fn is_owner(self, text: &str) -> bool {
        self.owner.is_some_and(|owner| *owner == *text)
    }
}

/// The value of a key or a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementValue {
    OwnName,
    OwnOwner,
    Text(Key),
}

impl ElementValue {
    pub(crate) fn read(node: &Node, own: OwnValues<'_>) -> Self {
        match &*node.to_text() {
            text if text == own.name => Self::OwnName,
            text if own.is_owner(text) => Self::OwnOwner,
            text => Self::Text(Key::from(text)),
        }
    }

    fn is(&self, node: &Node, own: OwnValues<'_>) -> bool {
        let text = node.to_text();
        match self {
            Self::OwnName => text == own.name,
            Self::OwnOwner => own.is_owner(&text),
            Self::Text(key) => **key == *text,
        }
    }
}

/// One step from an object's root to a leaf, in a rendered object.
#[derive(Clone, Copy, Debug)]
pub enum PathElement<'a> {
    /// A field of a map.
    Field(&'a Key),
    /// An item of a list: its position and its content.
    Item(usize, &'a Node),
}

impl FieldSet {
    /// Reads a set. `others` are the sets of other managers, from the same path on.
    pub(crate) fn read(node: &Node, own: OwnValues<'_>, others: &[&Node]) -> Self {
        let mut itself = false;
        let mut below = Vec::new();
        for (name, child) in node.as_map().into_iter().flat_map(Map::iter) {
            if &**name == "." {
                itself = true;
            } else if let Some(element) = Element::read(name, own) {
                let others: Vec<&Node> = others.iter().filter_map(|set| set.get(name)).collect();
                let mut fields = Self::read(child, own, &others);
                // A leaf of the set is written as an empty map: it represents its own path.
                if fields.below.is_empty() {
                    fields.itself = true;
                    fields.hollow = others.iter().any(|set| has_below(set));
                }
                below.push((element, fields));
            }
        }
        Self {
            itself,
            hollow: false,
            below: below.into(),
        }
    }

    /// True if the leaf at `trail` is in the set: it is an owned path, or it is below an owned path that has nothing below it
    /// in the set (an atomic list or map). An empty list or map that was applied owns nothing below it.
    pub fn covers(&self, trail: &[PathElement<'_>], own: OwnValues<'_>) -> bool {
        let Some((step, rest)) = trail.split_first() else {
            return self.itself;
        };
        if self.below.is_empty() {
            return self.itself && !self.hollow;
        }
        self.below
            .iter()
            .any(|(element, fields)| element.matches(*step, own) && fields.covers(rest, own))
    }

    /// True if the path at `trail` is in the set, or anything below it.
    pub(crate) fn touches(&self, trail: &[PathElement<'_>], own: OwnValues<'_>) -> bool {
        match trail.split_first() {
            None => self.itself || !self.below.is_empty(),
            Some(_) if self.below.is_empty() => self.itself && !self.hollow,
            Some((step, rest)) => self
                .below
                .iter()
                .any(|(element, fields)| element.matches(*step, own) && fields.touches(rest, own)),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.below
            .iter()
            .map(|(element, fields)| {
                size_of::<(Element, Self)>() + element.heap_bytes() + fields.heap_bytes()
            })
            .sum()
    }
}

/// True if a set, as written, has a path below its root.
fn has_below(set: &Node) -> bool {
    let mut names = set.as_map().into_iter().flat_map(Map::keys);
    names.any(|name| &**name != ".")
}

impl Element {
    /// Reads a step of a path as written; none if its form is unknown.
    pub(crate) fn read(name: &str, own: OwnValues<'_>) -> Option<Self> {
        let (form, rest) = name.split_once(':')?;
        match form {
            "f" => Some(Self::Field(Key::from(rest))),
            "k" => {
                let keys: Node = serde_json::from_str(rest).ok()?;
                Some(Self::Item(
                    keys.as_map()?
                        .iter()
                        .map(|(key, value)| (key.clone(), ElementValue::read(value, own)))
                        .collect(),
                ))
            }
            "v" => serde_json::from_str::<Node>(rest)
                .ok()
                .map(|value| Self::Value(ElementValue::read(&value, own))),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// True if a rendered item matches, by the keys that it has: the server adds defaults such as `protocol: TCP` for the
    /// others.
    pub(crate) fn matches(&self, step: PathElement<'_>, own: OwnValues<'_>) -> bool {
        match (self, step) {
            (Self::Field(field), PathElement::Field(key)) => field == key,
            (Self::Item(keys), PathElement::Item(_, item)) => {
                keys.iter().all(|(key, value)| match item.get(key) {
                    Some(rendered) => value.is(rendered, own),
                    // The only key with a default among Kubernetes' own kinds: 53/TCP is not 53/UDP.
                    None if &**key == "protocol" => value.is(&Node::from("TCP"), own),
                    None => true,
                })
            }
            (Self::Value(value), PathElement::Item(_, item)) => value.is(item, own),
            (Self::Index(index), PathElement::Item(position, _)) => *index == position as u64,
            _ => false,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Item(keys) => keys.len() * size_of::<(Key, ElementValue)>(),
            _ => 0,
        }
    }
}
