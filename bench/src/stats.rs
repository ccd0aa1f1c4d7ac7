//! Statistics of many samples.

use std::time::Duration;

use serde::Serialize;

/// Percentiles of some durations, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    /// The median.
    pub(crate) p50: f64,
    /// The 99th percentile.
    pub(crate) p99: f64,
    /// The maximum.
    pub(crate) max: f64,
}

impl Percentiles {
    /// Computes the percentiles by the nearest rank; none if there are no samples.
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

/// Converts a count to a floating-point number.
pub(crate) fn float(count: usize) -> f64 {
    // Counts here are far below 2^32. A larger one would only be less exact.
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns the slope of the regression line through all points; none if there are fewer than two different `x`.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mean =
        |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / float(points.len());
    let (mean_x, mean_y) = (mean(|(x, _)| *x), mean(|(_, y)| *y));
    let (mut together, mut alone) = (0.0, 0.0);
    for (x, y) in points {
        together += (x - mean_x) * (y - mean_y);
        alone += (x - mean_x) * (x - mean_x);
    }
    (alone > 0.0).then(|| together / alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_that_of_the_line_through_all_points() {
        assert_eq!(slope(&[(1.0, 5.0), (3.0, 9.0)]), Some(2.0));
        assert_eq!(slope(&[(0.0, 0.0), (1.0, 3.0), (2.0, 0.0)]), Some(0.0));
        assert_eq!(slope(&[(2.0, 1.0), (2.0, 4.0)]), None);
        assert_eq!(slope(&[]), None);
    }

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
