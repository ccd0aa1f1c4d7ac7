//! The metadata that proves to which custom resource a child belongs.
//!
//! ```text
//!  controller owner reference ───────────────────────────► its uid
//!  none is legal: owner annotation, else owner-uid label ► its uid, if our field manager wrote the object, and
//!                                                         if it names itself, or both annotation and label agree
//! ```
//!
//! A child stays recognized if a single label or annotation is removed. Metadata that another controller copies has no effect: the
//! copy is written by another field manager. A client may choose the name of a field manager, so an object is a child only in a
//! namespace where its custom resource may have children: [`super::super::inventory::DeclaredKinds::permits_child`].
//!
//! A backup tool creates objects again: with new uids, without owner references, and perhaps without managed fields. Such a child
//! has its labels and annotations still, and they name an owner that no longer exists: [`ChildRecord::predecessor`].

use super::ChildRecord;
use crate::reconcile::{
    identity::Uid,
    metadata::{controller, in_metadata, owner_label},
    owned::is_restored,
};
use orkestra_language::api::names;
use orkestra_object::value::{Node, Path};
use orkestra_plan::{GroupKind, ObjectKey};

/// Labels and annotations by which Argo CD and Flux track the objects that they prune.
///
/// Source: Argo CD, "Resource Tracking"; Flux, kustomize-controller and helm-controller, "Garbage collection".
pub const TRACKING: [[&str; 2]; 4] = [
    ["annotations", "argocd.argoproj.io/tracking-id"],
    ["labels", "argocd.argoproj.io/instance"],
    ["labels", "kustomize.toolkit.fluxcd.io/name"],
    ["labels", "helm.toolkit.fluxcd.io/name"],
];

/// The custom resource that owns a child without an owner reference, as its owner annotation names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerMark {
    /// Its kind.
    pub kind: GroupKind,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: Uid,
}

impl OwnerMark {
    /// Returns the annotation's text: `Website.shop.example/east/one/<uid>`, with an empty namespace for a cluster-scoped
    /// owner.
    pub fn text(&self) -> String {
        let namespace = self.key.namespace.as_deref().unwrap_or_default();
        format!("{}/{namespace}/{}/{}", self.kind, self.key.name, self.uid)
    }

    /// Parses the annotation's text; `None` if it does not have that form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let mut part = || parts.next();
        let (kind, namespace, name, uid) = (part()?, part()?, part()?, part()?);
        if part().is_some() || [kind, name, uid].iter().any(|part| part.is_empty()) {
            return None;
        }
        Some(Self {
            kind: GroupKind::parse(kind),
            key: ObjectKey {
                namespace: (!namespace.is_empty()).then(|| namespace.into()),
                name: name.into(),
            },
            uid: uid.into(),
        })
    }

    /// True if both name a custom resource of the same kind, namespace and name: it may have been deleted and created again.
    pub fn is_same_name(&self, other: &Self) -> bool {
        self.kind == other.kind && self.key == other.key
    }
}

/// The custom resource for which an object without a controller was created, if it was not created for the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predecessor<'a> {
    /// One of the same kind, namespace and name: it is gone if the present one exists.
    Namesake,
    /// One of the same kind and name in another namespace: the object was restored into this one.
    Elsewhere(&'a OwnerMark),
    /// One of that uid: the owner reference named it, and a backup tool removed the reference.
    Unnamed(&'a Uid),
}

/// Fields that only few child records have: metadata in place of an owner reference, and finalizers while they are being
/// deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own on the object"
)]
pub(crate) struct Proof {
    mark: Option<OwnerMark>,
    /// Whether the owner-uid label has the uid of the annotation.
    labelled: bool,
    adopted: bool,
    tracked: bool,
    restored: bool,
    finalizers: Box<[Box<str>]>,
}

impl Proof {
    /// Reads it; `None` for most objects.
    pub(crate) fn read(object: &Node) -> Option<Box<Self>> {
        let text = |map: &str, name: &str| object.meta(map)?.get(name)?.as_str();
        let mut proof = Self::default();
        if controller(object).is_none() {
            proof.mark = text("annotations", names::ANNOTATION_OWNER).and_then(OwnerMark::parse);
            let label = owner_label(object);
            proof.labelled = (proof.mark.as_ref())
                .is_some_and(|mark| label.is_some_and(|label| mark.uid == *label));
            proof.adopted = text("annotations", names::ANNOTATION_ADOPTED) == Some("true");
            proof.restored = proof.mark.is_some() && is_restored(object);
            proof.tracked = TRACKING.iter().any(|[map, name]| text(map, name).is_some());
        }
        if object.meta("deletionTimestamp").is_some() {
            let finalizers = object.meta("finalizers").and_then(Node::as_list);
            let finalizers = finalizers.unwrap_or_default().iter();
            proof.finalizers = finalizers.filter_map(Node::as_str).map(Box::from).collect();
        }
        (proof != Self::default()).then(|| Box::new(proof))
    }

    /// Returns the fields that [`Proof::read`] reads beside the owner references.
    pub(crate) fn read_paths() -> impl Iterator<Item = Path> {
        let marks = [names::ANNOTATION_OWNER, names::ANNOTATION_ADOPTED];
        let marks = marks.map(|name| in_metadata(&["annotations", name]));
        let tracking = TRACKING.iter().map(|path| in_metadata(path));
        let finalizers = in_metadata(&["finalizers"]);
        marks.into_iter().chain(tracking).chain([finalizers])
    }

    /// Returns the bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let finalizers = self.finalizers.iter();
        let finalizers = finalizers.map(|name| size_of::<Box<str>>() + name.len());
        size_of::<Self>()
            + self.mark.as_ref().map_or(0, |mark| mark.uid.heap_bytes())
            + finalizers.sum::<usize>()
    }
}

/// Returns the uid of the custom resource that owns an object: its controller's; without one that of the owner annotation, or
/// of the owner-uid label.
pub(crate) fn owner(object: &Node, proof: Option<&Proof>) -> Option<Uid> {
    if let Some(controller) = controller(object) {
        return Some(controller.into());
    }
    let mark = proof.and_then(|proof| proof.mark.as_ref());
    mark.map(|mark| mark.uid.clone())
        .or_else(|| owner_label(object).map(Uid::from))
}

impl ChildRecord {
    /// Returns its owner annotation, if it has no controller.
    pub fn mark(&self) -> Option<&OwnerMark> {
        self.proof.as_ref()?.mark.as_ref()
    }

    /// True if it has no owner annotation, or that of `owner`.
    pub fn names_no_other(&self, owner: &OwnerMark) -> bool {
        self.mark().is_none_or(|mark| mark == owner)
    }

    /// True if it must not get an owner reference: it existed before it was adopted, or Argo CD or Flux tracks it and would
    /// no longer prune it.
    pub fn stays_unowned(&self) -> bool {
        let proof = self.proof.as_deref();
        proof.is_some_and(|proof| proof.adopted || proof.tracked)
    }

    /// True if it is known to be restored from a backup, perhaps before its owner: that its owner does not exist is no reason to
    /// delete it.
    pub fn is_restored(&self) -> bool {
        self.proof.as_deref().is_some_and(|proof| proof.restored)
    }

    /// True if it was taken over by `adopt: true`.
    pub fn is_adopted(&self) -> bool {
        self.proof.as_deref().is_some_and(|proof| proof.adopted)
    }

    /// Returns its finalizers, if it is being deleted.
    pub fn finalizers(&self) -> &[Box<str>] {
        let proof = self.proof.as_deref();
        proof.map_or(&[], |proof| &proof.finalizers)
    }

    /// True if this child is proven to be created by the operator that writes as `manager` for the owner `uid`: labels alone
    /// prove nothing, since other controllers copy them.
    pub fn is_ours(&self, uid: &Uid, manager: &str) -> bool {
        self.owner() == Some(uid) && self.is_proven(manager)
    }

    /// True if it belongs to that owner, and Kubernetes does not collect it: it has no owner reference.
    pub fn is_uncollected(&self, uid: &Uid, manager: &str) -> bool {
        !self.controlled && self.is_ours(uid, manager)
    }

    /// True if it was created by the operator that writes as `manager` for a custom resource of the same kind, namespace and
    /// name as `owner` with another uid. Whether that one still exists must be checked.
    pub fn is_of_predecessor(&self, owner: &OwnerMark, manager: &str) -> bool {
        let mark = self.mark();
        let is_other = mark.is_some_and(|mark| mark.is_same_name(owner) && mark.uid != owner.uid);
        !self.controlled && is_other && self.is_proven(manager)
    }

    /// Returns the custom resource for which the operator that writes as `manager` created it, if that is not `owner`, and if
    /// the object may have been left by it or restored from a backup: nothing controls it. Whether that custom resource still
    /// exists must be checked. Without managed fields, the annotations that only our writes set stand in for them.
    pub fn predecessor(&self, owner: &OwnerMark, manager: &str) -> Option<Predecessor<'_>> {
        let uid = self.owner().filter(|uid| **uid != owner.uid)?;
        let is_marked = || {
            let is_whole = self.unread().is_none() && self.names_itself && self.applied.is_some();
            is_whole && !self.ownership.wrote_as_another(manager)
        };
        if self.controlled || !(self.is_proven(manager) || is_marked()) {
            return None;
        }
        let Some(mark) = self.mark() else {
            return Some(Predecessor::Unnamed(uid));
        };
        if mark.is_same_name(owner) {
            return Some(Predecessor::Namesake);
        }
        let is_elsewhere = mark.kind == owner.kind
            && mark.key.name == owner.key.name
            && mark.key.namespace.is_some()
            && self.id.key.namespace == owner.key.namespace;
        is_elsewhere.then_some(Predecessor::Elsewhere(mark))
    }

    fn is_proven(&self, manager: &str) -> bool {
        let agree = || self.proof.as_deref().is_some_and(|proof| proof.labelled);
        // Nothing is concluded from a partly unreadable object.
        let is_read = self.unread().is_none();
        is_read && self.ownership.wrote(manager) && (self.names_itself || agree())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_annotation_names_kind_namespace_and_name_of_the_owner_as_well() {
        let owner = OwnerMark::parse("Website.shop.example/east/one/u1").unwrap();
        let named = |text: Option<&str>| {
            let text = text.map(|text| {
                format!(
                    r#""annotations":{{"{}":"{text}"}},"#,
                    names::ANNOTATION_OWNER
                )
            });
            let text = text.unwrap_or_default();
            let object = format!(
                r#"{{"metadata":{{{text}"name":"a","namespace":"west","uid":"u2","resourceVersion":"1"}}}}"#
            );
            let object: Node = serde_json::from_str(&object).unwrap();
            let record = ChildRecord::read(&GroupKind::parse("ConfigMap"), &object, &[]).unwrap();
            record.names_no_other(&owner)
        };
        assert!(named(None) && named(Some("Website.shop.example/east/one/u1")));
        for other in [
            "Website.shop.example/east/two/u1",
            "Website.shop.example/west/one/u1",
            "Website.other.example/east/one/u1",
        ] {
            assert!(!named(Some(other)), "{other}");
        }
    }

    #[test]
    fn the_owner_annotation_reads_back_and_nothing_else_is_taken_for_one() {
        for text in [
            "Website.shop.example/east/one/0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4d",
            "Fleet.shop.example//main/uid-1",
        ] {
            let mark = OwnerMark::parse(text).unwrap();
            assert_eq!(mark.text(), text);
        }
        for text in [
            "",
            "/",
            "Website.shop.example/east/one",
            "Website.shop.example/east/one/uid/more",
            "/east/one/uid",
            "Website.shop.example/east//uid",
            "Website.shop.example/east/one/",
        ] {
            assert_eq!(OwnerMark::parse(text), None, "{text}");
        }
    }
}
