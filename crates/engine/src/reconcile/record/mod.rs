//! Records: the part of an object that stores keep.

mod custom_resource;
mod marks;
mod observed;
mod proof;
mod unread;

use std::{num::NonZeroI64, sync::Arc};

use jiff::Timestamp;

pub use self::{
    custom_resource::CrRecord,
    marks::OperatedMarks,
    observed::{Observed, ObservedChild},
    proof::{OwnerMark, Predecessor, TRACKING},
};
use self::{proof::Proof, unread::fault_of};
use super::{
    identity::from_hex,
    kstatus::{self, Readiness},
    metadata::{controller, in_metadata},
    owned::{self, OwnValues, Ownership},
};
pub use super::{
    identity::{Identity, Uid},
    metadata::Malformed,
};
use orkestra_language::api::names;
use orkestra_object::value::{Fault, Node, Path, Projection, project};
use orkestra_plan::GroupKind;

/// True if an operator created the object, or a workload that an operator created did: operators of built-in kinds ignore it,
/// since what they create could be what they operate.
pub fn is_child(object: &Node) -> bool {
    names::OF_CHILDREN
        .iter()
        .any(|name| object.label(name).is_some())
}

/// The record of a child object.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildRecord {
    /// Its identity.
    pub id: Identity,
    /// `metadata.creationTimestamp` in seconds, if readable: Kubernetes writes no fractions.
    created: Option<NonZeroI64>,
    owner: Option<Uid>,
    applied: Option<[u8; 16]>,
    /// Whether a controller owner reference names its owner, not only our label.
    pub controlled: bool,
    /// Whether its `child` annotation names the object itself: the annotation was not copied from another object.
    pub names_itself: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The ownership of its fields.
    pub ownership: Arc<Ownership>,
    /// None for most: current.
    readiness: Option<Box<Readiness>>,
    /// Metadata in place of an owner reference, and finalizers while it is being deleted.
    proof: Option<Box<Proof>>,
    /// The fields that templates read.
    pub view: Node,
}

impl ChildRecord {
    /// Records `object`, which is of kind `kind`, keeping the parts of it under `paths`.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Identity::read`].
    pub fn read(kind: &GroupKind, object: &Node, paths: &[Path]) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let proof = Proof::read(object);
        let owner = proof::owner(object, proof.as_deref());
        let own = OwnValues {
            name: &id.key.name,
            owner: owner.as_ref(),
        };
        let ownership = Ownership::read(object.meta("managedFields"), own).share();
        let names_itself = object
            .annotation(names::ANNOTATION_CHILD)
            .is_some_and(|text| text == child_mark(kind, &id.key.name));
        let record = Self {
            created: created(object),
            controlled: controller(object).is_some(),
            owner,
            // Our own hashes have one form: any other text is not one of them.
            applied: object
                .annotation(names::ANNOTATION_APPLIED)
                .and_then(|text| from_hex(text.bytes())),
            names_itself,
            deleting: object.meta("deletionTimestamp").is_some(),
            ownership,
            readiness: None,
            proof,
            view: project(object, paths),
            id,
        };
        let readiness = match fault_of(object, || Self::projection(paths)) {
            Some(fault) => Readiness::Unreadable(fault),
            None => kstatus::readiness(kind, object),
        };
        Ok(record.with_readiness(readiness))
    }

    /// Returns the record with that readiness.
    #[must_use]
    pub fn with_readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = (readiness != Readiness::Current).then(|| Box::new(readiness));
        self
    }

    /// Returns the fields that [`ChildRecord::read`] reads: reduced to these, an object gives the same record.
    pub fn projection(paths: &[Path]) -> Projection {
        let metadata = [
            "creationTimestamp",
            "deletionTimestamp",
            "generation",
            "ownerReferences",
        ];
        let metadata = Identity::FIELDS
            .iter()
            .chain(&metadata)
            .map(|field| in_metadata(&[field]));
        let marks = [
            ["annotations", names::ANNOTATION_CHILD],
            ["annotations", names::ANNOTATION_APPLIED],
            ["labels", names::LABEL_OWNER_UID],
        ];
        let marks = marks.iter().map(|mark| in_metadata(mark));
        let own: Vec<Path> = metadata
            .chain(marks)
            .chain(Proof::read_paths())
            .chain(kstatus::read_paths())
            .collect();
        owned::with_owned_fields(Projection::new(own.iter().chain(paths)))
    }

    /// True if a pass that read `before` could decide differently now.
    pub fn differs(&self, before: &Self) -> bool {
        let Self {
            id,
            // It stays the same as long as the uid does.
            created: _,
            owner,
            applied,
            controlled,
            names_itself,
            deleting,
            ownership,
            readiness,
            proof,
            view,
        } = self;
        id.uid != before.id.uid
            || *owner != before.owner
            || *applied != before.applied
            || *controlled != before.controlled
            || *names_itself != before.names_itself
            || *deleting != before.deleting
            || *ownership != before.ownership
            || *readiness != before.readiness
            || *proof != before.proof
            || *view != before.view
    }

    /// Returns the uid of the custom resource that owns this child: its controller's; without a controller that of the owner
    /// annotation, or of the owner-uid label.
    pub fn owner(&self) -> Option<&Uid> {
        self.owner.as_ref()
    }

    /// Returns when it was created, if that is readable.
    pub fn created(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.created?.get()).ok()
    }

    /// True if our `applied` annotation has this hash.
    pub fn has_applied(&self, hash: &str) -> bool {
        self.applied.is_some() && self.applied == from_hex(hash.bytes())
    }

    /// Returns the unreadable part of the recorded fields: only the identity of the child may be concluded from the rest.
    pub fn unread(&self) -> Option<&Fault> {
        match self.readiness() {
            Readiness::Unreadable(fault) => Some(fault),
            _ => None,
        }
    }

    /// Returns its readiness.
    pub fn readiness(&self) -> &Readiness {
        self.readiness.as_deref().unwrap_or(&Readiness::Current)
    }

    /// True if it may belong to that owner, Kubernetes does not collect it, and it is partly unreadable: it stays, and so
    /// does its owner.
    pub fn is_unread_and_uncollected(&self, uid: &Uid) -> bool {
        self.unread().is_some() && !self.controlled && self.owner() == Some(uid)
    }

    /// Returns the bytes on the heap, without shared data.
    pub fn heap_bytes(&self) -> usize {
        let readiness = self.readiness.as_deref();
        let readiness = readiness.map_or(0, |one| size_of::<Readiness>() + one.heap_bytes());
        self.id.heap_bytes()
            + self.owner.as_ref().map_or(0, Uid::heap_bytes)
            + readiness
            + self.proof.as_deref().map_or(0, Proof::heap_bytes)
            + self.view.heap_bytes()
    }
}

/// Returns `metadata.creationTimestamp` in seconds.
fn created(object: &Node) -> Option<NonZeroI64> {
    let created: Timestamp = object.meta_text("creationTimestamp")?.parse().ok()?;
    NonZeroI64::new(created.as_second())
}

/// Returns the value of the `child` annotation: `<kind>/<name>`.
pub fn child_mark(kind: &GroupKind, name: &str) -> String {
    format!("{}/{name}", kind.kind)
}

/// Returns the paths that [`CrRecord::read`] keeps: those that templates read, and those that the status patch compares with.
pub fn kept_paths(reads: &[Path], written: impl Iterator<Item = Path>) -> Vec<Path> {
    let mut paths: Vec<Path> = reads.to_vec();
    paths.extend(written);
    paths
}
