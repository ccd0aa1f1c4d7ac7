//! One watch, and the effects of its changes.

use std::sync::{Arc, Weak};

use jiff::Timestamp;
use orkestra_cluster::watch::{Change, Handle, Subscriber, WatchProblem, WatchState, Watched};
use orkestra_engine::reconcile::observe::{self, Lead, ObservedRecord};
use orkestra_ground::Clock;
use orkestra_object::value::Path;
use orkestra_plan::{
    ObjectKey, OperatorPlan, ResourceType,
    observe::{Changes, EventPlan, KeyPlan},
};

use super::latest::Latest;
use crate::context::Context;

/// Queues the custom resources to which a change of the object of that key leads.
pub(crate) type Wake = Arc<dyn Fn(&Lead, &ObjectKey) + Send + Sync>;

/// One watch, and the effects of its changes.
pub(crate) struct ObservedWatch {
    wake: Wake,
    clock: Clock,
    plan: Arc<OperatorPlan>,
    of: EntryRef,
    kind: ResourceType,
    /// Whether custom resources are namespaced.
    namespaced: bool,
    pub(crate) watch: Handle<ObservedRecord>,
    pub(crate) latest: Latest,
}

/// The plan entry of a watch, by its index.
#[derive(Clone, Copy)]
pub(crate) enum EntryRef {
    Watch(usize),
    Events(usize),
}

impl ObservedWatch {
    pub(crate) fn start(
        context: &Context,
        wake: &Wake,
        plan: &Arc<OperatorPlan>,
        (of, kind, namespaced): (EntryRef, ResourceType, bool),
        (watched, paths): (Watched, &[Path]),
    ) -> Arc<Self> {
        let entry = Arc::new_cyclic(|entry: &Weak<Self>| {
            let entry = entry.clone();
            // Changes before the entry exists are found in the store.
            let reported: Subscriber<ObservedRecord> = Arc::new(move |change| {
                if let Some(entry) = entry.upgrade() {
                    entry.reported(change);
                }
            });
            Self {
                wake: wake.clone(),
                clock: context.clock.clone(),
                plan: plan.clone(),
                of,
                kind,
                namespaced,
                watch: context.informers.shared(watched, paths, Some(reported)),
                latest: Latest::default(),
            }
        });
        let now = context.clock.now();
        for key in entry.watch.store().keys() {
            entry.take_in(&key, now);
        }
        entry
    }

    // The index of an entry always refers to its own plan.

    pub(crate) fn key(&self) -> &KeyPlan {
        match self.of {
            EntryRef::Watch(index) => &self.plan.observe.watches[index].key,
            EntryRef::Events(index) => &self.plan.observe.events[index].key,
        }
    }

    fn on(&self) -> Changes {
        match self.of {
            EntryRef::Watch(index) => self.plan.observe.watches[index].on,
            EntryRef::Events(index) => self.plan.observe.events[index].on,
        }
    }

    pub(crate) fn events(&self) -> Option<&EventPlan> {
        match self.of {
            EntryRef::Watch(_) => None,
            EntryRef::Events(index) => Some(&self.plan.observe.events[index]),
        }
    }

    pub(crate) fn is_listed(&self) -> bool {
        match &*self.watch.state().borrow() {
            WatchState::Synced
            | WatchState::Failing {
                was_synced: true, ..
            } => true,
            WatchState::Starting | WatchState::Failing { .. } => false,
        }
    }

    pub(crate) fn is_not_served(&self) -> bool {
        matches!(
            &*self.watch.state().borrow(),
            WatchState::Failing {
                problem: WatchProblem::NotServed,
                ..
            }
        )
    }

    fn reported(&self, change: &Change<ObservedRecord>) {
        let now = self.clock.now();
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
            (self.wake)(lead, &change.key);
        }
    }

    /// Returns the lead of an object, if the object matches.
    fn lead(&self, seen: &ObservedRecord, now: Timestamp) -> Option<Lead> {
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
            EntryRef::Watch(index) => !self.plan.observe.watches[index].reads.is_empty(),
            EntryRef::Events(index) => !self.plan.observe.events[index].reads.is_empty(),
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
