//! The pause of a watch after a failure, and what ends it.

use std::time::Duration;

use orkestra_ground::Backoff;
use tokio::time::sleep;

use super::{super::Record, Reflector};
use crate::requests::ClusterError;

/// The pause after errors.
pub(crate) const PAUSE: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(10));
/// The pause for a kind that is not served.
const PAUSE_NOT_SERVED: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));
/// The pause for a missing permission: denied requests must stay rare.
const PAUSE_FORBIDDEN: Duration = Duration::from_secs(30);

impl<R: Record> Reflector<'_, R> {
    pub(crate) async fn pause(&mut self, error: &ClusterError) {
        let exponential = |backoff: Backoff| backoff.jittered(self.failures, self.entropy, 0.5);
        let pause = match error {
            ClusterError::NotServed(_) | ClusterError::NotFound(_) => {
                exponential(PAUSE_NOT_SERVED).max(PAUSE_NOT_SERVED.first)
            }
            ClusterError::Forbidden { .. } | ClusterError::Denied { .. } => {
                PAUSE_FORBIDDEN + self.entropy.shorten(PAUSE.longest / 5, 1.0)
            }
            ClusterError::TooManyRequests { retry_after } => {
                exponential(PAUSE).max(retry_after.unwrap_or_default())
            }
            _ => exponential(PAUSE),
        };
        self.failures = self.failures.saturating_add(1);
        let reach = self.cluster.reach();
        let seen = reach.returns();
        if matches!(error, ClusterError::Unavailable(_)) && self.came_back(seen).await {
            self.failures = 0;
            return;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = self.shared.nudge.notified() => {}
            () = reach.back(seen) => self.failures = 0,
        }
    }

    /// Waits until the API server is up and, after an outage, for this watch's turn; returns whether there was an outage. If the
    /// API server was only doubted, it has refused only this kind.
    async fn came_back(&self, seen: u64) -> bool {
        let reach = self.cluster.reach();
        let cleared = async {
            reach.up().await;
            if reach.returns() > seen {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = reach.back(seen) => true,
            () = cleared => false,
        }
    }
}
