//! Times and rates. A rate is a count over the time that really passed. A bound on a time is one that a measurement must meet once:
//! the machine compiles and runs other tests, so that any single measurement may take long.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use jiff::Timestamp;
use testbed::eventually;

use super::LIMIT;

/// The maximum number of measurements: at least one must be within its limit.
const ATTEMPTS: u32 = 8;

/// Measures until `is_good` holds for a measurement, and returns that one. A system that is too slow by itself is so in every
/// measurement; one whose machine is busy with other tests is not.
pub(crate) async fn measured<T: Debug>(
    what: &str,
    is_good: impl Fn(&T) -> bool,
    mut measure: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let mut all = Vec::new();
    for _ in 0..ATTEMPTS {
        let one = measure().await?;
        println!("{what}: {one:?}");
        if is_good(&one) {
            return Ok(one);
        }
        all.push(one);
    }
    anyhow::bail!("{what}: none of {all:?} is within the limit")
}

/// Measures until a time is at most `limit`, and returns it.
pub(crate) async fn within(
    what: &str,
    limit: Duration,
    measure: impl AsyncFnMut() -> Result<Duration>,
) -> Result<Duration> {
    let what = format!("{what} within {limit:?}");
    measured(&what, |took| *took <= limit, measure).await
}

/// A count over the time that really passed.
#[derive(Debug)]
pub(crate) struct Rate {
    count: f64,
    time: Duration,
}

impl Rate {
    /// Waits until `count`, which only grows, has grown by `least`, and returns by how much it has grown in which time.
    pub(crate) async fn until(
        what: &str,
        least: f64,
        mut count: impl AsyncFnMut() -> Result<f64>,
    ) -> Result<Self> {
        let start = Instant::now();
        let before = count().await?;
        let grown = eventually(what, LIMIT, async || {
            let grown = count().await? - before;
            ensure!(grown > least - 0.5, "only {grown} of {least}");
            Ok(Some(grown))
        })
        .await?;
        Ok(Self::since(start, grown))
    }

    /// Returns the rate of a count that was 0 at `start` or later, and is `count` now or was before.
    pub(crate) fn since(start: Instant, count: f64) -> Self {
        let time = start.elapsed();
        Self { count, time }
    }

    /// Checks that it is at most one per `period`, after `burst` at once.
    pub(crate) fn ensure_at_most(&self, period: Duration, burst: u32) -> Result<()> {
        let most = self.time.as_secs_f64() / period.as_secs_f64() + f64::from(burst);
        let Self { count, time } = self;
        ensure!(*count <= most, "{count} in {time:?}, more than {most:.1}");
        Ok(())
    }
}

/// Waits until the clock is in the next second: a creation timestamp has whole seconds.
pub(crate) async fn until_next_second() -> Result<()> {
    let now = Timestamp::now().as_second();
    eventually("the next second", LIMIT, async || {
        Ok((Timestamp::now().as_second() > now).then_some(()))
    })
    .await
}

/// Pauses between two changes that a test makes: the pace of a load, or the length of a fault. No test may conclude from it that
/// something has happened, or that nothing has.
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
