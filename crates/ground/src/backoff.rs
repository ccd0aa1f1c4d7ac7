//! Growing delays between retries.

use std::time::Duration;

use crate::entropy::Entropy;

/// Delays that grow with each failure in a row, from a first to a longest one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The upper limit of a delay.
    pub longest: Duration,
    /// The ratio of each delay to the one before, at least 1.
    pub factor: f64,
}

impl Backoff {
    /// Delays that double from `first` to `longest`.
    pub const fn doubling(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            factor: 2.0,
        }
    }

    /// Returns the delay after `failures` earlier failures in a row: `first` for 0, then multiplied by [`factor`](Self::factor)
    /// each time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use orkestra_ground::Backoff;
    ///
    /// let backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(5));
    /// let delays = [0, 1, 2, 3, 1000].map(|failures| backoff.after(failures).as_secs());
    /// assert_eq!(delays, [1, 2, 4, 5, 5]);
    /// ```
    pub fn after(self, failures: u32) -> Duration {
        let times = self
            .factor
            .powi(i32::try_from(failures).unwrap_or(i32::MAX));
        let seconds = self.first.as_secs_f64() * times;
        // Compared first: an infinite product cannot be converted into a duration.
        if seconds < self.longest.as_secs_f64() {
            Duration::from_secs_f64(seconds)
        } else {
            self.longest
        }
    }

    /// Returns the same delay, shortened at random by up to `spread` of it, so that many clients do not retry at once; 0.2 gives
    /// 80 to 100 percent.
    pub fn jittered(self, failures: u32, entropy: &Entropy, spread: f64) -> Duration {
        entropy.shorten(self.after(failures), spread)
    }
}
