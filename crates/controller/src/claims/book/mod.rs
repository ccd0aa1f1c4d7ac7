//! Decides which installation has which kind, and what to write for it: pure.
//!
//! An installation holds a kind while the kind's Lease names it and its own Lease was renewed within [`EXPIRY`]. All other
//! kinds are free. A claim is taken, moved and dropped by compare-and-swap on the kind's Lease.
//!
//! An installation counts as gone when this process has seen its Lease unchanged for [`EXPIRY`], as in leader election: the
//! clocks of two machines are not compared, so a clock that is wrong takes no claim of an installation that runs. Only a Lease
//! that states no time, or one more than [`LONG_GONE`] ago, counts as abandoned at once. Time that this process has not
//! observed, because it slept or its clock was set, does not count. The Lease is read once more before its claims are taken,
//! since the watch may lag or fail. An installation that has not renewed may have lost its claims: it writes a claim again
//! before it relies on it.
//!
//! One file: one state machine, whose transitions rely on each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use orkestra_cluster::requests::RETRY;
use orkestra_language::api::names;
use orkestra_plan::GroupKind;

use super::record::{
    Claim, Claimant, EXPIRY, Heartbeat, LeaseContent, ObjectVersion, RENEWAL, lease_of,
};
use orkestra_operator::OperatorProblem;

/// An installation stops relying on its claims this long before others may take them.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);
/// A Lease that states an earlier renewal than this is abandoned. Far more than clocks of a cluster differ.
const LONG_GONE: SignedDuration = SignedDuration::from_hours(24);
/// The clock is looked at every few seconds; a longer step is time that was not observed.
const UNOBSERVED: SignedDuration = SignedDuration::from_mins(2);

/// The needs of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaimRequest {
    /// The kinds, each with the Katalog that should have it.
    pub(crate) kinds: BTreeMap<GroupKind, Claimant>,
    /// Whether the list is complete: then other claims of the installation are obsolete.
    pub(crate) complete: bool,
}

/// The holder of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// This installation, for that Katalog.
    Ours(Claimant),
    /// Another installation.
    Foreign(Holder),
    /// No installation, and the claim cannot be written.
    Refused(OperatorProblem),
}

/// Another installation that has a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) installation: String,
    pub(crate) claimant: Claimant,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            installation,
            claimant,
        } = self;
        write!(f, "{} of installation {installation}", claimant.katalog)
    }
}

/// The holders of kinds at one moment. A kind without an entry is free, or is not known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standings {
    /// By the names of the kinds' Leases.
    by_lease: BTreeMap<String, ClaimState>,
    /// Whether the claims have been read.
    pub(crate) listed: bool,
}

impl Standings {
    /// Returns the holder of that kind.
    pub(crate) fn of(&self, kind: &GroupKind) -> Option<&ClaimState> {
        self.by_lease.get(&lease_of(kind))
    }

    /// True if this installation has the kind for the Katalog of that uid.
    pub(crate) fn is_held_for(&self, kind: &GroupKind, uid: &str) -> bool {
        matches!(self.of(kind), Some(ClaimState::Ours(claimant)) if claimant.uid == uid)
    }

    #[cfg(test)]
    pub(crate) fn of_test(standings: impl IntoIterator<Item = (GroupKind, ClaimState)>) -> Self {
        let named = |(kind, standing): (GroupKind, ClaimState)| (lease_of(&kind), standing);
        Self {
            by_lease: standings.into_iter().map(named).collect(),
            listed: true,
        }
    }
}

/// A write to a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Renew the installation's own Lease; without a state, create it.
    Renew(Option<ObjectVersion>),
    /// Claim a kind; without a state, create its Lease.
    Claim(String, Claimant, Option<ObjectVersion>),
    /// Claim a kind that another installation claims, if that installation is gone indeed.
    TakeOver(String, Claimant, ObjectVersion, Gone),
    /// Drop the claim on a kind.
    Drop(String, ObjectVersion),
}

/// An installation that counts as gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    /// The name of its Lease.
    pub(crate) lease: String,
    /// Its last known heartbeat; none if it has no Lease.
    pub(crate) last: Option<Heartbeat>,
}

impl Gone {
    /// True if `found`, its Lease as it is now, is not renewed since.
    pub(crate) fn is_confirmed_by(&self, found: Option<&LeaseContent>) -> bool {
        match (found, &self.last) {
            (Some(LeaseContent::Heartbeat(found)), Some(last)) => found.renewed == last.renewed,
            (Some(LeaseContent::Heartbeat(_)), None) => false,
            // It is no Lease of an installation.
            (Some(LeaseContent::Claim(_)) | None, _) => true,
        }
    }
}

/// A heartbeat, and when it was seen first.
#[derive(Debug)]
struct SeenHeartbeat {
    heartbeat: Heartbeat,
    since: Timestamp,
}

impl SeenHeartbeat {
    /// Returns when the installation counts as gone.
    fn expires(&self) -> Timestamp {
        let stated = self.heartbeat.renewed.unwrap_or(Timestamp::MIN);
        if later(stated, LONG_GONE) <= self.since {
            return self.since;
        }
        later(self.since, EXPIRY)
    }
}

/// Why a Lease could not be written, and when to retry.
#[derive(Debug)]
struct LeaseFailure {
    problem: OperatorProblem,
    count: u32,
    retry_at: Timestamp,
}

/// The known claims.
#[derive(Debug)]
pub(crate) struct ClaimTable {
    installation: Arc<str>,
    demand: ClaimRequest,
    claims: BTreeMap<String, Claim>,
    heartbeats: BTreeMap<String, SeenHeartbeat>,
    /// When the clock was last looked at.
    looked_at: Option<Timestamp>,
    /// When this process renewed the installation's Lease, or found it renewed.
    alive_at: Option<Timestamp>,
    /// Our claims that this process relies on.
    confirmed: BTreeSet<String>,
    /// Our claims that others may have taken: they are written again before this process relies on them.
    doubtful: BTreeSet<String>,
    listed: bool,
    /// Why the claims cannot be read.
    blind: Option<OperatorProblem>,
    failures: BTreeMap<String, LeaseFailure>,
}

impl ClaimTable {
    /// Creates the book of an installation that knows nothing yet.
    pub(crate) fn new(installation: Arc<str>) -> Self {
        Self {
            installation,
            demand: ClaimRequest::default(),
            claims: BTreeMap::new(),
            heartbeats: BTreeMap::new(),
            looked_at: None,
            alive_at: None,
            confirmed: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            listed: false,
            blind: None,
            failures: BTreeMap::new(),
        }
    }

    pub(crate) fn installation(&self) -> &str {
        &self.installation
    }

    /// Sets the needs of the installation.
    pub(crate) fn need(&mut self, demand: ClaimRequest) {
        self.demand = demand;
    }

    /// Replaces the known Leases with a complete list.
    pub(crate) fn replace(&mut self, records: Vec<(String, LeaseContent)>, now: Timestamp) {
        let names: BTreeSet<String> = records.iter().map(|(name, _)| name.clone()).collect();
        let lost = |name: &String| !names.contains(name);
        let gone = self.claims.keys().chain(self.heartbeats.keys());
        for name in gone.filter(|name| lost(name)).cloned().collect::<Vec<_>>() {
            self.remove(&name);
        }
        // Heartbeats first: a claim is judged by the heartbeat of its installation.
        let (alive, claims): (Vec<_>, Vec<_>) = records
            .into_iter()
            .partition(|(_, record)| matches!(record, LeaseContent::Heartbeat(_)));
        for (name, record) in alive.into_iter().chain(claims) {
            self.take_in(name, record, now);
        }
        (self.listed, self.blind) = (true, None);
    }

    /// Records a new state of a Lease.
    pub(crate) fn take_in(&mut self, name: String, record: LeaseContent, now: Timestamp) {
        match record {
            LeaseContent::Claim(claim) => {
                let is_new = |known: &Claim| known.state.version != claim.state.version;
                if self.claims.get(&name).is_none_or(is_new) {
                    self.failures.remove(&name);
                }
                if claim.installation != *self.installation {
                    self.confirmed.remove(&name);
                    self.doubtful.remove(&name);
                } else if self.is_alive(now) && !self.doubtful.contains(&name) {
                    // No other installation takes it while this one is known to be alive.
                    self.confirmed.insert(name.clone());
                }
                self.claims.insert(name, claim);
            }
            LeaseContent::Heartbeat(heartbeat) => {
                if heartbeat.installation == *self.installation {
                    self.alive_at = heartbeat.renewed.map(|time| time.min(now));
                }
                let known = self.heartbeats.get(&name);
                let same = known.filter(|seen| seen.heartbeat.renewed == heartbeat.renewed);
                let since = same.map_or(now, |seen| seen.since);
                self.heartbeats
                    .insert(name, SeenHeartbeat { heartbeat, since });
            }
        }
    }

    /// Removes a deleted Lease.
    pub(crate) fn remove(&mut self, name: &str) {
        self.claims.remove(name);
        self.heartbeats.remove(name);
        self.confirmed.remove(name);
        self.doubtful.remove(name);
        self.failures.remove(name);
    }

    /// Records that the claims cannot be read.
    pub(crate) fn go_blind(&mut self, problem: OperatorProblem) {
        self.blind = Some(problem);
    }

    /// Records a refused write.
    pub(crate) fn note_failure(&mut self, name: &str, problem: OperatorProblem, now: Timestamp) {
        let count = self.failures.get(name).map_or(0, |one| one.count);
        let wait = SignedDuration::try_from(RETRY.after(count)).unwrap_or(SignedDuration::MAX);
        let failure = LeaseFailure {
            problem,
            count: count + 1,
            retry_at: later(now, wait),
        };
        self.failures.insert(name.to_owned(), failure);
    }

    /// Records a write of this process.
    pub(crate) fn note_written(&mut self, name: String, record: LeaseContent, now: Timestamp) {
        self.failures.remove(&name);
        let is_ours = matches!(&record, LeaseContent::Claim(claim) if claim.installation == *self.installation);
        if is_ours {
            self.doubtful.remove(&name);
            self.confirmed.insert(name.clone());
        }
        self.take_in(name, record, now);
    }

    /// Checks the clock: an installation that may have lost its claims relies on none until it has written it again, and time
    /// that was not observed says nothing about other installations.
    pub(crate) fn look_at_clock(&mut self, now: Timestamp) {
        let step = self.looked_at.replace(now);
        let step = step.map(|before| now.duration_since(before));
        if step.is_some_and(|step| step.is_negative() || step > UNOBSERVED) {
            for seen in self.heartbeats.values_mut() {
                seen.since = now;
            }
        }
        if !self.is_alive(now) {
            self.confirmed.clear();
            let ours = self.claims.iter();
            let ours = ours.filter(|(_, claim)| claim.installation == *self.installation);
            self.doubtful = ours.map(|(name, _)| name.clone()).collect();
        }
    }

    /// True if the installation itself counts as alive for others, and for some time to come.
    fn is_alive(&self, now: Timestamp) -> bool {
        let limit = EXPIRY - MARGIN;
        (self.alive_at).is_some_and(|at| at <= now && now < later(at, limit))
    }

    /// Returns when another installation counts as gone; none if it has no Lease.
    fn expiry_of(&self, installation: &str) -> Option<Timestamp> {
        let name = names::installation_lease(installation);
        self.heartbeats.get(&name).map(SeenHeartbeat::expires)
    }

    fn is_held_by_other(&self, claim: &Claim, now: Timestamp) -> bool {
        claim.installation != *self.installation
            && self
                .expiry_of(&claim.installation)
                .is_some_and(|expires| now < expires)
    }

    /// Returns the holders of kinds.
    pub(crate) fn standings(&self, now: Timestamp) -> Standings {
        let claimed = self.claims.iter().filter_map(|(name, claim)| {
            let standing = if claim.installation == *self.installation {
                if !self.confirmed.contains(name) || !self.is_alive(now) {
                    return None;
                }
                ClaimState::Ours(claim.claimant.clone())
            } else if self.is_held_by_other(claim, now) {
                ClaimState::Foreign(Holder {
                    installation: claim.installation.clone(),
                    claimant: claim.claimant.clone(),
                })
            } else {
                return None;
            };
            Some((name.clone(), standing))
        });
        let mut by_lease: BTreeMap<_, _> = claimed.collect();
        for kind in self.demand.kinds.keys() {
            let name = lease_of(kind);
            if let Some(problem) = self.problem(&name) {
                by_lease
                    .entry(name)
                    .or_insert_with(|| ClaimState::Refused(problem));
            }
        }
        Standings {
            by_lease,
            listed: self.listed,
        }
    }

    fn problem(&self, name: &str) -> Option<OperatorProblem> {
        let own = names::installation_lease(&self.installation);
        let failure = self.failures.get(name).or_else(|| self.failures.get(&own));
        let unread = self.blind.as_ref().filter(|_| !self.listed);
        failure.map(|failure| &failure.problem).or(unread).cloned()
    }

    /// Returns the writes that are due now. The installation's own Lease comes first, and alone if its claims do not count
    /// without it.
    pub(crate) fn actions(&self, now: Timestamp) -> Vec<Action> {
        if !self.listed {
            return Vec::new();
        }
        let own = names::installation_lease(&self.installation);
        let renewal = self.renewal(&own, now);
        if renewal.is_some() && !self.is_alive(now) {
            return renewal
                .filter(|_| !self.rests(&own, now))
                .into_iter()
                .collect();
        }
        let mut actions = Vec::from_iter(renewal.filter(|_| !self.rests(&own, now)));
        let mut needed = BTreeSet::new();
        for (kind, claimant) in &self.demand.kinds {
            let name = lease_of(kind);
            if needed.insert(name.clone()) && !self.rests(&name, now) {
                actions.extend(self.claim(name, claimant, now));
            }
        }
        if self.demand.complete {
            let left = self.claims.iter().filter(|(name, claim)| {
                claim.installation == *self.installation
                    && !needed.contains(*name)
                    && !self.rests(name, now)
            });
            actions.extend(left.map(|(name, claim)| drop_of(name, claim)));
        }
        actions
    }

    /// Returns the actions that drop this installation's claims and heartbeat at shutdown; none if this process needed no claims.
    pub(crate) fn farewell(&self) -> Vec<Action> {
        if self.demand.kinds.is_empty() {
            return Vec::new();
        }
        let ours = self.claims.iter();
        let ours = ours.filter(|(_, claim)| claim.installation == *self.installation);
        let own = names::installation_lease(&self.installation);
        let alive = self.heartbeats.get(&own);
        let alive = alive.map(|seen| Action::Drop(own, seen.heartbeat.state.clone()));
        let claims = ours.map(|(name, claim)| drop_of(name, claim));
        claims.chain(alive).collect()
    }

    fn renewal(&self, own: &str, now: Timestamp) -> Option<Action> {
        let is_used = !self.demand.kinds.is_empty()
            || (self.claims.values()).any(|claim| claim.installation == *self.installation);
        let known = self.heartbeats.get(own);
        let is_due = known.is_none() || self.renewal_at() <= now || !self.is_alive(now);
        (is_used && is_due).then(|| Action::Renew(known.map(|seen| seen.heartbeat.state.clone())))
    }

    fn renewal_at(&self) -> Timestamp {
        self.alive_at
            .map_or(Timestamp::MIN, |at| later(at, RENEWAL))
    }

    fn claim(&self, name: String, claimant: &Claimant, now: Timestamp) -> Option<Action> {
        let claimant = claimant.clone();
        let Some(claim) = self.claims.get(&name) else {
            return Some(Action::Claim(name, claimant, None));
        };
        if self.is_held_by_other(claim, now) {
            return None;
        }
        let over = claim.state.clone();
        if claim.installation == *self.installation {
            let is_done = claim.claimant == claimant && self.confirmed.contains(&name);
            return (!is_done).then_some(Action::Claim(name, claimant, Some(over)));
        }
        let lease = names::installation_lease(&claim.installation);
        let last = self.heartbeats.get(&lease);
        let last = last.map(|seen| seen.heartbeat.clone());
        Some(Action::TakeOver(name, claimant, over, Gone { lease, last }))
    }

    fn rests(&self, name: &str, now: Timestamp) -> bool {
        self.failures
            .get(name)
            .is_some_and(|failure| now < failure.retry_at)
    }

    /// Returns when the clock alone makes something due.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let retries = self.failures.values().map(|failure| failure.retry_at);
        let used = !self.demand.kinds.is_empty();
        let renewal = used.then(|| self.renewal_at());
        let needed: BTreeSet<String> = self.demand.kinds.keys().map(lease_of).collect();
        let foreign = self.claims.iter().filter(|(name, claim)| {
            claim.installation != *self.installation && needed.contains(*name)
        });
        let expiries = foreign.filter_map(|(_, claim)| self.expiry_of(&claim.installation));
        let times = retries.chain(renewal).chain(expiries);
        times.filter(|at| *at > now).min()
    }
}

fn drop_of(name: &str, claim: &Claim) -> Action {
    Action::Drop(name.to_owned(), claim.state.clone())
}

/// Returns `time` plus `span`; the end of time on overflow.
fn later(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
