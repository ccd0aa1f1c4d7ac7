//! Time for leader election: a clock that keeps counting while the machine is suspended.
//!
//! Source: `clock_gettime(2)`, `CLOCK_BOOTTIME`. `CLOCK_MONOTONIC`, the clock of timers, stops in suspend: a machine that was
//! suspended past the end of its lease would see no time pass.

use std::{fmt, ops::Add, sync::Arc, time::Duration};

/// A point in time, as the time since boot, including suspend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The point in time at which the machine had been up for `up`.
    pub fn at(up: Duration) -> Self {
        Self(up)
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub fn duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time since boot.
    pub fn up(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

/// A source of [`Moment`]s. Clones are the same clock.
#[derive(Clone)]
pub struct BootClock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BootClock").field(&self.now()).finish()
    }
}

impl BootClock {
    /// The machine's clock.
    #[cfg(target_os = "linux")]
    pub fn system() -> Self {
        use rustix::time::{ClockId, clock_gettime};
        Self::new(|| {
            let time = clock_gettime(ClockId::Boottime);
            // Neither is negative: the clock starts at 0.
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
            Moment(Duration::new(seconds, nanos))
        })
    }

    /// The machine's clock; for development, on systems without a clock that counts suspend.
    #[cfg(not(target_os = "linux"))]
    pub fn system() -> Self {
        let start = std::time::Instant::now();
        Self::new(move || Moment(start.elapsed()))
    }

    /// A clock that returns what `now` returns.
    pub fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The clock of tokio's timers, which stops while the machine is suspended. Tests pause it.
    pub fn of_timers() -> Self {
        let start = tokio::time::Instant::now();
        Self::new(move || Moment(start.elapsed()))
    }

    /// Returns the current time.
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_clock_continues_and_is_no_earlier_than_the_timers() {
        let clock = BootClock::system();
        let before = clock.now();
        std::thread::sleep(Duration::from_millis(5));
        let after = clock.now();
        assert!(after.duration_since(before) >= Duration::from_millis(5));
        assert_eq!(before.duration_since(after), Duration::ZERO);
        #[cfg(target_os = "linux")]
        {
            let timers = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let timers = u64::try_from(timers.tv_sec).unwrap();
            assert!(clock.now().up() + Duration::from_secs(1) > Duration::from_secs(timers));
        }
    }
}
