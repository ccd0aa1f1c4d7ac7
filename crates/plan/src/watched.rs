//! The custom resources of an operator, and the metadata that it sets on them.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_object::value::{Node, Path};

/// Namespace of the runtime.
pub const NAMESPACE: &str = "orkestra-system";
/// Namespace of the Leases by which installations claim kinds: the same for all installations of a cluster, and used for
/// nothing else.
pub const CLAIMS_NAMESPACE: &str = "orkestra-claims";

/// The namespaces of Kubernetes and of Orkestra itself: objects of built-in kinds in them are not operated.
///
/// Source: Kubernetes, "Namespaces", initial namespaces; `default` belongs to users.
pub const SYSTEM_NAMESPACES: [&str; 5] = [
    "kube-system",
    "kube-public",
    "kube-node-lease",
    NAMESPACE,
    CLAIMS_NAMESPACE,
];

/// The custom resources of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The permitted namespaces; empty for all.
    pub allowed: BTreeSet<Box<str>>,
    /// Namespaces in which nothing is reconciled and no child is created.
    pub restricted: BTreeSet<Box<str>>,
    /// Required labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Required fields, for the field selector of the API server.
    pub fields: BTreeMap<Box<str>, Box<str>>,
    /// True for objects of a built-in kind: those in [`SYSTEM_NAMESPACES`] are ignored, and so are children of operators.
    pub built_in: bool,
}

impl Watched {
    /// True if an object in that namespace is reconciled; a cluster-scoped one has no namespace.
    pub fn admits(&self, namespace: Option<&str>, name: &str) -> bool {
        // A cluster-scoped object with such a name is the namespace.
        if self.built_in && SYSTEM_NAMESPACES.contains(&namespace.unwrap_or(name)) {
            return false;
        }
        let Some(namespace) = namespace else {
            return true;
        };
        !self.restricted.contains(namespace)
            && (self.allowed.is_empty() || self.allowed.contains(namespace))
    }

    /// True if the selectors select the object.
    pub fn selects(&self, object: &Node) -> bool {
        let field = |path: &str| {
            let found = Path::parse(path).ok().and_then(|path| object.at(&path));
            found.map(|node| node.to_text().into_owned())
        };
        self.labels
            .iter()
            .all(|(key, value)| object.label(key) == Some(&**value))
            && self
                .fields
                .iter()
                .all(|(path, value)| field(path).unwrap_or_default() == **value)
    }

    /// Returns the label selector for the API server; `None` selects all.
    pub fn label_selector(&self) -> Option<String> {
        selector(&self.labels)
    }

    /// Returns the field selector for the API server; `None` selects all.
    pub fn field_selector(&self) -> Option<String> {
        selector(&self.fields)
    }
}

fn selector(pairs: &BTreeMap<Box<str>, Box<str>>) -> Option<String> {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// A label or an annotation that an operator sets on its custom resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetadataKey {
    /// The key of a label.
    Label(Box<str>),
    /// The key of an annotation.
    Annotation(Box<str>),
}

impl MetadataKey {
    /// Returns the key.
    pub fn key(&self) -> &str {
        match self {
            Self::Label(key) | Self::Annotation(key) => key,
        }
    }

    /// Returns the metadata field that contains it.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Label(_) => "labels",
            Self::Annotation(_) => "annotations",
        }
    }

    /// Returns its path in an object.
    pub fn path(&self) -> Path {
        Path::of_fields(["metadata", self.field(), self.key()])
    }
}
