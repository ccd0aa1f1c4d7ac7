//! What is remembered of a custom resource while children of it are not ready.

use std::time::Duration;

use orkestra_engine::reconcile::behind::Awaited;
use tokio::time::Instant;

/// How long a child may take before it is looked up why it is not ready, and then again and again.
const AFTER: [Duration; 5] = [
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
];
/// What is remembered while children are not ready.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// How often they were looked up.
    looked: usize,
    next: Instant,
    /// What was found.
    found: Vec<Awaited>,
}

impl Waiting {
    /// Begins to wait, or continues after a start: the status has said so for `waited`, with what an earlier process found.
    pub(crate) fn begin(now: Instant, waited: Duration) -> Self {
        Self {
            looked: 0,
            next: now + AFTER[0].saturating_sub(waited),
            found: Vec::new(),
        }
    }

    /// Notes what was found now.
    pub(crate) fn note(&mut self, now: Instant, found: Vec<Awaited>) {
        self.found = found;
        self.looked += 1;
        self.next = now + AFTER[self.looked.min(AFTER.len() - 1)];
    }

    /// True if it is time to look.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Returns when it is time to look next.
    pub(crate) fn due_in(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Returns what was found last.
    pub(crate) fn found(&self) -> &[Awaited] {
        &self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_up_after_some_time_and_ever_more_rarely() {
        let start = Instant::now();
        assert!(Waiting::begin(start, AFTER[0]).is_due(start));
        let mut waiting = Waiting::begin(start, Duration::ZERO);
        assert!(!waiting.is_due(start) && waiting.is_due(start + AFTER[0]));
        let mut now = start + AFTER[0];
        for pause in AFTER[1..].iter().chain([&AFTER[4]; 2]) {
            waiting.note(now, Vec::new());
            assert_eq!(waiting.due_in(now), *pause);
            now += *pause;
        }
    }
}
