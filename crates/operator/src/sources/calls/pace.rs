//! How often a hook is called for one custom resource.

use std::{collections::HashMap, time::Duration};

use orkestra_engine::reconcile::calls::CallRequest;
use orkestra_plan::ObjectKey;
use tokio::time::Instant;

/// Calls of a hook for one custom resource that are made at once. A rollout is seen in fewer steps.
const BURST: u32 = 30;
/// The time between two calls of a hook for one custom resource after these: a hook whose answers never agree with what they cause
/// is called, and its children are written, no more often.
const PACE: Duration = Duration::from_secs(5);

/// How often hooks were called of late, by custom resource and place.
#[derive(Default)]
pub(crate) struct CallPace(HashMap<(ObjectKey, usize), (Instant, u32)>);

impl CallPace {
    /// Counts a call, and returns how long to wait before it. Each [`PACE`] without a call makes room for one more.
    pub(crate) fn delay(&mut self, key: &ObjectKey, request: &CallRequest) -> Duration {
        if !request.is_paced {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let regained = |since: Instant| {
            let passed = now.saturating_duration_since(since).as_secs() / PACE.as_secs();
            u32::try_from(passed).unwrap_or(u32::MAX)
        };
        self.0.retain(|_, (since, made)| regained(*since) < *made);
        let (since, made) = self
            .0
            .entry((key.clone(), request.place))
            .or_insert((now, 0));
        let again = regained(*since);
        *made = made.saturating_sub(again) + 1;
        *since += PACE * again;
        if *made > BURST { PACE } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use orkestra_plan::Retry;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hook_that_never_agrees_with_what_it_causes_is_called_at_a_pace() {
        let key = |name: &str| ObjectKey {
            namespace: Some("shop".into()),
            name: name.into(),
        };
        let hook = CallRequest {
            is_paced: true,
            place: 0,
            name: "quota".into(),
            method: "POST",
            url: "https://a.example".into(),
            headers: Box::default(),
            token: Box::default(),
            body: Box::default(),
            expected_status: None,
            timeout: PACE,
            retry: Retry::NONE,
            cache_for: None,
            most: 1,
        };
        let mut pace = CallPace::default();
        for _ in 0..BURST {
            assert_eq!(pace.delay(&key("web"), &hook), Duration::ZERO);
        }
        assert_eq!(pace.delay(&key("web"), &hook), PACE);
        assert_eq!(
            pace.delay(&key("api"), &hook),
            Duration::ZERO,
            "a neighbour is slowed"
        );
        tokio::time::advance(PACE * 2).await;
        assert_eq!(pace.delay(&key("web"), &hook), Duration::ZERO);
        tokio::time::advance(PACE * BURST).await;
        assert_eq!(pace.delay(&key("web"), &hook), Duration::ZERO);
        assert_eq!(pace.0.len(), 1, "quiet resources are remembered");
    }
}
