//! The additions that `enrich` makes to children, in one table, and their computation from the objects that are read.
//!
//! ```text
//!  Addition: a key, the kinds of children, a source
//!      ├── the child's own fields ───────────────────────────────┐
//!      └── Relation: a kind that is watched ─► views ─ found ─►──┴── shape ──► the value under the key
//! ```

mod relation;
mod shape;
mod table;
mod view;

pub use relation::read;
pub use relation::{Objects, Relation};
pub use table::ADDITIONS;

use crate::api::{EnrichTarget, keys::GroupKind};
use orkestra_object::value::{Node, Path};

/// One key that `enrich` adds to children.
#[derive(Debug)]
pub struct Addition {
    /// The word in a Katalog that enables it.
    pub target: EnrichTarget,
    /// The key. It starts with `_`, as no field of Kubernetes does.
    pub key: &'static str,
    /// Group and kind of the children that get it; empty means all.
    pub on: &'static [(&'static str, &'static str)],
    /// The source of the value.
    pub source: EnrichSource,
    /// Computes the value from the child, if the child is the source, or else from the views of the objects that were found.
    /// `None` adds nothing.
    pub shape: fn(&[Node]) -> Option<Node>,
    /// A description of the value, for the reference.
    pub doc: &'static str,
}

/// The source of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnrichSource {
    /// These paths of the child itself.
    Itself(&'static [&'static str]),
    /// Objects with the label of the workload that the child is.
    Workload(Relation),
    /// Objects that the child controls, or that refer to it: they contain its uid.
    Uid(Relation),
    /// Objects that contain the child's namespace and name.
    Key(Relation),
    /// The one object that a field of the child refers to: by a name, or by a map with `namespace` and `name`.
    Field(Relation, &'static str),
}

impl EnrichSource {
    /// Returns the relation that is watched for it.
    pub fn relation(self) -> Option<Relation> {
        match self {
            Self::Itself(_) => None,
            Self::Workload(relation)
            | Self::Uid(relation)
            | Self::Key(relation)
            | Self::Field(relation, _) => Some(relation),
        }
    }

    /// Returns the paths of the child that it needs.
    pub fn paths(self) -> impl Iterator<Item = Path> {
        let (many, one) = match self {
            Self::Itself(paths) => (paths, None),
            Self::Field(_, path) => (&[][..], Some(path)),
            Self::Workload(_) | Self::Uid(_) | Self::Key(_) => (&[][..], None),
        };
        many.iter().copied().chain(one).map(path)
    }
}

/// Parses a path of the table: fields separated by dots.
pub fn path(text: &str) -> Path {
    Path::of_fields(text.split('.'))
}

impl Addition {
    /// Finds the addition of that key to children of that kind.
    pub fn find(key: &str, kind: &GroupKind) -> Option<&'static Self> {
        ADDITIONS
            .iter()
            .find(|addition| addition.key == key && addition.is_of(kind))
    }

    /// True if children of that kind get it.
    pub fn is_of(&self, kind: &GroupKind) -> bool {
        self.on.is_empty() || self.on.contains(&(&*kind.group, &*kind.kind))
    }

    /// Returns the kinds of children that get it; empty means all.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.on.iter().map(|(_, kind)| *kind)
    }
}

impl EnrichTarget {
    /// All targets.
    pub const ALL: [Self; 14] = [
        Self::Pods,
        Self::Events,
        Self::Owner,
        Self::ReplicaSets,
        Self::Pvcs,
        Self::Pvc,
        Self::Pv,
        Self::StorageClass,
        Self::BackingPods,
        Self::Endpoints,
        Self::Node,
        Self::Hpa,
        Self::CronJob,
        Self::Ingress,
    ];

    /// Returns its word in a Katalog.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Events => "events",
            Self::Owner => "owner",
            Self::ReplicaSets => "replicasets",
            Self::Pvcs => "pvcs",
            Self::Pvc => "pvc",
            Self::Pv => "pv",
            Self::StorageClass => "storageclass",
            Self::BackingPods => "backingpods",
            Self::Endpoints => "endpoints",
            Self::Node => "node",
            Self::Hpa => "hpa",
            Self::CronJob => "cronjob",
            Self::Ingress => "ingress",
        }
    }

    /// Returns its additions.
    pub fn additions(self) -> impl Iterator<Item = &'static Addition> {
        ADDITIONS
            .iter()
            .filter(move |addition| addition.target == self)
    }
}

#[cfg(test)]
mod tests;
