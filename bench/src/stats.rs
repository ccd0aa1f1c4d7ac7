//! What many samples say.

use std::time::Duration;

use serde::Serialize;

/// Percentiles of some durations, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    /// Half took at most this.
    pub(crate) p50: f64,
    /// 99 of 100 took at most this.
    pub(crate) p99: f64,
    /// All took at most this.
    pub(crate) max: f64,
}

impl Percentiles {
    /// By the nearest rank; none of no samples.
    pub(crate) fn of(mut samples: Vec<Duration>) -> Option<Self> {
        samples.sort_unstable();
        let at = |percent: usize| {
            let rank = (samples.len() * percent).div_ceil(100).max(1);
            samples
                .get(rank - 1)
                .map(|sample| sample.as_secs_f64() * 1e3)
        };
        Some(Self {
            p50: at(50)?,
            p99: at(99)?,
            max: at(100)?,
        })
    }
}

/// A count as a number to divide.
pub(crate) fn float(count: usize) -> f64 {
    // Counts here are far below 2^32; one that is not is only told less exactly.
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_that_were_seen() {
        let samples = (1..=200).rev().map(Duration::from_millis).collect();
        let said = Percentiles::of(samples).unwrap();
        assert_eq!((said.p50, said.p99, said.max), (100.0, 198.0, 200.0));
        let one = Percentiles::of(vec![Duration::from_millis(7)]).unwrap();
        assert_eq!((one.p50, one.p99), (7.0, 7.0));
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
