//! Releases the kinds that a Katalog operated and no longer wants, kind by kind.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_cluster::requests::Cluster;
use orkestra_ground::{
    Entropy,
    tasks::{self, Task},
};
use orkestra_language::{api::OperatedKind, reasons::KatalogReason};
use orkestra_plan::GroupKind;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Duration, Instant},
};

use super::{
    super::{
        calls::RequestError, release::ReleaseError, release::ReleaseProgress, release::Released,
        release::release_kind, status::Releasing, supervisor::HoldOutcome, supervisor::Supervisor,
    },
    KatalogController,
    operated::OperatedKinds,
    retry_at,
    stored::kinds_stored,
};

use crate::release::group_kind;
use orkestra_operator::events::Severity;

/// How often the progress of a release is checked.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);
/// How long the annotation that lets a Katalog go waits for releases that run, and for those that cannot start yet.
const GRACE: Duration = Duration::from_secs(10);

/// The result of the release of a kind.
type KindResult = (OperatedKind, Result<Released, ReleaseError>);

/// The end of a task that releases a kind.
pub(crate) type EndedRelease = Result<KindResult, JoinError>;

/// The releases of a Katalog: those that run, and those that wait.
#[derive(Debug, Default)]
pub(crate) struct KindReleases {
    kinds: BTreeMap<OperatedKind, Release>,
    tasks: JoinSet<KindResult>,
    /// When every kind is abandoned, released or not, as the annotation requests.
    abandons_at: Option<Instant>,
}

/// The progress of the release of a kind.
#[derive(Debug, Default)]
struct Release {
    under_way: bool,
    failures: u32,
    problem: Option<String>,
    retry_at: Option<Instant>,
    progress: ReleaseProgress,
}

impl Release {
    /// A release that failed that many times in a row, and is retried then.
    fn failed(failures: u32, problem: String, retry_at: Instant) -> Self {
        Self {
            under_way: false,
            failures,
            problem: Some(problem),
            retry_at: Some(retry_at),
            progress: ReleaseProgress::default(),
        }
    }

    /// Returns when it is retried, or its progress is reported.
    fn due(&self) -> Option<Instant> {
        if self.under_way {
            Some(Instant::now() + PROGRESS_PERIOD)
        } else {
            self.retry_at
        }
    }
}

impl KindReleases {
    /// True if no release runs.
    pub(crate) fn are_over(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the end of a release; none if no release runs.
    pub(crate) async fn next_ended(&mut self) -> Option<EndedRelease> {
        self.tasks.join_next().await
    }

    /// Returns when the next release is retried, or the progress of one is reported.
    fn next_due(&self) -> Option<Instant> {
        self.kinds.values().filter_map(Release::due).min()
    }

    /// Returns the state of each release.
    pub(crate) fn states(&self) -> BTreeMap<OperatedKind, Releasing> {
        let states = self.kinds.iter().map(|(kind, release)| {
            let problem = release.problem.clone();
            let left = release.progress.left().filter(|_| release.under_way);
            (kind.clone(), Releasing { problem, left })
        });
        states.collect()
    }

    /// Makes releases that failed start again at once.
    pub(crate) fn retry_now(&mut self) {
        for release in self.kinds.values_mut() {
            release.retry_at = None;
        }
    }

    /// Drops the releases that do not run.
    pub(crate) fn drop_waiting(&mut self) {
        self.kinds.retain(|_, release| release.under_way);
    }

    /// Drops the release of a kind that is wanted again, unless it runs.
    pub(crate) fn drop_waiting_for(&mut self, kind: &GroupKind) {
        self.kinds
            .retain(|other, release| release.under_way || group_kind(other) != *kind);
    }

    /// Notes that the annotation does not request the end of the releases.
    pub(crate) fn keep(&mut self) {
        self.abandons_at = None;
    }

    /// Starts the release of a kind of the Katalog with this uid, unless it runs, waits for its retry or lacks the claim;
    /// returns the name of the Katalog that takes the kind over instead.
    fn start(
        &mut self,
        kind: &OperatedKind,
        uid: &str,
        supervisor: &Arc<Supervisor>,
        cluster: &Cluster,
    ) -> Option<String> {
        let release = self.kinds.entry(kind.clone()).or_default();
        if release.under_way || release.retry_at.is_some_and(|at| at > Instant::now()) {
            return None;
        }
        match supervisor.hold(&group_kind(kind), uid) {
            HoldOutcome::Busy => {}
            HoldOutcome::Unclaimed(why) => release.problem = why,
            HoldOutcome::Claimed(successor) => return Some(successor),
            HoldOutcome::Held(held) => {
                release.under_way = true;
                release.progress = ReleaseProgress::default();
                let progress = release.progress.clone();
                let (kind, cluster) = (kind.clone(), cluster.clone());
                let named = tasks::named(Task::Release, group_kind(&kind));
                named.start_in(&mut self.tasks, async move {
                    let result = release_kind(&cluster, &kind, &progress).await;
                    drop(held);
                    (kind, result)
                });
            }
        }
        None
    }

    /// Notes the failure of a release, which is retried later.
    fn fail(&mut self, kind: OperatedKind, error: &ReleaseError, entropy: &Entropy) {
        let failures = self.kinds.get(&kind).map_or(0, |release| release.failures) + 1;
        let retry_at = retry_at(failures, entropy);
        let release = Release::failed(failures, error.to_string(), retry_at);
        self.kinds.insert(kind, release);
    }

    /// Notes that a task panicked: as it is unknown which one, all that run count as failed.
    fn fail_all(&mut self, entropy: &Entropy) {
        let retry_at = retry_at(1, entropy);
        for release in self.kinds.values_mut() {
            if release.under_way {
                *release = Release::failed(1, "internal error".to_owned(), retry_at);
            }
        }
    }

    /// Drops a release that ended.
    fn drop_ended(&mut self, ended: &EndedRelease) {
        match ended {
            Ok((kind, _)) => self.forget(kind),
            Err(_) => self.kinds.clear(),
        }
    }

    fn forget(&mut self, kind: &OperatedKind) {
        self.kinds.remove(kind);
    }

    /// Returns the kinds to abandon now, with the reasons: those that cannot be released, and once [`GRACE`] has passed, all of
    /// them; and when that is. `error` says why none can be released.
    fn abandoned(
        &mut self,
        operated: &OperatedKinds,
        error: Option<&str>,
    ) -> (Vec<(OperatedKind, String)>, Instant) {
        let until = Instant::now() + GRACE;
        let until = *self.abandons_at.get_or_insert(until);
        let is_due = until <= Instant::now();
        let mut abandoned = Vec::new();
        for (_, kind) in operated.iter() {
            let release = self.kinds.get(kind);
            let problem = release.and_then(|release| release.problem.clone());
            let problem = problem.or_else(|| error.map(str::to_owned));
            let may_end = problem.is_none() || release.is_some_and(|release| release.under_way);
            if may_end && !is_due {
                continue;
            }
            let late = || format!("the release did not end within {} s", GRACE.as_secs());
            abandoned.push((kind.clone(), problem.unwrap_or_else(late)));
        }
        if is_due {
            self.tasks.abort_all();
        }
        (abandoned, until)
    }
}

impl KatalogController {
    /// True if there is proof beside the status, which other clients may write, that this Katalog operated the kind: the
    /// claim, or an accepted revision of its own.
    pub(crate) fn is_proven(&self, kind: &GroupKind) -> bool {
        self.operated.is_declared(kind) || self.shared.supervisor.is_held_for(kind, &self.uid)
    }

    /// Drops kinds that the status calls operated without any other proof: another Katalog releases them.
    pub(crate) async fn weigh_leftovers(&mut self) -> Result<(), RequestError> {
        let wanted = self.wanted_kinds();
        let unproven = |katalog: &Self| {
            let kinds = katalog.operated.names();
            let left = kinds.filter(|kind| !wanted.contains(*kind) && !katalog.is_proven(kind));
            left.cloned().collect::<Vec<_>>()
        };
        if unproven(self).is_empty() {
            return Ok(());
        }
        for revision in self.revisions.list().await? {
            self.operated.add_declared(kinds_stored(&revision));
        }
        for kind in unproven(self) {
            tracing::warn!(katalog = %self.reference, %kind, "ignoring a kind in the status that this Katalog never operated");
            self.operated.forget(&kind);
        }
        Ok(())
    }

    /// Releases operated kinds that are no longer wanted.
    pub(crate) fn release_leftovers(&mut self) {
        for kind in self.operated.unwanted(&self.wanted_kinds()) {
            let (supervisor, cluster) = (&self.shared.supervisor, &self.shared.context.cluster);
            let successor = self.releases.start(&kind, &self.uid, supervisor, cluster);
            if let Some(successor) = successor {
                tracing::info!(katalog = %self.reference, kind = kind.kind, %successor, "another Katalog takes over the kind");
                self.forget_kind(&kind);
            }
        }
    }

    fn forget_kind(&mut self, kind: &OperatedKind) {
        self.releases.forget(kind);
        self.operated.forget(&group_kind(kind));
    }

    /// Abandons kinds as the annotation requests: at once those that cannot be released, and all others, with their releases,
    /// after [`GRACE`]. `error` says why none can be released. Returns when to continue if kinds are left.
    pub(crate) fn leave_behind(&mut self, error: Option<RequestError>) -> Option<Instant> {
        let error = error.map(|error| error.to_string());
        let (abandoned, until) = self.releases.abandoned(&self.operated, error.as_deref());
        for (kind, why) in abandoned {
            let note = format!(
                "finalizers and labels of Orkestra may remain on {}.{} and their children: {why}",
                kind.plural, kind.group
            );
            tracing::warn!(katalog = %self.reference, kind = kind.kind, why, "kind was not released; the Katalog is deleted anyway");
            self.announce(Severity::Warning, KatalogReason::LeftBehind, note);
            self.forget_kind(&kind);
        }
        (!self.operated.is_empty()).then_some(until)
    }

    /// Records the result of a release.
    pub(crate) fn note_release(&mut self, ended: EndedRelease) {
        if !self.lead.is_leader() {
            // It ended with the lease; the leader continues it.
            self.releases.drop_ended(&ended);
            return;
        }
        let entropy = &self.shared.context.entropy;
        match ended {
            Ok((kind, Ok(released))) => {
                let Released {
                    resources,
                    children,
                } = released;
                tracing::info!(katalog = %self.reference, kind = kind.kind, resources, children, "kind released");
                self.releases.forget(&kind);
                // An entry of the same kind may have been added again meanwhile.
                if !self.wanted_kinds().contains(&group_kind(&kind)) {
                    self.forget_kind(&kind);
                }
            }
            // It was abandoned meanwhile: nothing retries it.
            Ok((kind, Err(_))) if !self.operated.contains(&group_kind(&kind)) => {}
            Err(error) if error.is_cancelled() => {}
            Ok((kind, Err(error))) => {
                tracing::warn!(katalog = %self.reference, kind = kind.kind, error = %error, "cannot release kind");
                self.releases.fail(kind, &error, entropy);
            }
            Err(error) => {
                tracing::error!(katalog = %self.reference, error = %error, "release panicked");
                self.releases.fail_all(entropy);
            }
        }
    }

    /// Returns when the next release is retried, or the progress of one is reported.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        let is_leader = self.lead.is_leader();
        is_leader.then(|| self.releases.next_due()).flatten()
    }
}

#[cfg(test)]
mod tests;
