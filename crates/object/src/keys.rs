//! The keys that identify kinds and objects.

use std::{collections::BTreeSet, fmt};

use crate::value::{Key, Node};

/// More namespaces than this count as all: each needs its own watch.
const MOST: usize = 20;

/// A kind without its version: what claims, inventories and stores are keyed by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: Key,
    /// Kind, as in a manifest.
    pub kind: Key,
}

/// `Deployment.apps`, and `Service` for the core group: the form that inventories hold.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

impl GroupKind {
    /// The reverse of `Display`: everything behind the first dot is the group.
    pub fn parse(text: &str) -> Self {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Self {
            group: Key::from(group),
            kind: Key::from(kind),
        }
    }
}

/// Namespace and name of an object; no namespace for cluster-scoped ones.
///
/// Many hold the key of one object: they share its text, as siblings of one name do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Option<Key>,
    /// `metadata.name`.
    pub name: Key,
}

impl ObjectKey {
    /// Returns the key in the metadata of an object, with an empty name if it has none.
    pub fn of(object: &Node) -> Self {
        Self {
            namespace: object.meta_text("namespace").map(Key::from),
            name: object.meta_text("name").unwrap_or_default().into(),
        }
    }
}

/// `namespace/name`, or `name` alone.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// One child object, whatever version it is written in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildKey {
    /// Its group and kind.
    pub kind: GroupKind,
    /// Its namespace and name.
    pub object: ObjectKey,
}

impl ChildKey {
    /// Returns the key of an object with `apiVersion`, `kind` and a name; none without one of them.
    pub fn of(object: &Node) -> Option<Self> {
        let text = |field| {
            let text = object.get(field)?.as_str()?;
            (!text.is_empty()).then_some(text)
        };
        let group = text("apiVersion")?.split_once('/');
        let kind = GroupKind {
            group: group.map_or("", |(group, _)| group).into(),
            kind: text("kind")?.into(),
        };
        object.meta_text("name")?;
        Some(Self {
            kind,
            object: ObjectKey::of(object),
        })
    }
}

/// `Deployment.apps shop/web`: for messages.
impl fmt::Display for ChildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.object)
    }
}

/// A kind as it is addressed on the wire, as far as it is known without a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceType {
    /// API group, empty for the core group.
    pub group: Key,
    /// Version, such as `v1`.
    pub version: Key,
    /// Kind.
    pub kind: Key,
    /// REST plural: known for the custom resource, for built-in kinds and for kinds whose CRD is at hand; else from discovery.
    pub plural: Option<Key>,
    /// Scope, where known as `plural` is.
    pub namespaced: Option<bool>,
}

impl ResourceType {
    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.group.clone(),
            kind: self.kind.clone(),
        }
    }

    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// The namespaces of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectNamespaces {
    /// Any namespace, or none: cluster-scoped objects.
    All,
    /// These namespaces.
    Only(BTreeSet<Box<str>>),
}

impl Default for ObjectNamespaces {
    /// Returns the empty set.
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl ObjectNamespaces {
    /// Returns the union.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(mut some), Self::Only(others)) => {
                some.extend(others);
                Self::Only(some)
            }
            _ => Self::All,
        }
    }

    /// Returns a scope for each namespace; `None` is all.
    pub fn scopes(&self) -> Vec<Option<&str>> {
        match self {
            Self::All => vec![None],
            Self::Only(some) => some.iter().map(|one| Some(&**one)).collect(),
        }
    }

    /// Returns the namespace if it is one of the known ones; otherwise `None`, which stands for all.
    pub fn scope_of<'a>(&self, namespace: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Only(some) => namespace.filter(|one| some.contains(*one)),
        }
    }

    /// Returns one namespace.
    pub fn of_one(namespace: &str) -> Self {
        Self::Only([namespace.into()].into())
    }

    /// Returns all namespaces if there are more than 20: each needs its own watch.
    #[must_use]
    pub fn bounded(self) -> Self {
        match self {
            Self::Only(some) if some.len() > MOST => Self::All,
            places => places,
        }
    }
}

impl FromIterator<Self> for ObjectNamespaces {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), Self::and)
    }
}
