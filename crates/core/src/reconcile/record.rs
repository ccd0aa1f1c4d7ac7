//! Records: what stores keep of an object instead of the object.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    holds::Holds,
    inventory::Inventory,
    kstatus::{self, Readiness},
    owned::{Own, Ownership, intern_ownership},
    sources::Answers,
};
use crate::{
    api::names,
    plan::{ChildKey, GroupKind, ObjectKey},
    value::{Node, Path, project},
};

/// Why an object from the API server could not be recorded: it is not shaped like an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an object without {0} came from the API server")]
pub struct Malformed(pub(super) &'static str);

/// What every record has: who the object is and which state of it this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion`: opaque but for [`newer`].
    pub resource_version: Box<str>,
}

impl Identity {
    /// Reads it from an object's metadata.
    ///
    /// # Errors
    /// [`Malformed`] when name, uid or resourceVersion is absent.
    pub fn read(object: &Node) -> Result<Self, Malformed> {
        let text = |field: &'static str| {
            meta(object, field)
                .and_then(Node::as_str)
                .ok_or(Malformed(field))
        };
        Ok(Self {
            key: ObjectKey {
                namespace: meta(object, "namespace")
                    .and_then(Node::as_str)
                    .filter(|text| !text.is_empty())
                    .map(Box::from),
                name: text("name")?.into(),
            },
            uid: text("uid")?.into(),
            resource_version: text("resourceVersion")?.into(),
        })
    }
}

/// Whether resourceVersion `a` is newer than `b`. Both are decimal on every server there is; where one is not, the
/// newcomer wins. Source: KEP-5504, comparable resource versions.
pub fn newer(a: &str, b: &str) -> bool {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a > b,
        _ => a != b,
    }
}

/// `metadata.<field>` of an object.
fn meta<'a>(object: &'a Node, field: &str) -> Option<&'a Node> {
    object.get("metadata")?.get(field)
}

fn annotation<'a>(object: &'a Node, name: &str) -> Option<&'a str> {
    meta(object, "annotations")?.get(name)?.as_str()
}

fn label<'a>(object: &'a Node, name: &str) -> Option<&'a str> {
    meta(object, "labels")?.get(name)?.as_str()
}

/// The uid of an object's controller owner reference.
pub(super) fn controller(object: &Node) -> Option<&str> {
    let owners = meta(object, "ownerReferences").and_then(Node::as_list)?;
    let is_controller =
        |owner: &&Node| owner.get("controller").and_then(Node::as_bool) == Some(true);
    owners.iter().find(is_controller)?.get("uid")?.as_str()
}

/// The uid that our owner label names.
pub(super) fn owner_label(object: &Node) -> Option<&str> {
    label(object, names::LABEL_OWNER_UID)
}

/// What is kept of a custom resource.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of the object, and none follows from another"
)]
pub struct CrRecord {
    /// Who it is.
    pub id: Identity,
    /// `metadata.generation`, 0 where the server keeps none.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When it was deleted, where that can be read.
    pub deleted: Option<jiff::Timestamp>,
    /// Whether its end waits for nothing: its annotation says that `onDelete` is passed over.
    pub skips_on_delete: bool,
    /// Whether it carries our finalizer.
    pub finalizer: bool,
    /// The finalizers of others, in their order.
    pub other_finalizers: Box<[Box<str>]>,
    /// Whether it carries our `managed` label.
    pub managed: bool,
    /// What its inventory annotation says; the default where there is none.
    pub inventory: Inventory,
    /// The annotation that forces a pass.
    pub force: Option<Box<str>>,
    /// What keeps fields of it from being written, as far as paths ask ([`super::holds::asks`]).
    pub holds: Option<Box<Holds>>,
    /// What the plan reads, and what a status patch compares with: `status` as far as the plan writes it.
    pub view: Node,
}

impl CrRecord {
    /// Records `object`, keeping the parts of it that lie under `paths`.
    ///
    /// # Errors
    /// [`Malformed`] as [`Identity::read`] says.
    pub fn read(object: &Node, paths: &[Path]) -> Result<Self, Malformed> {
        let finalizers = meta(object, "finalizers")
            .and_then(Node::as_list)
            .unwrap_or_default();
        let (ours, others): (Vec<&str>, Vec<&str>) = finalizers
            .iter()
            .filter_map(Node::as_str)
            .partition(|name| *name == names::FINALIZER);
        Ok(Self {
            id: Identity::read(object)?,
            generation: meta(object, "generation")
                .and_then(Node::as_i64)
                .unwrap_or_default(),
            deleting: meta(object, "deletionTimestamp").is_some(),
            deleted: meta(object, "deletionTimestamp")
                .and_then(Node::as_str)
                .and_then(|text| text.parse().ok()),
            skips_on_delete: annotation(object, names::ANNOTATION_SKIP_ON_DELETE) == Some("true"),
            finalizer: !ours.is_empty(),
            other_finalizers: others.into_iter().map(Box::from).collect(),
            managed: label(object, names::LABEL_MANAGED) == Some("true"),
            inventory: annotation(object, names::ANNOTATION_INVENTORY)
                .map(Inventory::parse)
                .unwrap_or_default(),
            force: annotation(object, names::ANNOTATION_RECONCILE).map(Box::from),
            holds: Holds::read(object, paths),
            view: project(object, paths),
        })
    }

    /// Whether its children are to stay when it goes: it carries Kubernetes' own `orphan` finalizer.
    pub fn orphans(&self) -> bool {
        self.other_finalizers.iter().any(|name| &**name == "orphan")
    }

    /// Whether a pass over `self` could decide otherwise than over `before`: anything but the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self {
            id,
            generation,
            deleting,
            deleted,
            skips_on_delete,
            finalizer,
            other_finalizers,
            managed,
            inventory,
            force,
            holds,
            view,
        } = self;
        id.uid != before.id.uid
            || *generation != before.generation
            || *deleting != before.deleting
            || *deleted != before.deleted
            || *skips_on_delete != before.skips_on_delete
            || *finalizer != before.finalizer
            || *other_finalizers != before.other_finalizers
            || *managed != before.managed
            || *inventory != before.inventory
            || *force != before.force
            || *holds != before.holds
            || *view != before.view
    }
}

/// What is kept of a child object.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildRecord {
    /// Who it is.
    pub id: Identity,
    /// `metadata.creationTimestamp`, where it can be read.
    pub created: Option<jiff::Timestamp>,
    /// uid of its controller owner reference.
    pub controller: Option<Box<str>>,
    /// uid that our owner label names; the only mark where an owner reference is illegal.
    pub owner_label: Option<Box<str>>,
    /// Hash that our `applied` annotation names.
    pub applied: Option<Box<str>>,
    /// Whether its `child` annotation names the object itself: the annotation was not copied from another.
    pub names_itself: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Who owns which of its fields.
    pub ownership: Arc<Ownership>,
    /// How far it has come.
    pub readiness: Readiness,
    /// What templates read of it.
    pub view: Node,
}

impl ChildRecord {
    /// Records `object`, which is of kind `kind`, keeping the parts of it that lie under `paths`.
    ///
    /// # Errors
    /// [`Malformed`] as [`Identity::read`] says.
    pub fn read(kind: &GroupKind, object: &Node, paths: &[Path]) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let controller = controller(object);
        let owner_label = owner_label(object);
        let own = Own {
            name: &id.key.name,
            owner: controller.or(owner_label).unwrap_or_default(),
        };
        let ownership = intern_ownership(Ownership::read(meta(object, "managedFields"), own));
        let names_itself = annotation(object, names::ANNOTATION_CHILD)
            .is_some_and(|text| text == child_mark(kind, &id.key.name));
        Ok(Self {
            created: meta(object, "creationTimestamp")
                .and_then(Node::as_str)
                .and_then(|text| text.parse().ok()),
            controller: controller.map(Box::from),
            owner_label: owner_label.map(Box::from),
            applied: annotation(object, names::ANNOTATION_APPLIED).map(Box::from),
            names_itself,
            deleting: meta(object, "deletionTimestamp").is_some(),
            ownership,
            readiness: kstatus::readiness(kind, object),
            view: project(object, paths),
            id,
        })
    }

    /// Whether a pass that read `before` could decide otherwise now.
    pub fn differs(&self, before: &Self) -> bool {
        let Self {
            id,
            // It stays as long as the uid does.
            created: _,
            controller,
            owner_label,
            applied,
            names_itself,
            deleting,
            ownership,
            readiness,
            view,
        } = self;
        id.uid != before.id.uid
            || *controller != before.controller
            || *owner_label != before.owner_label
            || *applied != before.applied
            || *names_itself != before.names_itself
            || *deleting != before.deleting
            || *ownership != before.ownership
            || *readiness != before.readiness
            || *view != before.view
    }

    /// The uid of the custom resource that this child belongs to: its controller's, or where it has no controller, the
    /// one that the owner label names.
    pub fn owner(&self) -> Option<&str> {
        self.controller.as_deref().or(self.owner_label.as_deref())
    }

    /// Whether this child is proven to be made by the operator that writes as `manager` for the owner `uid`: labels
    /// alone prove nothing, other controllers copy them.
    pub fn is_ours(&self, uid: &str, manager: &str) -> bool {
        self.owner() == Some(uid) && self.names_itself && self.ownership.wrote(manager)
    }

    /// Whether it is that owner's, and Kubernetes does not collect it: it has no owner reference.
    pub fn is_uncollected(&self, uid: &str, manager: &str) -> bool {
        self.controller.is_none() && self.is_ours(uid, manager)
    }
}

/// The `child` annotation's value: `<kind>/<name>`.
pub fn child_mark(kind: &GroupKind, name: &str) -> String {
    format!("{}/{name}", kind.kind)
}

/// A child as it is seen by a pass.
#[derive(Clone, Debug)]
pub struct ObservedChild {
    /// Which object.
    pub key: ChildKey,
    /// What is kept of it.
    pub record: Arc<ChildRecord>,
}

/// Everything that a pass reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The custom resource.
    pub cr: Arc<CrRecord>,
    /// Its children: every object whose [`ChildRecord::owner`] is its uid, sorted by key.
    pub children: Vec<ObservedChild>,
    /// Kinds of its inventory that cannot be read at the moment: nothing is concluded from their absence.
    pub unseen: BTreeSet<GroupKind>,
    /// Whether its status tells of a pass already; none where its CRD cannot hold that. Passes report after they write, so
    /// what an unreported custom resource's inventory calls made may have been lost in a crash before it was.
    pub reported: Option<bool>,
    /// What was read beside them for this pass so far.
    pub answers: Answers,
}

impl Observed {
    /// The child of that key.
    pub fn child(&self, key: &ChildKey) -> Option<&Arc<ChildRecord>> {
        self.children
            .binary_search_by(|child| child.key.cmp(key))
            .ok()
            .map(|at| &self.children[at].record)
    }
}

/// The paths that [`CrRecord::read`] keeps: what templates read, and what the status patch compares with.
pub fn kept_paths(reads: &[Path], written: impl Iterator<Item = Path>) -> Vec<Path> {
    let mut paths: Vec<Path> = reads.to_vec();
    paths.extend(written);
    paths
}
