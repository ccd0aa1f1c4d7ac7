//! The paths that templates and conditions read of objects, and the names of children in templates.

use std::collections::{BTreeMap, BTreeSet};

use super::GroupKind;
use orkestra_object::value::{Key, Path};

/// The paths that a plan reads of objects; records keep only these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Paths of the custom resource that templates and conditions read (`spec.image`, `status.phase`). An event that
    /// changes none of them, nor the fields that the runtime itself needs, triggers no pass.
    pub cr: Vec<Path>,
    /// Paths of children, by kind, that templates read. Every declared kind has an entry, possibly empty.
    pub children: BTreeMap<GroupKind, Vec<Path>>,
    /// Paths of the custom resource whose text must be unique among all others of the kind.
    pub unique: Vec<Path>,
    /// The roots of sources without declared entries that templates and conditions read: `health`, `metrics`, `ork`.
    pub roots: BTreeSet<&'static str>,
}

impl Reads {
    /// Returns the paths that records of children of that kind keep; none of a kind that is not declared.
    pub fn of_children(&self, kind: &GroupKind) -> &[Path] {
        self.children.get(kind).map_or(&[], Vec::as_slice)
    }
}

/// A name below `.children`. Every declared kind has several: `.children.configMap`, `.children.configmap`,
/// `.children.configMaps`, `.children.configmaps`. Only names that a template reads are kept; reading any other name is an
/// error at compile time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildAlias {
    /// The name in templates.
    pub name: Key,
    /// The kind of the children.
    pub kind: GroupKind,
    /// One object, or a map of all by object name.
    pub number: NameForm,
}

/// The value at a name below `.children`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameForm {
    /// One object: of Jobs the latest, of other kinds the first declared.
    Singular,
    /// A map of the objects by name.
    Plural,
}
