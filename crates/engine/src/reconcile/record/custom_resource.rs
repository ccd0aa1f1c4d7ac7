//! The record of a custom resource.

use std::{num::NonZeroI64, sync::Arc};

use jiff::Timestamp;

use super::{created, is_child, unread::fault_of};
use crate::reconcile::{
    field_holders::{self, Holds},
    identity::Identity,
    inventory::Inventory,
    metadata::{Malformed, in_metadata},
    owned,
    requested::Requested,
};
use orkestra_language::api::names;
use orkestra_object::value::{Fault, Node, Path, Projection, project};

/// The labels that are read of a custom resource.
const CR_LABELS: [&str; 3] = [
    names::LABEL_MANAGED,
    names::LABEL_OWNER_UID,
    names::LABEL_WORKLOAD,
];

/// What is kept of a custom resource.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of the object, and none follows from another"
)]
pub struct CrRecord {
    /// Its identity.
    pub id: Identity,
    /// `metadata.generation`, 0 if the server keeps none.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When it was deleted, if that is readable.
    pub deleted: Option<Timestamp>,
    /// `metadata.creationTimestamp` in seconds, if readable: Kubernetes writes no fractions.
    pub(crate) created: Option<NonZeroI64>,
    /// Whether its deletion waits for nothing: its annotation skips `onDelete`.
    pub skips_on_delete: bool,
    /// Whether its annotation suspends it: no pass runs until it is removed, but a deletion does.
    pub suspended: bool,
    /// Whether it carries our finalizer.
    pub finalizer: bool,
    /// The finalizers of other controllers, in their order.
    pub other_finalizers: Box<[Box<str>]>,
    /// Whether it carries our `managed` label.
    pub managed: bool,
    /// Whether it is a child of an operator, or of one of its workloads: it carries our owner label, or that of pods.
    pub is_child: bool,
    /// What its inventory annotation says; the default where there is none. Equal ones are shared.
    pub inventory: Arc<Inventory>,
    /// The annotations that request a pass.
    pub requested: Option<Box<Requested>>,
    /// The reasons why fields of it must not be written, for requested paths ([`crate::reconcile::field_holders::request_path`]).
    pub holds: Option<Box<Holds>>,
    /// The fields that the plan reads, and those that a status patch compares with: the part of `status` that the plan
    /// writes.
    pub view: Node,
    /// The unreadable part of the recorded fields: the record lacks it, and no pass may treat it as absent.
    pub unread: Option<Box<Fault>>,
}

impl CrRecord {
    /// Records `object`, keeping the parts of it under `paths`.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Identity::read`].
    pub fn read(object: &Node, paths: &[Path]) -> Result<Self, Malformed> {
        let finalizers = object
            .meta("finalizers")
            .and_then(Node::as_list)
            .unwrap_or_default();
        let (ours, others): (Vec<&str>, Vec<&str>) = finalizers
            .iter()
            .filter_map(Node::as_str)
            .partition(|name| *name == names::FINALIZER);
        let id = Identity::read(object)?;
        Ok(Self {
            generation: object
                .meta("generation")
                .and_then(Node::as_i64)
                .unwrap_or_default(),
            deleting: object.meta("deletionTimestamp").is_some(),
            deleted: object
                .meta_text("deletionTimestamp")
                .and_then(|text| text.parse().ok()),
            created: created(object),
            skips_on_delete: object.annotation(names::ANNOTATION_SKIP_ON_DELETE) == Some("true"),
            suspended: object.annotation(names::ANNOTATION_SUSPEND) == Some("true"),
            finalizer: !ours.is_empty(),
            other_finalizers: others.into_iter().map(Box::from).collect(),
            managed: object.label(names::LABEL_MANAGED) == Some("true"),
            is_child: is_child(object),
            inventory: object
                .annotation(names::ANNOTATION_INVENTORY)
                .map(|text| Inventory::of(text, &id.uid))
                .unwrap_or_default()
                .share(),
            id,
            requested: Requested::read(|name| object.annotation(name)).map(Box::new),
            holds: Holds::read(object, paths),
            view: project(object, paths),
            unread: fault_of(object, || Self::projection(paths)),
        })
    }

    /// Returns the fields that [`CrRecord::read`] reads: reduced to these, an object gives the same record.
    pub fn projection(paths: &[Path]) -> Projection {
        let metadata = [
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "finalizers",
        ];
        let metadata = Identity::FIELDS
            .iter()
            .chain(&metadata)
            .map(|field| in_metadata(&[field]));
        let annotations = [
            names::ANNOTATION_SKIP_ON_DELETE,
            names::ANNOTATION_SUSPEND,
            names::ANNOTATION_INVENTORY,
            names::ANNOTATION_RECONCILE,
            names::ANNOTATION_REQUESTED_AT,
        ];
        let annotations = annotations.map(|name| in_metadata(&["annotations", name]));
        let labels = CR_LABELS.map(|name| in_metadata(&["labels", name]));
        let own: Vec<Path> = metadata
            .chain(annotations)
            .chain(labels)
            .chain(field_holders::read_paths(paths))
            .collect();
        let projection = Projection::new(own.iter().chain(paths));
        if field_holders::is_asked(paths) {
            owned::with_owned_fields(projection)
        } else {
            projection
        }
    }

    /// Returns the bytes on the heap, without shared data.
    pub fn heap_bytes(&self) -> usize {
        let finalizers = self.other_finalizers.iter();
        let finalizers = finalizers.map(|name| size_of::<Box<str>>() + name.len());
        self.id.heap_bytes()
            + finalizers.sum::<usize>()
            + self.requested.as_deref().map_or(0, Requested::heap_bytes)
            + self.holds.as_deref().map_or(0, Holds::heap_bytes)
            + self.view.heap_bytes()
    }

    /// Returns when it was created, if that is readable.
    pub fn created(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.created?.get()).ok()
    }

    /// Whether its children are to stay when it goes: it carries Kubernetes' own `orphan` finalizer.
    pub fn orphans(&self) -> bool {
        self.other_finalizers.iter().any(|name| &**name == "orphan")
    }

    /// True if a pass over `self` could decide differently from one over `before`: anything except the resourceVersion
    /// differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self {
            id,
            generation,
            deleting,
            deleted,
            // It stays the same as long as the uid does.
            created: _,
            skips_on_delete,
            suspended,
            finalizer,
            other_finalizers,
            managed,
            is_child,
            inventory,
            requested,
            holds,
            view,
            unread,
        } = self;
        id.uid != before.id.uid
            || *generation != before.generation
            || *deleting != before.deleting
            || *deleted != before.deleted
            || *skips_on_delete != before.skips_on_delete
            || *suspended != before.suspended
            || *finalizer != before.finalizer
            || *other_finalizers != before.other_finalizers
            || *managed != before.managed
            || *is_child != before.is_child
            || *inventory != before.inventory
            || *requested != before.requested
            || *holds != before.holds
            || *view != before.view
            || *unread != before.unread
    }
}
