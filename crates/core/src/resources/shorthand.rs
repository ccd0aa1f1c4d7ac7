//! What all kinds with a list of their own have in common: a row and an expansion each.

use super::{Workload, scope::At};
use crate::{
    api::{autoscale::WorkloadAutoscale, children::Common, scalar::Scalar},
    plan::{Fields, GroupKind, Leaf, ResourceType, Tree, kinds},
};

/// A kind of child that has a list of its own in a block.
pub(crate) trait Shorthand {
    /// The list, and the kind that it makes.
    fn row(&self) -> &'static Row;

    /// What every entry has.
    fn common(&self) -> &Common;

    /// The root fields of the object but for what every object has; what it adds to the metadata is put in there.
    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields;

    /// Its pods, of a kind whose pods Services and the like select.
    fn pods(&self) -> Option<Pods<'_>> {
        None
    }

    /// Whether its pods roll when what they use changes.
    fn roll_on_change(&self) -> Option<bool> {
        None
    }

    /// How the number of its pods follows conditions.
    fn autoscale(&self) -> Option<&WorkloadAutoscale> {
        None
    }
}

/// Pods that can be selected.
pub(crate) struct Pods<'a> {
    /// The port that they listen on.
    pub(crate) port: Option<&'a Scalar>,
}

/// A list of children, and the kind that it makes.
pub(crate) struct Row {
    /// The field of a block.
    pub(crate) list: &'static str,
    /// API group, empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    /// The name of an entry that has none; nothing where every entry must have one.
    pub(crate) name: Option<&'static str>,
}

impl Row {
    /// The kind that the list makes.
    pub(crate) fn resource(&self) -> ResourceType {
        kinds::resource(self.group, self.version, self.kind)
    }

    /// The name of an entry, as the Katalog has it.
    pub(crate) fn name<'a>(&self, common: &'a Common) -> Option<&'a str> {
        common.meta.name.as_deref().or(self.name)
    }
}

/// One entry on its way to an object.
pub(crate) struct Child<'a> {
    /// Where it stands.
    pub(crate) at: At<'a>,
    pub(crate) kind: GroupKind,
    /// Its name; an empty one where that is wrong, which is reported.
    pub(crate) name: Leaf,
    /// Its name, as the Katalog has it.
    pub(crate) name_text: &'a str,
    /// The workloads that it can select.
    pub(crate) workloads: &'a [Workload<'a>],
}

/// The metadata of an object but for its name and namespace.
#[derive(Default)]
pub(crate) struct Metadata {
    /// Labels: those of the user, which go onto the pods of a workload too.
    pub(crate) labels: Fields,
    pub(crate) annotations: Fields,
    pub(crate) finalizers: Option<Tree>,
}

impl Metadata {
    /// The map, or nothing when nothing is in it.
    pub(crate) fn into_optional(self) -> Option<Tree> {
        let mut metadata = Fields::default();
        metadata.put("labels", self.labels.into_optional());
        metadata.put("annotations", self.annotations.into_optional());
        metadata.put("finalizers", self.finalizers);
        metadata.into_optional()
    }
}
