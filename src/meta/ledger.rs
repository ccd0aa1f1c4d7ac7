//! Who holds which kind, and what has to be started, changed or stopped for it: pure, no operator in sight.
//!
//! ```text
//!  wanted Katalogs ── decide ──► a decision per entry ── compare with slots ──► effects: Stop, Reconfigure, Start
//!                                                             ▲                      │
//!                                                             └── stopped, hold ─────┘ (the supervisor's reports)
//! ```
//!
//! It is level-triggered: [`Ledger::settle`] compares what is wanted with what is there, however either came about. An
//! entry starts in a kind only when nothing in that kind is stopping or held, so a successor never overlaps its
//! predecessor.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_core::plan::{self, Change, GroupKind, KatalogRef, OperatorPlan, Plan};

use super::claims::{self, Seniority};
use crate::runtime::Role;

/// Which entry of which Katalog.
pub(crate) type SlotKey = (KatalogRef, String);

/// What a Katalog wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its place among Katalogs that claim the same kind.
    pub(crate) seniority: Seniority,
    /// Kinds it claims; at least those of its plan. A Katalog claims before it runs, so that after a restart a younger
    /// one does not start first.
    pub(crate) claims: BTreeSet<GroupKind>,
    /// What it runs; none while its revision is not stored yet, or when it never had a good one.
    pub(crate) plan: Option<Arc<Plan>>,
    /// Which version each of its kinds is stored in, as far as the cluster's CRDs tell.
    pub(crate) storage: BTreeMap<GroupKind, String>,
    /// Whether the plan is stored as a revision, by this process as the leader, so that operators may work.
    pub(crate) stored: bool,
}

impl PartialEq for Wanted {
    /// Plans are equal when they are the same one.
    fn eq(&self, other: &Self) -> bool {
        let Self {
            seniority,
            claims,
            plan,
            storage,
            stored,
        } = self;
        let same_plan = match (plan, &other.plan) {
            (Some(plan), Some(other)) => Arc::ptr_eq(plan, other),
            (plan, other) => plan.is_none() && other.is_none(),
        };
        same_plan
            && *seniority == other.seniority
            && *claims == other.claims
            && *storage == other.storage
            && *stored == other.stored
    }
}

/// What becomes of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It runs, in this role.
    Run(Role),
    /// Another Katalog holds its kind.
    Conflict(KatalogRef),
}

/// What the supervisor has to do, in this order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Stop it, and say [`Ledger::stopped`] when that is done.
    Stop(SlotKey),
    /// Let it follow another plan.
    Reconfigure(SlotKey, Arc<OperatorPlan>),
    /// Start it.
    Start(SlotKey, Arc<OperatorPlan>, Role),
}

/// A running or stopping operator.
#[derive(Debug)]
struct Slot {
    plan: Arc<OperatorPlan>,
    role: Role,
    stopping: bool,
}

impl Slot {
    /// Whether it goes on under that plan in that role.
    fn stays(&self, plan: &OperatorPlan, role: &Role) -> bool {
        *role == self.role && plan.resource.group_kind() == self.plan.resource.group_kind()
    }
}

/// Answer to a wish to release a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// An operator of the kind is still there; ask again when it has stopped.
    Busy,
    /// This Katalog wants the kind: there is nothing to release.
    Claimed(KatalogRef),
    /// Nothing starts in this kind until [`Ledger::unhold`].
    Held,
}

/// What is wanted and what is there.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    wanted: BTreeMap<KatalogRef, Wanted>,
    slots: BTreeMap<SlotKey, Slot>,
    held: BTreeMap<GroupKind, usize>,
    closed: bool,
    /// Operators stop without waiting for those that depend on them.
    hurried: bool,
}

impl Ledger {
    /// Says what a Katalog wants from now on. Entries that would run as before keep their plans, so that their
    /// operators notice nothing.
    pub(crate) fn want(&mut self, katalog: KatalogRef, mut wanted: Wanted) {
        if let (Some(old), Some(new)) = (self.plan(&katalog), &wanted.plan) {
            wanted.plan = Some(keep_unchanged(old, new));
        }
        self.wanted.insert(katalog, wanted);
    }

    /// A Katalog wants nothing any more.
    pub(crate) fn forget(&mut self, katalog: &KatalogRef) {
        self.wanted.remove(katalog);
    }

    /// The plan that a Katalog wants to run.
    pub(crate) fn plan(&self, katalog: &KatalogRef) -> Option<&Arc<Plan>> {
        self.wanted.get(katalog)?.plan.as_ref()
    }

    /// Whether operators of a Katalog may work.
    pub(crate) fn is_stored(&self, katalog: &KatalogRef) -> bool {
        self.wanted.get(katalog).is_some_and(|wanted| wanted.stored)
    }

    /// From now on everything is to stop and nothing starts.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// From now on nothing waits any more for what depends on it to stop first.
    pub(crate) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// An operator has stopped.
    pub(crate) fn stopped(&mut self, key: &SlotKey) {
        self.slots.remove(key);
    }

    /// Whether no operator is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// Entries whose operators have not stopped.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &SlotKey> {
        self.slots.keys()
    }

    /// Asks for a kind to be left alone, to release it.
    pub(crate) fn hold(&mut self, kind: &GroupKind) -> Hold {
        if let Some(holder) = claims::holder(&self.wanted, kind) {
            return Hold::Claimed(holder.clone());
        }
        if self
            .slots
            .values()
            .any(|slot| slot.plan.resource.group_kind() == *kind)
        {
            return Hold::Busy;
        }
        *self.held.entry(kind.clone()).or_default() += 1;
        Hold::Held
    }

    /// Gives a held kind back.
    pub(crate) fn unhold(&mut self, kind: &GroupKind) {
        if let Some(count) = self.held.get_mut(kind) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(kind);
            }
        }
    }

    /// What becomes of each entry that is wanted.
    pub(crate) fn decisions(&self) -> Vec<(Arc<OperatorPlan>, Decision)> {
        let running = self
            .wanted
            .values()
            .filter_map(|wanted| Some((wanted, wanted.plan.as_ref()?)));
        running
            .flat_map(|(wanted, plan)| {
                plan.operators
                    .iter()
                    .map(move |operator| (operator, plan, wanted))
            })
            .map(|(operator, plan, wanted)| {
                (
                    Arc::clone(operator),
                    self.decide(operator, plan, &wanted.storage),
                )
            })
            .collect()
    }

    fn decide(
        &self,
        operator: &OperatorPlan,
        plan: &Plan,
        storage: &BTreeMap<GroupKind, String>,
    ) -> Decision {
        let kind = operator.resource.group_kind();
        match claims::holder(&self.wanted, &kind) {
            Some(holder) if *holder != operator.katalog => Decision::Conflict(holder.clone()),
            _ => Decision::Run(claims::role(
                operator,
                &plan.operators,
                storage.get(&kind).map(String::as_str),
            )),
        }
    }

    /// Compares what is wanted with what is there; the effects are taken as done, but for stops, which last.
    pub(crate) fn settle(&mut self) -> Vec<Effect> {
        let mut runs: BTreeMap<SlotKey, (Arc<OperatorPlan>, Role)> = BTreeMap::new();
        if !self.closed {
            for (plan, decision) in self.decisions() {
                if let Decision::Run(role) = decision {
                    runs.insert((plan.katalog.clone(), plan.name.clone()), (plan, role));
                }
            }
        }
        let mut effects = self.settle_slots(&runs);
        for (key, (plan, role)) in runs {
            if self.slots.contains_key(&key) || self.is_blocked(&plan.resource.group_kind()) {
                continue;
            }
            self.slots.insert(
                key.clone(),
                Slot {
                    plan: Arc::clone(&plan),
                    role: role.clone(),
                    stopping: false,
                },
            );
            effects.push(Effect::Start(key, plan, role));
        }
        effects
    }

    /// Stops and reconfigures what runs. Of operators that are to stop, those that depend on others do so before them.
    fn settle_slots(&mut self, runs: &BTreeMap<SlotKey, (Arc<OperatorPlan>, Role)>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let needed = self.needed_to_stop(runs);
        for (key, slot) in self.slots.iter_mut().filter(|(_, slot)| !slot.stopping) {
            match runs.get(key) {
                Some((plan, role)) if slot.stays(plan, role) => {
                    if !Arc::ptr_eq(plan, &slot.plan) {
                        slot.plan = Arc::clone(plan);
                        effects.push(Effect::Reconfigure(key.clone(), Arc::clone(plan)));
                    }
                }
                _ if needed.contains(key) => {}
                _ => {
                    slot.stopping = true;
                    effects.push(Effect::Stop(key.clone()));
                }
            }
        }
        effects
    }

    /// The operators on which others depend that are to stop, or have not stopped yet.
    fn needed_to_stop(
        &self,
        runs: &BTreeMap<SlotKey, (Arc<OperatorPlan>, Role)>,
    ) -> BTreeSet<SlotKey> {
        if self.hurried {
            return BTreeSet::new();
        }
        let ends = |(key, slot): &(&SlotKey, &Slot)| {
            let run = runs.get(*key);
            !run.is_some_and(|(plan, role)| slot.stays(plan, role))
        };
        let ending = self.slots.iter().filter(ends);
        ending
            .flat_map(|((katalog, _), slot)| {
                let on = slot.plan.depends_on.iter();
                on.map(|dependency| (katalog.clone(), dependency.on.to_string()))
            })
            .collect()
    }

    fn is_blocked(&self, kind: &GroupKind) -> bool {
        self.held.contains_key(kind)
            || self
                .slots
                .values()
                .any(|slot| slot.stopping && slot.plan.resource.group_kind() == *kind)
    }
}

/// `new` with the operators of `old` that run as before.
fn keep_unchanged(old: &Arc<Plan>, new: &Arc<Plan>) -> Arc<Plan> {
    let changes = plan::diff(old, new);
    let touched: BTreeSet<&str> = changes
        .iter()
        .map(|change| match change {
            Change::Stop(name) | Change::Reconfigure { name, .. } => name.as_str(),
            Change::Start(plan) => plan.name.as_str(),
        })
        .collect();
    if touched.is_empty() {
        return Arc::clone(old);
    }
    let kept = |plan: &Arc<OperatorPlan>| {
        let same = old
            .operators
            .iter()
            .find(|before| before.name == plan.name && !touched.contains(plan.name.as_str()));
        Arc::clone(same.unwrap_or(plan))
    };
    Arc::new(Plan {
        katalog: new.katalog.clone(),
        operators: new.operators.iter().map(kept).collect(),
        deletion_policy: new.deletion_policy,
    })
}

#[cfg(test)]
mod tests;
