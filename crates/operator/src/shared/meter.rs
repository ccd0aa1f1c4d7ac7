//! Measurements of an operator's recent passes.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The period in which passes count.
const WINDOW: Duration = Duration::from_mins(1);
/// The maximum number of remembered passes; for a busy operator the latest are enough.
const MOST_PASSES: usize = 512;

/// The recent passes of one operator.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<VecDeque<Pass>>);

#[derive(Clone, Copy, Debug)]
struct Pass {
    ended: Instant,
    took: Duration,
    failed: bool,
}

/// A summary of the recent passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecentPasses {
    /// The 95th percentile of their duration.
    pub(crate) p95: Duration,
    /// The percentage of failed passes.
    pub(crate) error_percent: u64,
}

impl Meter {
    /// Records a pass that just ended.
    pub(crate) fn ended(&self, took: Duration, failed: bool) {
        let mut passes = self.0.lock();
        if passes.len() == MOST_PASSES {
            passes.pop_front();
        }
        passes.push_back(Pass {
            ended: Instant::now(),
            took,
            failed,
        });
    }

    /// Returns a summary of the passes of the last minute; zero if there was none.
    pub(crate) fn recent(&self) -> RecentPasses {
        let mut passes = self.0.lock();
        let now = Instant::now();
        while (passes.front()).is_some_and(|pass| now.duration_since(pass.ended) > WINDOW) {
            passes.pop_front();
        }
        let failed = passes.iter().filter(|pass| pass.failed).count();
        let mut took: Vec<Duration> = passes.iter().map(|pass| pass.took).collect();
        drop(passes);
        if took.is_empty() {
            return RecentPasses::default();
        }
        // Nearest rank: the smallest that at least 95 of 100 do not exceed.
        let rank = (took.len() * 95).div_ceil(100) - 1;
        let error_percent = u64::try_from(failed * 100 / took.len()).unwrap_or(100);
        let (_, p95, _) = took.select_nth_unstable(rank);
        RecentPasses {
            p95: *p95,
            error_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_twentieth_does_not_count_and_old_passes_are_forgotten() {
        let meter = Meter::default();
        assert_eq!(meter.recent(), RecentPasses::default());
        for number in 1..=100 {
            meter.ended(Duration::from_millis(number), number % 4 == 0);
        }
        let recent = meter.recent();
        assert_eq!(recent.p95, Duration::from_millis(95));
        assert_eq!(recent.error_percent, 25);
        advance(Duration::from_secs(50)).await;
        meter.ended(Duration::from_secs(3), true);
        advance(Duration::from_secs(20)).await;
        let recent = meter.recent();
        assert_eq!(
            (recent.p95, recent.error_percent),
            (Duration::from_secs(3), 100)
        );
        advance(Duration::from_secs(50)).await;
        assert_eq!(meter.recent(), RecentPasses::default());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let meter = Meter::default();
        for _ in 0..10_000 {
            meter.ended(Duration::from_millis(1), false);
        }
        assert_eq!(meter.0.lock().len(), MOST_PASSES);
    }
}
