//! Which objects may be children of a custom resource: their marks name it, and it may have children where they are.

use orkestra_engine::reconcile::record::{ChildRecord, Identity, ObservedChild, OwnerMark, Uid};
use orkestra_plan::{ChildKey, GroupKind, ObjectKey};

use super::bound_plan::BoundPlan;

impl BoundPlan {
    /// Returns the owner annotation of the children of the custom resource of that identity.
    pub(crate) fn owner_mark(&self, id: &Identity) -> OwnerMark {
        self.owner_mark_of(&id.key, &id.uid)
    }

    /// Returns the owner annotation of the children of the custom resource of that key and uid.
    pub(crate) fn owner_mark_of(&self, key: &ObjectKey, uid: &Uid) -> OwnerMark {
        OwnerMark {
            kind: self.plan.resource.group_kind(),
            key: key.clone(),
            uid: uid.clone(),
        }
    }

    /// True if an object that names `owner` as its owner may be its child. Clients that may create objects in some namespace
    /// can write any mark, and choose the name of the field manager.
    pub(crate) fn may_own(
        &self,
        owner: &OwnerMark,
        kind: &GroupKind,
        record: &ChildRecord,
    ) -> bool {
        let namespace = record.id.key.namespace.as_deref();
        record.names_no_other(owner) && self.reaches(owner, Some(kind), namespace)
    }

    /// True if the custom resource may have children of that kind, or of any kind, in the namespace.
    pub(crate) fn reaches(
        &self,
        owner: &OwnerMark,
        kind: Option<&GroupKind>,
        namespace: Option<&str>,
    ) -> bool {
        let own = owner.key.namespace.as_deref();
        let is_created = |namespace: &str| self.is_created(owner, namespace);
        self.declared
            .permits_child(own, kind, namespace, is_created)
    }

    /// True if the custom resource, or a deleted one of the same name, created the namespace, or if that is unknown.
    fn is_created(&self, owner: &OwnerMark, namespace: &str) -> bool {
        let kind = GroupKind::parse("Namespace");
        let own = owner.key.namespace.as_deref();
        // Administrators write cluster-scoped custom resources: they may choose any namespace.
        if own.is_none() || !self.sees(&kind, own) {
            return true;
        }
        let key = ObjectKey {
            namespace: None,
            name: namespace.into(),
        };
        let record = self.kind(&kind).and_then(|kind| kind.store().get(&key));
        record.is_some_and(|record| {
            let names_owner = record.owner() == Some(&owner.uid)
                || record.mark().is_some_and(|mark| mark.is_same_name(owner));
            names_owner && record.ownership.wrote(&self.manager)
        })
    }

    /// Returns the children of the custom resource of that identity, and the objects that would be children if they were in a
    /// namespace where it may have some; both sorted by key.
    pub(crate) fn claimed_by(&self, id: &Identity) -> (Vec<ObservedChild>, Vec<ChildKey>) {
        let owner = self.owner_mark(id);
        let (mut children, mut strangers) = (Vec::new(), Vec::new());
        for watched in &self.kinds {
            let kind = watched.served().group_kind();
            for (object, record) in watched.store().owned_by(&owner.uid) {
                let key = ChildKey {
                    kind: kind.clone(),
                    object,
                };
                if self.may_own(&owner, &kind, &record) {
                    children.push(ObservedChild { key, record });
                } else if record.is_ours(&owner.uid, &self.manager) {
                    strangers.push(key);
                }
            }
        }
        children.sort_by(|a, b| a.key.cmp(&b.key));
        strangers.sort();
        (children, strangers)
    }
}
