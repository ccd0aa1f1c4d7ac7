//! Growing delays between retries.

use std::time::Duration;

use crate::Entropy;

/// Delays that double with each failure, from a first to a longest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// No delay is longer.
    pub longest: Duration,
}

impl Backoff {
    /// Delays from `first` to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The delay after `failures` failures in a row, counted from 0: `first`, twice that, and so on.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use orkestra_ground::Backoff;
    ///
    /// let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
    /// let delays = [0, 1, 2, 3, 1000].map(|failures| backoff.after(failures).as_secs());
    /// assert_eq!(delays, [1, 2, 4, 5, 5]);
    /// ```
    pub fn after(self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// The same, shortened at random by up to `spread` of it, so that many do not retry at once; 0.2 gives 80 to 100 percent.
    pub fn jittered(self, failures: u32, entropy: &Entropy, spread: f64) -> Duration {
        entropy.shorten(self.after(failures), spread)
    }
}
