//! One watch, and the effects of its changes.

use std::sync::{Arc, Weak};

use jiff::Timestamp;
use orkestra_cluster::watch::{Change, Handle, Subscriber, WatchProblem, WatchState, Watched};
use orkestra_core::{
    plan::{
        ObjectKey, OperatorPlan, ResourceType,
        observe::{Changes, EventPlan, KeyPlan},
    },
    reconcile::observe::{self, Lead, Seen},
    value::Path,
};

use super::latest::Latest;
use crate::runtime::{queue::Lane, shared::Shared};

/// One watch, and the effects of its changes.
pub(super) struct Entry {
    shared: Weak<Shared>,
    plan: Arc<OperatorPlan>,
    of: Of,
    kind: ResourceType,
    /// Whether custom resources are namespaced.
    namespaced: bool,
    pub(super) watch: Handle<Seen>,
    pub(super) latest: Latest,
}

/// The plan entry of a watch, by its index.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Watch(usize),
    Events(usize),
}

impl Entry {
    pub(super) fn start(
        shared: &Arc<Shared>,
        plan: &Arc<OperatorPlan>,
        (of, kind, namespaced): (Of, ResourceType, bool),
        watched: Watched,
        paths: &[Path],
    ) -> Arc<Self> {
        let entry = Arc::new_cyclic(|entry: &Weak<Self>| {
            let entry = entry.clone();
            // Changes before the entry exists are found in the store.
            let told: Subscriber<Seen> = Arc::new(move |change| {
                if let Some(entry) = entry.upgrade() {
                    entry.told(change);
                }
            });
            Self {
                shared: Arc::downgrade(shared),
                plan: plan.clone(),
                of,
                kind,
                namespaced,
                watch: shared
                    .context
                    .informers
                    .observed(watched, paths, Some(told)),
                latest: Latest::default(),
            }
        });
        let now = shared.context.clock.now();
        for key in entry.watch.store().keys() {
            entry.take_in(&key, now);
        }
        entry
    }

    // The index of an entry always refers to its own plan.

    pub(super) fn key(&self) -> &KeyPlan {
        match self.of {
            Of::Watch(index) => &self.plan.observe.watches[index].key,
            Of::Events(index) => &self.plan.observe.events[index].key,
        }
    }

    fn on(&self) -> Changes {
        match self.of {
            Of::Watch(index) => self.plan.observe.watches[index].on,
            Of::Events(index) => self.plan.observe.events[index].on,
        }
    }

    pub(super) fn events(&self) -> Option<&EventPlan> {
        match self.of {
            Of::Watch(_) => None,
            Of::Events(index) => Some(&self.plan.observe.events[index]),
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        match &*self.watch.state().borrow() {
            WatchState::Synced
            | WatchState::Failing {
                was_synced: true, ..
            } => true,
            WatchState::Starting | WatchState::Failing { .. } => false,
        }
    }

    pub(super) fn is_not_served(&self) -> bool {
        matches!(
            &*self.watch.state().borrow(),
            WatchState::Failing {
                problem: WatchProblem::NotServed,
                ..
            }
        )
    }

    fn told(&self, change: &Change<Seen>) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let now = shared.context.clock.now();
        self.take_in(&change.key, now);
        if change.before.is_none() && !self.is_listed() {
            return;
        }
        let happened = observe::happened(change.before.as_deref(), change.after.as_deref());
        if !self.on().meet(happened) {
            return;
        }
        let leads = [&change.before, &change.after].into_iter().flatten();
        let mut leads: Vec<Lead> = leads.filter_map(|seen| self.lead(seen, now)).collect();
        leads.dedup();
        for lead in &leads {
            wake(&shared, lead);
        }
    }

    /// Returns the lead of an object, if the object matches.
    fn lead(&self, seen: &Seen, now: Timestamp) -> Option<Lead> {
        if (self.events()).is_some_and(|events| !events.admits(&seen.view)) {
            return None;
        }
        match observe::lead(self.key(), &self.kind, seen, self.namespaced, now) {
            Ok(lead) => lead,
            Err(error) => {
                tracing::warn!(
                    operator = %self.plan.name, object = %seen.id.key, %error,
                    "cannot determine the custom resource of this object"
                );
                None
            }
        }
    }

    /// True if templates read its objects.
    fn is_read(&self) -> bool {
        match self.of {
            Of::Watch(index) => !self.plan.observe.watches[index].reads.is_empty(),
            Of::Events(index) => !self.plan.observe.events[index].reads.is_empty(),
        }
    }

    /// Records to which custom resource an object belongs now.
    fn take_in(&self, key: &ObjectKey, now: Timestamp) {
        if self.is_read() {
            let store = self.watch.store();
            let lead = || self.lead(&*store.get(key)?, now);
            self.latest.refresh(key, lead);
        }
    }
}

/// Queues the custom resources to which a change leads. Missing ones have a pass when they are created.
fn wake(shared: &Shared, lead: &Lead) {
    // Before a plan is bound, no custom resource has had a pass.
    let Some(bound) = shared.bound.load_full() else {
        return;
    };
    let key = match lead {
        Lead::Uid(uid) => shared.owner(uid),
        Lead::About(kind, key) if bound.served().is(kind) => Some(key.clone()),
        Lead::About(kind, key) => {
            let child = bound.kind(kind).and_then(|kind| kind.store().get(key));
            child.and_then(|child| shared.owner(child.owner()?))
        }
        Lead::Name(None, name) if bound.served().namespaced => {
            let mut all = bound.cr_keys();
            all.retain(|key| key.name == *name);
            for key in all {
                shared.enqueue(key, Lane::Changed);
            }
            None
        }
        Lead::Name(namespace, name) => Some(ObjectKey {
            namespace: namespace.clone(),
            name: name.clone(),
        }),
    };
    if let Some(key) = key.filter(|key| bound.cr(key).is_some()) {
        shared.enqueue(key, Lane::Changed);
    }
}
