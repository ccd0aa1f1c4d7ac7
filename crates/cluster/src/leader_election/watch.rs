//! Reports changes of the Lease to the elector, so that it does not have to poll.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep, timeout},
};

use orkestra_ground::Entropy;
use orkestra_object::decode::Version;

use super::{Timing, lease};

/// The fraction by which jitter may shorten a pause.
pub(crate) const SPREAD: f64 = 0.2;

/// News about the Lease.
#[derive(Debug)]
pub(crate) enum LeaseChange {
    /// The Lease exists, in this state.
    Is(Box<Lease>),
    /// This Lease was deleted.
    Gone(Box<Lease>),
    /// There was no Lease when it was read.
    Absent,
    /// The Lease was read in an older state than the watch had shown.
    Older,
    /// The Lease cannot be read or watched.
    Trouble(kube::Error),
}

/// Reads one Lease, and watches it.
pub(crate) struct Watcher {
    pub(crate) leases: Api<Lease>,
    pub(crate) name: String,
    pub(crate) timing: Timing,
    pub(crate) entropy: Entropy,
    pub(crate) changes: mpsc::Sender<LeaseChange>,
    /// Requests a new start: the watch showed an outdated state.
    pub(crate) anew: Arc<Notify>,
}

impl Watcher {
    /// Reports news until the receiver is dropped.
    pub(crate) async fn run(&self) {
        let (mut version, mut newest) = (None, None);
        loop {
            let at = match version.take() {
                Some(version) => Ok(version),
                None => self.read(&mut newest).await,
            };
            let followed = match at {
                Ok(at) => tokio::select! {
                    () = self.anew.notified() => Ok(None),
                    followed = self.follow(at, &mut newest) => followed,
                },
                Err(error) => Err(error),
            };
            match followed {
                // A watch ends by itself every few minutes, and continues from its position.
                Ok(next) => version = next,
                Err(error) if is_expired(&error) => {}
                Err(error) => {
                    if self
                        .changes
                        .send(LeaseChange::Trouble(error))
                        .await
                        .is_err()
                    {
                        return;
                    }
                    sleep(self.entropy.shorten(self.timing.retry, SPREAD)).await;
                }
            }
            if self.changes.is_closed() {
                return;
            }
        }
    }

    /// Reads and reports the Lease; returns the resourceVersion to watch from. `newest` is the last state that was reported.
    async fn read(&self, newest: &mut Option<Version>) -> Result<String, kube::Error> {
        let found = bounded(self.timing.renew, self.leases.get_opt(&self.name)).await?;
        if let Some(state) = found.as_ref().map(lease::version) {
            let before = newest.replace(state.clone());
            if before.is_some_and(|before| state.is_behind(&before)) {
                // At the end there is no receiver.
                let _ = self.changes.send(LeaseChange::Older).await;
            }
        }
        let version = found
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone());
        let news = found.map_or(LeaseChange::Absent, |lease| {
            LeaseChange::Is(Box::new(lease))
        });
        // At the end there is no receiver.
        let _ = self.changes.send(news).await;
        // If there is no Lease, watch from its first state.
        Ok(version.unwrap_or_else(|| "0".to_owned()))
    }

    /// Watches the Lease from a resourceVersion until the watch ends; returns where to continue, `None` if that is not known.
    async fn follow(
        &self,
        from: String,
        newest: &mut Option<Version>,
    ) -> Result<Option<String>, kube::Error> {
        let this = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let events = self.leases.watch(&this, &from).await?;
        let mut events = events.boxed();
        let mut at = None;
        while let Some(event) = events.try_next().await? {
            let news = match event {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                    at.clone_from(&lease.metadata.resource_version);
                    *newest = Some(lease::version(&lease));
                    LeaseChange::Is(Box::new(lease))
                }
                WatchEvent::Deleted(lease) => {
                    at.clone_from(&lease.metadata.resource_version);
                    LeaseChange::Gone(Box::new(lease))
                }
                WatchEvent::Bookmark(mark) => {
                    at = Some(mark.metadata.resource_version);
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            if self.changes.send(news).await.is_err() {
                return Ok(None);
            }
        }
        Ok(at)
    }
}

/// Adds a deadline to a request; without a response it fails.
pub(crate) async fn bounded<T>(
    within: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let silent =
        || kube::Error::Service(format!("no answer within {} ms", within.as_millis()).into());
    timeout(within, request)
        .await
        .unwrap_or_else(|_| Err(silent()))
}

/// True if the resourceVersion is too old to watch from. Source: Kubernetes API concepts, "410 Gone".
fn is_expired(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
