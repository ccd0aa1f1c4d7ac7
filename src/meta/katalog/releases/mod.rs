//! Releases the kinds that a Katalog operated and no longer wants, kind by kind.

use orkestra_core::{api::OperatedKind, plan::GroupKind, reasons::KatalogReason};
use orkestra_ground::tasks::{self, Task};
use tokio::{
    task::JoinError,
    time::{Duration, Instant},
};

use super::{
    super::{
        calls::RequestError, release::ReleaseError, release::ReleaseProgress, release::Released,
        release::release_kind, supervisor::HoldOutcome,
    },
    KatalogController, Release,
    stored::kinds_stored,
};

use crate::{events::Severity, meta::release::group_kind};

/// How often the progress of a release is checked.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);
/// How long the annotation that lets a Katalog go waits for releases that run, and for those that cannot start yet.
const GRACE: Duration = Duration::from_secs(10);

impl Release {
    /// A release that failed that many times, and is retried then.
    fn failed(failures: u32, problem: String, retry_at: Option<Instant>) -> Self {
        Self {
            under_way: false,
            failures,
            problem: Some(problem),
            retry_at,
            progress: ReleaseProgress::default(),
        }
    }
}

impl KatalogController {
    /// True if there is proof beside the status, which other clients may write, that this Katalog operated the kind: the
    /// claim, or an accepted revision of its own.
    pub(super) fn is_proven(&self, kind: &GroupKind) -> bool {
        self.declared.contains(kind) || self.shared.supervisor.is_held_for(kind, &self.uid)
    }

    /// Drops kinds that the status calls operated without any other proof: another Katalog releases them.
    pub(super) async fn weigh_leftovers(&mut self) -> Result<(), RequestError> {
        let wanted = self.wanted_kinds();
        let unproven = |katalog: &Self| {
            let kinds = katalog.operated.keys();
            let left = kinds.filter(|kind| !wanted.contains(*kind) && !katalog.is_proven(kind));
            left.cloned().collect::<Vec<_>>()
        };
        if unproven(self).is_empty() {
            return Ok(());
        }
        for revision in self.revisions.list().await? {
            self.declared.extend(kinds_stored(&revision));
        }
        for kind in unproven(self) {
            tracing::warn!(katalog = %self.reference, %kind, "ignoring a kind in the status that this Katalog never operated");
            self.operated.remove(&kind);
            self.recorded.remove(&kind);
        }
        Ok(())
    }

    /// Releases operated kinds that are no longer wanted.
    pub(super) fn release_leftovers(&mut self) {
        let wanted = self.wanted_kinds();
        let stale: Vec<_> = self
            .operated
            .iter()
            .filter(|(kind, _)| !wanted.contains(*kind))
            .map(|(_, kind)| kind.clone())
            .collect();
        for kind in stale {
            let release = self.releasing.entry(kind.clone()).or_default();
            if release.under_way || release.retry_at.is_some_and(|at| at > Instant::now()) {
                continue;
            }
            match self.shared.supervisor.hold(&group_kind(&kind), &self.uid) {
                HoldOutcome::Busy => {}
                HoldOutcome::Unclaimed(why) => release.problem = why,
                HoldOutcome::Claimed(successor) => {
                    tracing::info!(katalog = %self.reference, kind = kind.kind, %successor, "another Katalog takes over the kind");
                    self.forget_kind(&kind);
                }
                HoldOutcome::Held(held) => {
                    release.under_way = true;
                    release.progress = ReleaseProgress::default();
                    let progress = release.progress.clone();
                    let cluster = self.shared.context.cluster.clone();
                    let named = tasks::named(Task::Release, group_kind(&kind));
                    named.start_in(&mut self.releases, async move {
                        let result = release_kind(&cluster, &kind, &progress).await;
                        drop(held);
                        (kind, result)
                    });
                }
            }
        }
    }

    fn forget_kind(&mut self, kind: &OperatedKind) {
        self.releasing.remove(kind);
        self.operated.remove(&group_kind(kind));
        self.recorded.remove(&group_kind(kind));
    }

    /// Abandons kinds as the annotation requests: at once those that cannot be released, and all others, with their releases,
    /// after [`GRACE`]. `error` says why none can be released. Returns when to continue if kinds are left.
    pub(super) fn leave_behind(&mut self, error: Option<RequestError>) -> Option<Instant> {
        let until = Instant::now() + GRACE;
        let until = *self.abandons_at.get_or_insert(until);
        let is_due = until <= Instant::now();
        let error = error.map(|error| error.to_string());
        let kinds: Vec<OperatedKind> = self.operated.values().cloned().collect();
        for kind in kinds {
            let release = self.releasing.get(&kind);
            let problem = release.and_then(|release| release.problem.clone());
            let problem = problem.or_else(|| error.clone());
            let may_end = problem.is_none() || release.is_some_and(|release| release.under_way);
            if may_end && !is_due {
                continue;
            }
            let why = problem
                .unwrap_or_else(|| format!("the release did not end within {} s", GRACE.as_secs()));
            let note = format!(
                "finalizers and labels of Orkestra may remain on {}.{} and their children: {why}",
                kind.plural, kind.group
            );
            tracing::warn!(katalog = %self.reference, kind = kind.kind, why, "kind was not released; the Katalog is deleted anyway");
            self.announce(Severity::Warning, KatalogReason::LeftBehind, note);
            self.forget_kind(&kind);
        }
        if is_due {
            self.releases.abort_all();
        }
        (!self.operated.is_empty()).then_some(until)
    }

    /// Records the result of a release.
    pub(super) fn note_release(
        &mut self,
        done: Result<(OperatedKind, Result<Released, ReleaseError>), JoinError>,
    ) {
        if !self.lead.is_leader() {
            // It ended with the lease; the leader continues it.
            match done {
                Ok((kind, _)) => drop(self.releasing.remove(&kind)),
                Err(_) => self.releasing.clear(),
            }
            return;
        }
        match done {
            Ok((kind, Ok(released))) => {
                let Released {
                    resources,
                    children,
                } = released;
                tracing::info!(katalog = %self.reference, kind = kind.kind, resources, children, "kind released");
                self.releasing.remove(&kind);
                // An entry of the same kind may have been added again meanwhile.
                if !self.wanted_kinds().contains(&group_kind(&kind)) {
                    self.forget_kind(&kind);
                }
            }
            // It was abandoned meanwhile: nothing retries it.
            Ok((kind, Err(_))) if !self.operated.contains_key(&group_kind(&kind)) => {}
            Err(error) if error.is_cancelled() => {}
            Ok((kind, Err(error))) => {
                tracing::warn!(katalog = %self.reference, kind = kind.kind, error = %error, "cannot release kind");
                let failures = self
                    .releasing
                    .get(&kind)
                    .map_or(0, |release| release.failures)
                    + 1;
                let retry_at = Some(self.after(failures));
                let release = Release::failed(failures, error.to_string(), retry_at);
                self.releasing.insert(kind, release);
            }
            Err(error) => {
                tracing::error!(katalog = %self.reference, error = %error, "release panicked");
                let retry_at = Some(self.after(1));
                for release in self
                    .releasing
                    .values_mut()
                    .filter(|release| release.under_way)
                {
                    *release = Release::failed(1, "internal error".to_owned(), retry_at);
                }
            }
        }
    }

    /// Returns when the next release is retried, or the progress of one is reported.
    pub(super) fn next_release(&self) -> Option<Instant> {
        if !self.lead.is_leader() {
            return None;
        }
        let due = |release: &Release| {
            if release.under_way {
                Some(Instant::now() + PROGRESS_PERIOD)
            } else {
                release.retry_at
            }
        };
        self.releasing.values().filter_map(due).min()
    }
}

#[cfg(test)]
mod tests;
