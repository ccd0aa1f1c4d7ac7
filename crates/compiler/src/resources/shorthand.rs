//! The interface of all kinds that have their own list: their expansion.

use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        autoscale::WorkloadAutoscale,
        children::{Copies, ForEach, ListEntry},
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
};
use orkestra_plan::{GroupKind, Leaf, ObjectTree, ResourceType, kinds};

/// A kind of child that has its own list in a block.
pub(crate) trait Shorthand: ListEntry {
    /// Returns the kind of its list.
    fn resource(&self) -> ResourceType {
        let kind = self.row().kind;
        kinds::named(kind).unwrap_or_else(|| kinds::resource("", "v1", kind))
    }

    /// Returns the root fields of the object, without those that every object has; metadata of the kind is added to
    /// `metadata`.
    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields;

    /// Returns the pods of a kind whose pods Services and others select.
    fn pods(&self) -> Option<Pods<'_>> {
        None
    }

    /// Returns source and target of a copy, for kinds that can be a copy.
    fn copies(&self) -> Option<(CopySource<'_>, &Copies)> {
        None
    }

    /// Returns whether its pods roll when their configuration changes.
    fn roll_on_change(&self) -> Option<bool> {
        None
    }

    /// Returns the autoscaler of the workload.
    fn autoscale(&self) -> Option<&WorkloadAutoscale> {
        None
    }
}

/// Pods that can be selected.
pub(crate) struct Pods<'a> {
    /// The port that they listen on.
    pub(crate) port: Option<&'a Scalar>,
}

/// The source of a copy.
pub(crate) struct CopySource<'a> {
    /// The field of the entry that names it.
    pub(crate) field: &'static str,
    pub(crate) kind: GroupKind,
    /// The top-level fields that are copied.
    pub(crate) parts: &'static [&'static str],
    /// Its name, as declared; `None` is not a copy.
    pub(crate) name: Option<&'a Text>,
}

impl<'a> CopySource<'a> {
    /// Returns a source of the same kind as `entry`, whose whole `spec` is copied.
    pub(crate) fn whole(
        field: &'static str,
        entry: &impl Shorthand,
        name: Option<&'a Text>,
    ) -> Self {
        Self {
            field,
            kind: entry.resource().group_kind(),
            parts: &["spec"],
            name,
        }
    }

    /// True if the entry at `at` is a copy. Its own rules would have to be merged with those of the source, which is the
    /// purpose of a patch: `own` lists the fields with such rules.
    pub(crate) fn is_given(&self, at: &At<'_>, own: &[(&str, bool)]) -> bool {
        if self.name.is_none() {
            return false;
        }
        for (field, _) in own.iter().filter(|(_, is_given)| *is_given) {
            let message = format!("`{field}` and `{}` are mutually exclusive", self.field);
            at.field(field).error_hint(
                Code::Exclusive,
                message,
                "write the changes to the copy under `patch`: `patch: { spec: … }`",
            );
        }
        true
    }
}

/// One entry to expand into an object.
pub(crate) struct Child<'a> {
    /// Its place.
    pub(crate) at: At<'a>,
    pub(crate) kind: GroupKind,
    /// Its name; empty after an error, which is reported.
    pub(crate) name: Leaf,
    /// Its name, as declared.
    pub(crate) name_text: &'a str,
    /// The workloads that it can select.
    pub(crate) workloads: &'a [Workload<'a>],
}

/// A workload of the operatorBox that a Service, an autoscaler or a budget can refer to.
#[derive(Clone)]
pub(crate) struct Workload<'a> {
    /// Its kind.
    pub(crate) kind: GroupKind,
    /// Its name, as declared.
    pub(crate) name: String,
    /// The list that it is expanded for.
    pub(crate) each: Option<&'a ForEach>,
    /// Its port, as declared, and its place.
    pub(crate) port: Option<(At<'a>, &'a Scalar)>,
}

/// The metadata of an object without its name and namespace.
#[derive(Default)]
pub(crate) struct Metadata {
    /// The user's labels, which are also set on the pods of a workload.
    pub(crate) labels: Fields,
    pub(crate) annotations: Fields,
    pub(crate) finalizers: Option<ObjectTree>,
}

impl Metadata {
    /// Returns the map, or `None` if it is empty.
    pub(crate) fn into_optional(self) -> Option<ObjectTree> {
        let mut metadata = Fields::default();
        metadata.put("labels", self.labels.into_optional());
        metadata.put("annotations", self.annotations.into_optional());
        metadata.put("finalizers", self.finalizers);
        metadata.into_optional()
    }
}

#[cfg(test)]
mod tests {
    use orkestra_language::api::Lifecycle;
    use orkestra_plan::named;

    #[test]
    fn the_kind_of_every_list_is_known_with_the_plural_and_the_version_that_its_field_states() {
        for list in Lifecycle::LISTS {
            let kind = named(list.kind).unwrap();
            assert_eq!(&*kind.kind, list.kind);
            assert_eq!(kind.plural.as_deref(), Some(&*list.title().to_lowercase()));
            let version = format!(" ({}).", kind.api_version());
            assert!(list.doc.contains(&version), "{}: {version}", list.doc);
        }
    }
}
