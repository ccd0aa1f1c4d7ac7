//! What a Katalog operated and no longer wants is let go, kind by kind.

use orkestra_core::api::OperatedKind;
use tokio::{task::JoinError, time::Instant};

use super::{
    super::{
        release::{ReleaseError, Released, release_kind},
        supervisor::Holding,
    },
    Katalog, Release, group_kind,
};

impl Katalog {
    /// Lets go of what was operated and is not wanted.
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
            match self.shared.supervisor.hold(&group_kind(&kind)) {
                Holding::Busy => {}
                Holding::Claimed(successor) => {
                    tracing::info!(katalog = %self.reference, kind = kind.kind, %successor, "kind goes to another Katalog");
                    self.releasing.remove(&kind);
                    self.operated.remove(&group_kind(&kind));
                }
                Holding::Held(held) => {
                    release.under_way = true;
                    let client = self.shared.context.wire.client().clone();
                    self.releases.spawn(async move {
                        let result = release_kind(&client, &kind).await;
                        drop(held);
                        (kind, result)
                    });
                }
            }
        }
    }

    /// Takes in how a release ended.
    pub(super) fn note_release(
        &mut self,
        done: Result<(OperatedKind, Result<Released, ReleaseError>), JoinError>,
    ) {
        if !self.leads {
            // It ended with the lease; the leader goes on with it.
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
                tracing::info!(katalog = %self.reference, kind = kind.kind, resources, children, "kind is released");
                self.releasing.remove(&kind);
                // An entry of the same kind may have come back meanwhile.
                if !self.wanted_kinds().contains(&group_kind(&kind)) {
                    self.operated.remove(&group_kind(&kind));
                }
            }
            Ok((kind, Err(error))) => {
                tracing::warn!(katalog = %self.reference, kind = kind.kind, error = %error, "kind could not be released");
                let failures = self
                    .releasing
                    .get(&kind)
                    .map_or(0, |release| release.failures)
                    + 1;
                let retry_at = Some(self.after(failures));
                self.releasing.insert(
                    kind,
                    Release {
                        under_way: false,
                        failures,
                        problem: Some(error.to_string()),
                        retry_at,
                    },
                );
            }
            Err(error) => {
                tracing::error!(katalog = %self.reference, error = %error, "release panicked");
                let retry_at = Some(self.after(1));
                for release in self
                    .releasing
                    .values_mut()
                    .filter(|release| release.under_way)
                {
                    *release = Release {
                        under_way: false,
                        failures: 1,
                        problem: Some("internal error".to_owned()),
                        retry_at,
                    };
                }
            }
        }
    }

    /// When the next release is tried again.
    pub(super) fn next_release(&self) -> Option<Instant> {
        if !self.leads {
            return None;
        }
        self.releasing
            .values()
            .filter(|release| !release.under_way)
            .filter_map(|release| release.retry_at)
            .min()
    }
}
