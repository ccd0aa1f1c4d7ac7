//! What all kinds with a list of their own have in common: a row and an expansion each.

use super::{Workload, scope::At};
use crate::{
    api::{
        autoscale::WorkloadAutoscale,
        children::{Common, Copies},
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
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

    /// What it is a copy of, and where it goes, of a kind that can be a copy.
    fn copies(&self) -> Option<(Source<'_>, &Copies)> {
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

/// What an entry copies.
pub(crate) struct Source<'a> {
    /// The field of the entry that names it.
    pub(crate) field: &'static str,
    pub(crate) kind: GroupKind,
    /// The fields at its root that are taken.
    pub(crate) parts: &'static [&'static str],
    /// Its name, as the Katalog has it; none is no copy.
    pub(crate) name: Option<&'a Text>,
}

impl<'a> Source<'a> {
    /// An object of the same kind as `row` makes, of which the whole `spec` is taken.
    pub(super) fn of_row(field: &'static str, row: &Row, name: Option<&'a Text>) -> Self {
        Self {
            field,
            kind: row.resource().group_kind(),
            parts: &["spec"],
            name,
        }
    }

    /// Whether the entry at `at` is a copy. Rules of its own would have to be mixed with those of the source, which is what a
    /// patch does: `own` are the fields that say any.
    pub(super) fn is_given(&self, at: &At<'_>, own: &[(&str, bool)]) -> bool {
        if self.name.is_none() {
            return false;
        }
        for (field, _) in own.iter().filter(|(_, is_given)| *is_given) {
            let message = format!("`{field}` and `{}` exclude each other", self.field);
            at.field(field).error_hint(
                Code::Exclusive,
                message,
                "write under `patch` what the copy has instead: `patch: { spec: … }`",
            );
        }
        true
    }
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
