//! Decides which Katalog holds which kind, and which operators to start, change or stop: pure, without operators.
//!
//! ```text
//!  wanted Katalogs ── decide ──► a decision per entry ── compare with slots ──► effects: Stop, Reconfigure, Start
//!                                                             ▲                      │
//!                                                             └── stopped, hold ─────┘ (the supervisor's reports)
//! ```
//!
//! It is level-triggered: [`Ledger::settle`] compares the wanted state with the actual one, however either came about. An
//! entry starts in a kind only when nothing in that kind is stopping or held, so a successor never overlaps its predecessor.
//!
//! One file: one state machine, whose transitions rely on each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_plan::{self, GroupKind, KatalogRef, OperatorPlan, Plan, PlanChange, Revised};

use super::{
    claims::{self, ClaimState, Claimant, Holder, Seniority, Standings},
    directory::InForce,
};
use orkestra_operator::{OperatorProblem, Role};

/// A Katalog, and one of its entries.
pub(crate) type SlotKey = (KatalogRef, String);

/// The wanted state of a Katalog.
#[derive(Clone, Debug)]
pub(crate) struct WantedKatalog {
    /// The Katalog's uid; for one from a file, its namespace and name.
    pub(crate) uid: String,
    /// Its rank among Katalogs that claim the same kind.
    pub(crate) seniority: Seniority,
    /// Kinds it claims; at least those of its plan. A Katalog claims before it runs, so that after a restart a younger one
    /// does not start first.
    pub(crate) claims: BTreeSet<GroupKind>,
    /// The plan to run; none while its revision is not stored yet, or if it never had a good one.
    pub(crate) plan: Option<Arc<Plan>>,
    /// The name of the revision that declares the plan.
    pub(crate) revision: Arc<str>,
    /// The storage version of each of its kinds, as far as the cluster's CRDs are known.
    pub(crate) storage: BTreeMap<GroupKind, String>,
    /// Whether this process, as the leader, has stored the plan as a revision, so that operators may work.
    pub(crate) stored: bool,
    /// Kinds that are recorded as operated: operators work on no kind before, so that a later process knows what to release.
    pub(crate) recorded: BTreeSet<GroupKind>,
    /// Kinds that its status names as operated.
    pub(crate) operated: BTreeSet<GroupKind>,
    /// Kinds that it no longer wants and has not released: their claims stay.
    pub(crate) leftovers: BTreeSet<GroupKind>,
    /// Whether its operators process deletions only, and those of kinds that it does not claim are not started.
    pub(crate) suspended: bool,
}

impl PartialEq for WantedKatalog {
    /// Plans are equal if they are the same object.
    fn eq(&self, other: &Self) -> bool {
        let Self {
            uid,
            seniority,
            claims,
            plan,
            revision,
            storage,
            stored,
            recorded,
            operated,
            leftovers,
            suspended,
        } = self;
        let same_plan = match (plan, &other.plan) {
            (Some(plan), Some(other)) => Arc::ptr_eq(plan, other),
            (plan, other) => plan.is_none() && other.is_none(),
        };
        same_plan
            && *revision == other.revision
            && (uid, seniority, claims) == (&other.uid, &other.seniority, &other.claims)
            && (storage, stored) == (&other.storage, &other.stored)
            && (recorded, operated) == (&other.recorded, &other.operated)
            && *leftovers == other.leftovers
            && *suspended == other.suspended
    }
}

/// The decision on one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It runs, in this role.
    Run(Role),
    /// Another Katalog holds its kind.
    Conflict(KatalogRef),
    /// Another installation holds its kind.
    Foreign(Holder),
    /// Its kind cannot be claimed.
    Unclaimed(OperatorProblem),
    /// Its Katalog is suspended, and never operated the kind.
    Suspended,
}

/// An action for the supervisor, in this order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Stop the operator, then call [`Ledger::stopped`].
    Stop(SlotKey),
    /// Switch it to another plan, or to the same one under another revision.
    Reconfigure(SlotKey, Revised),
    /// Start the operator.
    Start(SlotKey, Revised, Role),
}

/// A running or stopping operator.
#[derive(Debug)]
struct Slot {
    wanted: Revised,
    role: Role,
    stopping: bool,
}

impl Slot {
    /// True if it continues under that plan in that role.
    fn stays(&self, plan: &OperatorPlan, role: &Role) -> bool {
        *role == self.role && plan.resource.group_kind() == self.kind()
    }

    fn kind(&self) -> GroupKind {
        self.wanted.plan.resource.group_kind()
    }
}

/// The answer to a request to release a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseHold {
    /// An operator of the kind still exists; ask again when it has stopped.
    Busy,
    /// The named other Katalog has the kind: there is nothing to release.
    Claimed(String),
    /// The kind is not claimed, with the reason if there is one; ask again when that changes.
    Unclaimed(Option<String>),
    /// Nothing starts in this kind until [`Ledger::unhold`].
    Held,
}

/// The wanted and the actual state.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    wanted: BTreeMap<KatalogRef, WantedKatalog>,
    slots: BTreeMap<SlotKey, Slot>,
    held: BTreeMap<GroupKind, usize>,
    /// The holders of kinds, as the cluster shows them.
    standings: Arc<Standings>,
    closed: bool,
    /// Operators stop without waiting for those that depend on them.
    hurried: bool,
    /// Whether the process runs no operators and claims nothing, and only needs to know what is in force.
    observes: bool,
}

impl Ledger {
    /// Creates the ledger of a process that runs no operators and claims nothing.
    pub(crate) fn observing() -> Self {
        Self {
            observes: true,
            ..Self::default()
        }
    }

    /// True if the process runs no operators and claims nothing.
    pub(crate) fn observes(&self) -> bool {
        self.observes
    }

    /// Sets the wanted state of a Katalog. Unchanged entries keep their plans, so that their operators are not affected.
    pub(crate) fn want(&mut self, katalog: KatalogRef, mut wanted: WantedKatalog) {
        if let (Some(old), Some(new)) = (self.plan(&katalog), &wanted.plan) {
            wanted.plan = Some(keep_unchanged(old, new));
        }
        self.wanted.insert(katalog, wanted);
    }

    /// Removes a Katalog.
    pub(crate) fn forget(&mut self, katalog: &KatalogRef) {
        self.wanted.remove(katalog);
    }

    /// Removes everything that a Katalog wants except the claims on kinds it has to release.
    pub(crate) fn release(&mut self, katalog: &KatalogRef, leftovers: BTreeSet<GroupKind>) {
        if let Some(wanted) = self.wanted.get_mut(katalog) {
            (wanted.plan, wanted.claims) = (None, BTreeSet::new());
            wanted.leftovers.extend(leftovers);
        }
        self.forget_idle(katalog);
    }

    /// Records that a Katalog has released that kind.
    pub(crate) fn released(&mut self, katalog: &KatalogRef, kind: &GroupKind) {
        if let Some(wanted) = self.wanted.get_mut(katalog) {
            wanted.leftovers.remove(kind);
        }
        self.forget_idle(katalog);
    }

    fn forget_idle(&mut self, katalog: &KatalogRef) {
        let idle = |wanted: &WantedKatalog| {
            wanted.plan.is_none() && wanted.claims.is_empty() && wanted.leftovers.is_empty()
        };
        if self.wanted.get(katalog).is_some_and(idle) {
            self.wanted.remove(katalog);
        }
    }

    /// Returns the kinds that a Katalog has to release.
    pub(crate) fn leftovers(&self, katalog: &KatalogRef) -> BTreeSet<GroupKind> {
        let wanted = self.wanted.get(katalog);
        wanted
            .map(|wanted| wanted.leftovers.clone())
            .unwrap_or_default()
    }

    /// Returns the plan that a Katalog wants to run.
    pub(crate) fn plan(&self, katalog: &KatalogRef) -> Option<&Arc<Plan>> {
        self.wanted.get(katalog)?.plan.as_ref()
    }

    /// Sets the holders of kinds.
    pub(crate) fn stand(&mut self, standings: Arc<Standings>) {
        self.standings = standings;
    }

    /// True if a Katalog's operator of that kind may work: its plan is stored, and the kind is recorded as operated, and
    /// claimed.
    pub(crate) fn may_work(&self, katalog: &KatalogRef, kind: &GroupKind) -> bool {
        self.wanted.get(katalog).is_some_and(|wanted| {
            wanted.stored
                && wanted.recorded.contains(kind)
                && self.standings.is_held_for(kind, &wanted.uid)
        })
    }

    /// True if a Katalog is suspended.
    pub(crate) fn is_suspended(&self, katalog: &KatalogRef) -> bool {
        let wanted = self.wanted.get(katalog);
        wanted.is_some_and(|wanted| wanted.suspended)
    }

    /// Returns the kind of a running or stopping operator.
    pub(crate) fn kind_of(&self, key: &SlotKey) -> Option<GroupKind> {
        self.slots.get(key).map(Slot::kind)
    }

    /// Returns the kinds that the Katalog holds, according to this process and the cluster.
    pub(crate) fn held_by(&self, katalog: &KatalogRef) -> BTreeSet<GroupKind> {
        let Some(wanted) = self.wanted.get(katalog) else {
            return BTreeSet::new();
        };
        let kinds = wanted.claims.iter().filter(|kind| {
            self.standings.is_held_for(kind, &wanted.uid)
                && holder(&self.wanted, kind) == Some(katalog)
        });
        kinds.cloned().collect()
    }

    /// Returns the kinds to claim, each for the Katalog that has it or releases it, or whose operator has not stopped yet.
    pub(crate) fn demand(&self) -> BTreeMap<GroupKind, Claimant> {
        let claimant = |katalog: &KatalogRef, wanted: &WantedKatalog| Claimant {
            katalog: katalog.clone(),
            uid: wanted.uid.clone(),
        };
        let mut kinds = BTreeMap::new();
        for (katalog, wanted) in &self.wanted {
            for kind in &wanted.claims {
                if holder(&self.wanted, kind) == Some(katalog) {
                    kinds.insert(kind.clone(), claimant(katalog, wanted));
                }
            }
        }
        for (katalog, wanted) in &self.wanted {
            for kind in &wanted.leftovers {
                let left = || claimant(katalog, wanted);
                kinds.entry(kind.clone()).or_insert_with(left);
            }
        }
        // A Katalog can be deleted before its operators have stopped, and another installation must not overlap them.
        for kind in self.slots.values().map(Slot::kind) {
            if let Some(ClaimState::Ours(claimant)) = self.standings.of(&kind) {
                kinds.entry(kind).or_insert_with(|| claimant.clone());
            }
        }
        kinds
    }

    /// Stops everything; nothing starts from now on.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Lets operators stop without waiting for those that depend on them.
    pub(crate) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Records that an operator has stopped.
    pub(crate) fn stopped(&mut self, key: &SlotKey) {
        self.slots.remove(key);
    }

    /// True if no operator is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the role of an existing operator.
    pub(crate) fn role(&self, key: &SlotKey) -> Option<Role> {
        self.slots.get(key).map(|slot| slot.role.clone())
    }

    /// Returns the entries whose operators have not stopped.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &SlotKey> {
        self.slots.keys()
    }

    /// Requests that no operator runs for a kind, so that the Katalog of that uid can release it.
    pub(crate) fn hold(&mut self, kind: &GroupKind, uid: &str) -> ReleaseHold {
        if let Some(holder) = holder(&self.wanted, kind) {
            return ReleaseHold::Claimed(holder.to_string());
        }
        if self.slots.values().any(|slot| slot.kind() == *kind) {
            return ReleaseHold::Busy;
        }
        match self.standings.of(kind) {
            Some(ClaimState::Ours(claimant)) if claimant.uid == uid => {}
            Some(ClaimState::Foreign(holder)) => return ReleaseHold::Claimed(holder.to_string()),
            Some(ClaimState::Refused(problem)) => {
                return ReleaseHold::Unclaimed(Some(problem.message.clone()));
            }
            Some(ClaimState::Ours(_)) | None => return ReleaseHold::Unclaimed(None),
        }
        *self.held.entry(kind.clone()).or_default() += 1;
        ReleaseHold::Held
    }

    /// Ends a hold of a kind.
    pub(crate) fn unhold(&mut self, kind: &GroupKind) {
        if let Some(count) = self.held.get_mut(kind) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(kind);
            }
        }
    }

    /// Returns the decision on each wanted entry.
    pub(crate) fn decisions(&self) -> Vec<(Revised, Decision)> {
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
                let revised = Revised {
                    plan: Arc::clone(operator),
                    revision: Arc::clone(&wanted.revision),
                };
                (revised, self.decide(operator, plan, wanted))
            })
            .collect()
    }

    /// Returns whether the declarations of a Katalog about a kind are in force: the claim in the cluster decides, for operators,
    /// policies, webhooks, conversions and pages alike. A suspended Katalog keeps the kinds that it operates. An unknown claim
    /// decides nothing.
    pub(crate) fn in_force(&self, katalog: &KatalogRef, kind: &GroupKind) -> InForce {
        let Some(wanted) = self.wanted.get(katalog) else {
            return InForce::No;
        };
        if !wanted.claims.contains(kind) {
            return InForce::No;
        }
        let decided = |holds: bool| if holds { InForce::Yes } else { InForce::No };
        let is_of = |claimant: &Claimant| decided(claimant.uid == wanted.uid);
        match self.standings.of(kind) {
            Some(ClaimState::Ours(claimant)) => is_of(claimant),
            Some(ClaimState::Foreign(holder)) if self.observes => is_of(&holder.claimant),
            Some(ClaimState::Foreign(_)) => InForce::No,
            // No controller claims it, so the order in which Katalogs claim kinds decides.
            None if self.observes && self.standings.listed => {
                decided(holder(&self.wanted, kind) == Some(katalog))
            }
            Some(ClaimState::Refused(_)) | None => InForce::Undecided,
        }
    }

    fn decide(&self, operator: &OperatorPlan, plan: &Plan, wanted: &WantedKatalog) -> Decision {
        let kind = operator.resource.group_kind();
        if wanted.suspended && !wanted.claims.contains(&kind) {
            return Decision::Suspended;
        }
        match holder(&self.wanted, &kind) {
            Some(holder) if *holder != operator.katalog => {
                return Decision::Conflict(holder.clone());
            }
            _ => {}
        }
        match self.standings.of(&kind) {
            Some(ClaimState::Foreign(holder)) if !self.observes => {
                Decision::Foreign(holder.clone())
            }
            Some(ClaimState::Refused(problem)) => Decision::Unclaimed(problem.clone()),
            Some(ClaimState::Ours(_) | ClaimState::Foreign(_)) | None => {
                Decision::Run(claims::role(
                    operator,
                    &plan.operators,
                    wanted.storage.get(&kind).map(String::as_str),
                ))
            }
        }
    }

    /// Compares the wanted state with the actual one; the returned effects count as done, except stops, which take time.
    pub(crate) fn settle(&mut self) -> Vec<Effect> {
        let mut runs: BTreeMap<SlotKey, (Revised, Role)> = BTreeMap::new();
        if !self.closed && !self.observes {
            for (wanted, decision) in self.decisions() {
                if let Decision::Run(role) = decision {
                    let key = (wanted.plan.katalog.clone(), wanted.plan.name.clone());
                    runs.insert(key, (wanted, role));
                }
            }
        }
        let mut effects = self.settle_slots(&runs);
        for (key, (wanted, role)) in runs {
            let kind = wanted.plan.resource.group_kind();
            if self.slots.contains_key(&key) || self.is_blocked(&kind) {
                continue;
            }
            self.slots.insert(
                key.clone(),
                Slot {
                    wanted: wanted.clone(),
                    role: role.clone(),
                    stopping: false,
                },
            );
            effects.push(Effect::Start(key, wanted, role));
        }
        effects
    }

    /// Stops and reconfigures running operators. An operator stops after those that depend on it.
    fn settle_slots(&mut self, runs: &BTreeMap<SlotKey, (Revised, Role)>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let needed = self.needed_to_stop(runs);
        for (key, slot) in self.slots.iter_mut().filter(|(_, slot)| !slot.stopping) {
            match runs.get(key) {
                Some((wanted, role)) if slot.stays(&wanted.plan, role) => {
                    if *wanted != slot.wanted {
                        slot.wanted = wanted.clone();
                        effects.push(Effect::Reconfigure(key.clone(), wanted.clone()));
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

    /// Returns the operators on which others depend that should stop, or have not stopped yet.
    fn needed_to_stop(&self, runs: &BTreeMap<SlotKey, (Revised, Role)>) -> BTreeSet<SlotKey> {
        if self.hurried {
            return BTreeSet::new();
        }
        let ends = |(key, slot): &(&SlotKey, &Slot)| {
            let run = runs.get(*key);
            !run.is_some_and(|(wanted, role)| slot.stays(&wanted.plan, role))
        };
        let stopping = self.slots.iter().filter(ends);
        stopping
            .flat_map(|((katalog, _), slot)| {
                let on = slot.wanted.plan.depends_on.iter();
                on.map(|dependency| (katalog.clone(), dependency.on.to_string()))
            })
            .collect()
    }

    fn is_blocked(&self, kind: &GroupKind) -> bool {
        self.held.contains_key(kind)
            || self
                .slots
                .values()
                .any(|slot| slot.stopping && slot.kind() == *kind)
    }
}

/// Returns `new` with the unchanged operators of `old`.
fn keep_unchanged(old: &Arc<Plan>, new: &Arc<Plan>) -> Arc<Plan> {
    let changes = orkestra_plan::diff(old, new);
    let touched: BTreeSet<&str> = changes
        .iter()
        .map(|change| match change {
            PlanChange::Stop(name) | PlanChange::Reconfigure { name, .. } => name.as_str(),
            PlanChange::Start(plan) => plan.name.as_str(),
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
        stopped: new.stopped.clone(),
        deletion_policy: new.deletion_policy,
        security: new.security.clone(),
        conversions: new.conversions.clone(),
        definitions: new.definitions.clone(),
    })
}

/// Returns the Katalog that has `kind`: the senior one among those that claim it. Of Katalogs of the same second, one that
/// operates the kind keeps it; otherwise the order is that of their uids.
pub(crate) fn holder<'a>(
    wanted: &'a BTreeMap<KatalogRef, WantedKatalog>,
    kind: &GroupKind,
) -> Option<&'a KatalogRef> {
    let claimants = wanted
        .iter()
        .filter(|(_, wanted)| wanted.claims.contains(kind));
    claimants
        .min_by_key(|(katalog, wanted)| {
            let operates = wanted.operated.contains(kind);
            (&wanted.seniority, !operates, &wanted.uid, *katalog)
        })
        .map(|(katalog, _)| katalog)
}

#[cfg(test)]
mod tests;
