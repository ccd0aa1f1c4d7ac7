//! A plan with everything it needs from a cluster: kinds as they are served, and their watches.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_cluster::{
    requests::Served,
    watch::{MemoryUse, Scoped, WatchProblem, WatchState},
};
use orkestra_engine::reconcile::{
    crd_status::CrdStatus,
    inventory::DeclaredKinds,
    observe::Lead,
    reason::Reason,
    record::{ChildRecord, CrRecord, Uid},
    step::{Failure, ServedScopes},
};
use orkestra_ground::changes::{change, first};
use orkestra_plan::{ChildKey, ChildPlan, GroupKind, ObjectKey, ObjectNamespaces, OperatorPlan};

use crate::sources::PlanSources;

/// A plan and its watches. Immutable: another plan, or another set of kinds, makes another value.
pub(crate) struct BoundPlan {
    pub(crate) plan: Arc<OperatorPlan>,
    /// The field manager of every write.
    pub(crate) manager: String,
    /// The namespace that the runtime itself is in, where it is in a cluster: of built-in kinds nothing there is operated.
    pub(crate) home: Option<Arc<str>>,
    /// What its accepted revisions declare, which inventories may name.
    pub(crate) declared: Arc<DeclaredKinds>,
    /// The scope and the status of its CRD.
    pub(crate) crd_status: CrdStatus,
    /// The custom resources.
    pub(crate) crs: Scoped<CrRecord>,
    /// If a selector applies: all custom resources that carry our label, including those that were managed before.
    pub(crate) marked: Option<Scoped<CrRecord>>,
    /// The kinds that children may have: those of the plan, and those of inventories.
    pub(crate) kinds: Box<[Arc<Kind>]>,
    /// The namespaces of objects that are read by name, by kind.
    pub(crate) read_places: Box<[(GroupKind, ObjectNamespaces)]>,
    /// Kinds that children may have and that are not watched.
    pub(crate) absent: BTreeMap<GroupKind, Absence>,
    /// The data beyond custom resources and their children.
    pub(crate) sources: PlanSources,
}

/// Why a kind is not watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The API server does not serve it: none of its objects can exist.
    NotServed,
    /// Only earlier revisions declare it, and how it is served could not be read: it may have objects.
    Unknown(WatchProblem),
}

/// A kind of children: all objects of it that may belong to the operator, of any owner.
pub(crate) type Kind = Scoped<ChildRecord>;

impl ServedScopes for BoundPlan {
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool> {
        Some(self.find(kind)?.served().namespaced)
    }
}

impl BoundPlan {
    /// The kind of the custom resource.
    pub(crate) fn served(&self) -> &Served {
        self.crs.served()
    }

    /// Returns the custom resource of that key, if it is managed.
    pub(crate) fn cr(&self, key: &ObjectKey) -> Option<Arc<CrRecord>> {
        let record = self.crs.store().get(key);
        record.filter(|record| self.admits(record))
    }

    /// Returns the leads of the custom resource itself and its children, with their uids.
    pub(crate) fn leads_about(&self, cr: &CrRecord) -> Vec<(Lead, Option<Uid>)> {
        let own = Lead::About(self.served().group_kind(), cr.id.key.clone());
        let mut leads = vec![(own, Some(cr.id.uid.clone()))];
        let owner = self.owner_mark(&cr.id);
        for watched in &self.kinds {
            let kind = watched.served().group_kind();
            for (key, child) in watched.store().owned_by(&cr.id.uid) {
                if self.may_own(&owner, &kind, &child) {
                    leads.push((Lead::About(kind.clone(), key), Some(child.id.uid.clone())));
                }
            }
        }
        leads
    }

    /// Returns the keys of the managed custom resources.
    pub(crate) fn cr_keys(&self) -> Vec<ObjectKey> {
        let records = self.crs.store().snapshot();
        let admitted = records.iter().filter(|record| self.admits(record));
        admitted.map(|record| record.id.key.clone()).collect()
    }

    /// Returns the custom resource of that key if it is no longer managed and its marks show that it was.
    pub(crate) fn formerly_managed(&self, key: &ObjectKey) -> Option<Arc<CrRecord>> {
        if self.cr(key).is_some() {
            return None;
        }
        let record = self.marked.as_ref()?.store().get(key)?;
        let is_operated = record.marks().is_operated(self.plan.watched.built_in);
        is_operated.then_some(record)
    }

    /// Returns the keys of all custom resources that are no longer managed and whose marks show that they were.
    pub(crate) fn all_formerly_managed(&self) -> Vec<ObjectKey> {
        let marked = self.marked.iter().flat_map(|marked| marked.store().keys());
        marked
            .filter(|key| self.formerly_managed(key).is_some())
            .collect()
    }

    fn admits(&self, record: &CrRecord) -> bool {
        let (watched, key) = (&self.plan.watched, &record.id.key);
        let namespace = key.namespace.as_deref();
        let is_left_alone = || {
            let own = self.home.as_deref();
            record.is_child || own.is_some_and(|own| own == namespace.unwrap_or(&key.name))
        };
        watched.admits(namespace, &key.name) && !(watched.built_in && is_left_alone())
    }

    pub(crate) fn kind(&self, kind: &GroupKind) -> Option<Arc<Kind>> {
        self.find(kind).cloned()
    }

    fn find(&self, kind: &GroupKind) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|known| known.served().is(kind))
    }

    /// True if the plan declares, or observes, a kind that is not served.
    pub(crate) fn lacks_kinds(&self) -> bool {
        let mut declared = self.plan.kinds();
        declared.any(|kind| self.absent.contains_key(&kind.group_kind()))
            || self.sources.observed.absent().next().is_some()
    }

    /// True if the plan itself declares children of that kind.
    pub(crate) fn declares(&self, kind: &GroupKind) -> bool {
        let mut kinds = self.plan.kinds();
        kinds.any(|declared| declared.group_kind() == *kind)
    }

    /// True if custom resources may have children of that kind without an owner reference.
    pub(crate) fn may_leave(&self, kind: &GroupKind) -> bool {
        let of_kind = |child: &&ChildPlan| child.kind.group_kind() == *kind;
        let mut declared = self.plan.children.iter().filter(of_kind);
        let is_unowned = |child: &ChildPlan| child.may_be_elsewhere() || child.adopt;
        !self.declares(kind) || self.keeps_values(kind) || declared.any(is_unowned)
    }

    /// True if custom resources may have children of that kind that get no owner reference because they keep values.
    pub(crate) fn keeps_values(&self, kind: &GroupKind) -> bool {
        let mut declared = self.plan.children.iter();
        declared.any(|child| child.kind.group_kind() == *kind && child.keeps_values())
    }

    /// True if that kind is watched already, or it is known why not.
    pub(crate) fn knows(&self, kind: &GroupKind) -> bool {
        self.find(kind).is_some() || self.absent.contains_key(kind)
    }

    /// Returns the kind of a child to write.
    pub(crate) fn kind_of(&self, key: &ChildKey) -> Result<Arc<Kind>, Failure> {
        self.kind(&key.kind).ok_or_else(|| Failure {
            reason: Reason::KindNotServed,
            at: key.to_string(),
            message: format!("the API server does not serve {}", key.kind),
        })
    }

    /// True if a child of that kind that is missing from the stores does not exist for a custom resource in that namespace.
    /// In the namespaces of other custom resources it has no children anyway.
    pub(crate) fn sees(&self, kind: &GroupKind, of: Option<&str>) -> bool {
        let is_others = |namespace: Option<&str>| namespace != of && self.is_own(namespace);
        self.absent.get(kind) == Some(&Absence::NotServed)
            || self.find(kind).is_some_and(|kind| {
                kind.parts()
                    .all(|(namespace, state)| is_others(namespace) || is_settled(&state.borrow()))
            })
    }

    /// True if custom resources are watched in that namespace only, not in all namespaces.
    fn is_own(&self, namespace: Option<&str>) -> bool {
        namespace.is_some() && self.crs.namespaces().any(|own| own == namespace)
    }

    /// Returns, for each watch of children, whether its initial list is complete.
    pub(crate) fn shown(&self) -> Vec<bool> {
        let parts = self.kinds.iter().flat_map(|kind| kind.parts());
        parts
            .map(|(_, state)| is_settled(&state.borrow()))
            .collect()
    }

    /// Returns the namespace in which such objects, read by name, are watched; none if all namespaces are watched.
    pub(crate) fn scope_of<'a>(&self, object: &'a ChildKey) -> Option<&'a str> {
        let mut all = self.read_places.iter();
        let (_, places) = all.find(|(kind, _)| *kind == object.kind)?;
        places.scope_of(object.object.namespace.as_deref())
    }

    /// True if exactly these kinds are watched.
    pub(crate) fn serves_exactly(&self, served: &BTreeMap<GroupKind, Served>) -> bool {
        self.kinds.len() == served.len()
            && served.iter().all(|(kind, served)| {
                self.find(kind)
                    .is_some_and(|known| known.served() == served)
            })
    }

    /// Returns when every watch has synced, or its kind is known not to be served. A kind that only earlier revisions
    /// declared may fail: its permissions may have been removed with them, and nothing new depends on it.
    pub(crate) async fn synced(&self) {
        self.settled(|kind, state| {
            let is_failing = matches!(state, WatchState::Failing { .. });
            is_settled(state) || (is_failing && !self.declares(kind))
        })
        .await;
        self.sources.looked_at().await;
    }

    /// True if [`Self::synced`] cannot return before a permission is granted.
    pub(crate) fn lacks_permissions(&self) -> bool {
        let lacks = |state: &WatchState| is_forbidden(state) && !is_settled(state);
        let are_several = self.crs.namespaces().nth(1).is_some();
        let declared = |kind: &&Arc<Kind>| self.declares(&kind.served().group_kind());
        let marked = self.marked.iter().flat_map(Scoped::parts);
        let kinds = self.kinds.iter().filter(declared);
        let mut needed = marked.chain(kinds.flat_map(|kind| kind.parts()));
        self.crs.states().all(|state| lacks(&state.borrow()))
            || needed.any(|(namespace, state)| {
                let may_fail = are_several && self.is_own(namespace);
                !may_fail && lacks(&state.borrow())
            })
    }

    /// Returns when all custom resources are known, and every kind of children that can be read is synced.
    pub(crate) async fn deletable(&self) {
        self.settled(|_, state| is_settled(state) || is_forbidden(state))
            .await;
    }

    /// Returns when the custom resources are read, and `is_known` holds for the watch of each kind of children. If custom
    /// resources of several namespaces are managed, a namespace whose permissions are gone, perhaps with the namespace
    /// itself, does not delay the others.
    async fn settled(&self, is_known: impl Fn(&GroupKind, &WatchState) -> bool) {
        self.crs.until_any(is_settled).await;
        let are_several = self.crs.namespaces().nth(1).is_some();
        let lacks = |namespace: Option<&str>, state: &WatchState| {
            are_several && self.is_own(namespace) && is_forbidden(state)
        };
        for watch in std::iter::once(&self.crs).chain(&self.marked) {
            watch
                .until(|namespace, state| is_settled(state) || lacks(namespace, state))
                .await;
        }
        for kind in &self.kinds {
            let group_kind = kind.served().group_kind();
            kind.until(|namespace, state| is_known(&group_kind, state) || lacks(namespace, state))
                .await;
        }
    }

    /// Returns when any watch changes its state.
    pub(crate) async fn changed(&self) {
        let mut states = self.states();
        let changes = states.iter_mut().map(|state| {
            state.mark_unchanged();
            change(state)
        });
        first(changes).await;
    }

    fn states(&self) -> Vec<tokio::sync::watch::Receiver<WatchState>> {
        let kinds = self.kinds.iter().flat_map(|kind| kind.states());
        let marked = self.marked.iter().flat_map(Scoped::states);
        self.crs.states().chain(marked).chain(kinds).collect()
    }

    /// True while it is being checked whether the API server was restored to an older state: until then, records of the old
    /// and of the new state may be mixed.
    pub(crate) fn is_open(&self) -> bool {
        self.crs.is_open() || self.kinds.iter().any(|kind| kind.is_open())
    }

    /// Returns the problems of the watches that the plan needs, by kind.
    pub(crate) fn problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        let kinds = self.kinds.iter().filter_map(|kind| kind.problem());
        let own = self.crs.problem().into_iter();
        own.chain(kinds.filter(|(kind, _)| self.declares(kind)))
            .chain(self.sources.problems())
            .collect()
    }

    /// Returns why kinds cannot be watched that only inventories of custom resources name.
    pub(crate) fn earlier_problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        let watched = self.kinds.iter().filter_map(|kind| kind.problem());
        let unknown = self.absent.iter().filter_map(|(kind, why)| match why {
            Absence::NotServed => None,
            Absence::Unknown(problem) => Some((kind.clone(), problem.clone())),
        });
        let kinds = watched.chain(unknown);
        kinds.filter(|(kind, _)| !self.declares(kind)).collect()
    }

    /// Returns the number of records held for this operator; shared records count for the operator that read them first.
    pub(crate) fn held(&self) -> MemoryUse {
        let own = std::iter::once(&self.crs).chain(&self.marked);
        let own: MemoryUse = own.map(|watch| watch.store().held()).sum();
        let children: MemoryUse = self.kinds.iter().map(|kind| kind.store().held()).sum();
        own + children + self.sources.held()
    }
}

/// True if the watch lacks a permission.
fn is_forbidden(state: &WatchState) -> bool {
    let WatchState::Failing { problem, .. } = state else {
        return false;
    };
    matches!(problem, WatchProblem::Forbidden { .. })
}

/// True if a watch in that state has completed its initial list, even if it failed later.
fn is_settled(state: &WatchState) -> bool {
    match state {
        WatchState::Synced => true,
        WatchState::Starting => false,
        WatchState::Failing {
            problem,
            was_synced,
        } => *was_synced || *problem == WatchProblem::NotServed,
    }
}
