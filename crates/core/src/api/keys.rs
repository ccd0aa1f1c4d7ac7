//! Keys that identify Katalogs, kinds and objects.

use std::fmt;

use crate::value::{Key, Node};

/// The Katalog or Komposer that declares something. Those from files live in namespace `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KatalogRef {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// Its kind.
    pub kind: Declaring,
}

/// The kinds that declare operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Declaring {
    /// It declares them itself.
    #[default]
    Katalog,
    /// It composes them from sources.
    Komposer,
}

impl Declaring {
    /// Returns the kind, as in a manifest.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Katalog => "Katalog",
            Self::Komposer => "Komposer",
        }
    }

    /// Returns its plural in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Katalog => "katalogs",
            Self::Komposer => "komposers",
        }
    }
}

/// What stands before the namespace of a Komposer.
const KOMPOSER: &str = "komposer/";

impl KatalogRef {
    /// The Katalog of that namespace and name.
    pub fn new(namespace: String, name: String) -> Self {
        Self {
            namespace,
            name,
            kind: Declaring::Katalog,
        }
    }

    /// Returns that of the same namespace and name with this kind.
    #[must_use]
    pub fn of(mut self, kind: Declaring) -> Self {
        self.kind = kind;
        self
    }

    /// The reverse of `Display`.
    pub fn parse(text: &str) -> Self {
        let (kind, text) = match text.strip_prefix(KOMPOSER) {
            Some(rest) if rest.contains('/') => (Declaring::Komposer, rest),
            _ => (Declaring::Katalog, text),
        };
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self::new(namespace.to_owned(), name.to_owned()).of(kind)
    }

    /// Returns it with its kind, for messages: `Komposer shop/waters`.
    pub fn titled(&self) -> String {
        format!("{} {}/{}", self.kind.kind(), self.namespace, self.name)
    }
}

/// `shop/waters` for a Katalog, `komposer/shop/waters` for a Komposer.
impl fmt::Display for KatalogRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == Declaring::Komposer {
            f.write_str(KOMPOSER)?;
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

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
