//! How long a watch waits after a failure, and what ends that.

use std::time::Duration;

use tokio::time::sleep;

use super::{super::Record, Reflector};
use crate::wire::WireError;

/// First and longest pause after errors.
pub(super) const PAUSE: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];
/// First and longest pause for a kind that is not served.
const PAUSE_NOT_SERVED: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Pause for a missing right: a denied request must not become a habit.
const PAUSE_FORBIDDEN: Duration = Duration::from_secs(30);

impl<R: Record> Reflector<'_, R> {
    pub(super) async fn pause(&mut self, error: &WireError) {
        let exponential = |[first, longest]: [Duration; 2]| {
            let whole = first
                .saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX))
                .min(longest);
            self.entropy.shorten(whole, 0.5)
        };
        let pause = match error {
            WireError::NotServed(_) | WireError::NotFound(_) => {
                exponential(PAUSE_NOT_SERVED).max(PAUSE_NOT_SERVED[0])
            }
            WireError::Forbidden { .. } | WireError::Denied { .. } => {
                PAUSE_FORBIDDEN + self.entropy.shorten(PAUSE[1] / 5, 1.0)
            }
            WireError::TooManyRequests { retry_after } => {
                exponential(PAUSE).max(retry_after.unwrap_or_default())
            }
            _ => exponential(PAUSE),
        };
        self.failures = self.failures.saturating_add(1);
        let reach = self.wire.reach();
        let seen = reach.returns();
        if matches!(error, WireError::Unavailable(_)) && self.came_back(seen).await {
            self.failures = 0;
            return;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = self.shared.nudge.notified() => {}
            () = reach.back(seen) => self.failures = 0,
        }
    }

    /// Waits until the API server is up, and if it was away, for this watch's turn: whether it was. One that was only doubted
    /// has refused this kind alone.
    async fn came_back(&self, seen: u64) -> bool {
        let reach = self.wire.reach();
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
