//! The series of operators: some hundred bytes per operator, converted for Prometheus' encoder at each scrape.
//!
//! The library's own series each hold their name, help and labels, which takes fifty kilobytes for all series of an operator.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use prometheus::{TextEncoder, proto};

use super::{BUCKETS, Metric, MetricKind, OPERATOR_LABELS, OPERATORS, Of};

/// Values of [`OPERATOR_LABELS`], in their order.
pub(crate) type Labels = [String; OPERATOR_LABELS.len()];

/// The number of operators whose series are encoded together, so that hundreds of operators do not need memory at the same time.
const AT_A_TIME: usize = 32;

/// The cells of a histogram: the count of each bucket, the count of all observations, and their sum.
const CELLS_OF_HISTOGRAM: usize = BUCKETS.len() + 2;

/// The number of cells of a metric for each combination of its own label values.
const fn width(metric: &Metric) -> usize {
    match metric.kind {
        MetricKind::Histogram => CELLS_OF_HISTOGRAM,
        MetricKind::Counter | MetricKind::Gauge => 1,
    }
}

const fn cells(metric: &Metric) -> usize {
    let (mut count, mut at) = (width(metric), 0);
    while at < metric.labels.len() {
        count *= metric.labels[at].1.len();
        at += 1;
    }
    count
}

/// The first cell of each metric; the last element is the total number of cells.
const OFFSETS: [usize; OPERATORS.len() + 1] = {
    let (mut offsets, mut at) = ([0; OPERATORS.len() + 1], 0);
    while at < OPERATORS.len() {
        offsets[at + 1] = offsets[at] + cells(&OPERATORS[at]);
        at += 1;
    }
    offsets
};

/// All series of one operator. Counters are integers; gauges and sums are the bits of a float.
pub(crate) struct OperatorSeries {
    labels: Labels,
    cells: [AtomicU64; OFFSETS[OPERATORS.len()]],
}

impl fmt::Debug for OperatorSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OperatorSeries").field(&self.labels).finish()
    }
}

impl OperatorSeries {
    fn new(labels: Labels) -> Self {
        Self {
            labels,
            cells: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn cell(&self, metric: Of, at: usize) -> &AtomicU64 {
        &self.cells[OFFSETS[metric as usize] + at]
    }

    /// Increments the metric for its `own` combination of labels, in the order of [`Metric::combinations`].
    pub(crate) fn count(&self, metric: Of, own: usize) {
        self.cell(metric, own).fetch_add(1, Ordering::Relaxed);
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, metric: Of, value: f64) {
        self.set_at(metric, 0, value);
    }

    /// Sets a gauge for its `own` combination of labels.
    pub(crate) fn set_at(&self, metric: Of, own: usize, value: f64) {
        self.cell(metric, own)
            .store(value.to_bits(), Ordering::Relaxed);
    }

    /// Adds to a gauge.
    pub(crate) fn add(&self, metric: Of, delta: f64) {
        add(self.cell(metric, 0), delta);
    }

    /// Adds an observation to a histogram.
    pub(crate) fn observe(&self, metric: Of, value: f64) {
        let bucket = BUCKETS.iter().position(|bound| value <= *bound);
        if let Some(bucket) = bucket {
            self.count(metric, bucket);
        }
        self.count(metric, BUCKETS.len());
        add(self.cell(metric, BUCKETS.len() + 1), value);
    }

    /// One series of a metric, from its cells that begin at `at`.
    fn value(&self, metric: &Metric, own: &[&str], at: usize) -> proto::Metric {
        let pair = |(name, value): (&str, &str)| {
            let mut pair = proto::LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value.to_owned());
            pair
        };
        let values = self.labels.iter().map(String::as_str).chain(own.to_vec());
        let mut pairs: Vec<_> = (metric.label_names().into_iter().zip(values))
            .map(pair)
            .collect();
        pairs.sort_by(|a, b| a.name().cmp(b.name()));
        let mut series = proto::Metric::from_label(pairs);
        let load = |at: usize| self.cells[at].load(Ordering::Relaxed);
        match metric.kind {
            MetricKind::Counter => {
                let mut counter = proto::Counter::default();
                counter.set_value(float(load(at)));
                series.set_counter(counter);
            }
            MetricKind::Gauge => {
                let mut gauge = proto::Gauge::default();
                gauge.set_value(f64::from_bits(load(at)));
                series.set_gauge(gauge);
            }
            MetricKind::Histogram => {
                let mut histogram = proto::Histogram::default();
                let mut below = 0;
                let buckets = BUCKETS.iter().enumerate().map(|(number, bound)| {
                    below += load(at + number);
                    let mut bucket = proto::Bucket::default();
                    bucket.set_upper_bound(*bound);
                    bucket.set_cumulative_count(below);
                    bucket
                });
                histogram.set_bucket(buckets.collect());
                histogram.set_sample_count(load(at + BUCKETS.len()));
                histogram.set_sample_sum(f64::from_bits(load(at + BUCKETS.len() + 1)));
                series.set_histogram(histogram);
            }
        }
        series
    }
}

fn add(cell: &AtomicU64, delta: f64) {
    let sum = |bits| Some((f64::from_bits(bits) + delta).to_bits());
    // The closure never returns `None`.
    let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
}

/// Returns a count as Prometheus stores it.
#[allow(clippy::cast_precision_loss, reason = "floats are exact up to 2⁵³")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// The series of all operators, each removed with its last [`super::OperatorMetrics`].
#[derive(Default)]
pub(crate) struct AllOperatorSeries(Mutex<BTreeMap<Labels, Weak<OperatorSeries>>>);

impl AllOperatorSeries {
    /// Returns the series with these labels: new ones at 0, or those that a predecessor still counts into.
    pub(crate) fn of(&self, labels: Labels) -> Arc<OperatorSeries> {
        let mut operators = self.0.lock();
        operators.retain(|_, series| series.strong_count() > 0);
        if let Some(series) = operators.get(&labels).and_then(Weak::upgrade) {
            return series;
        }
        let series = Arc::new(OperatorSeries::new(labels.clone()));
        operators.insert(labels, Arc::downgrade(&series));
        series
    }

    /// All series in Prometheus' text format, in parts. A slow reader keeps no series alive.
    pub(crate) fn parts(&self) -> impl Iterator<Item = prometheus::Result<String>> + use<> {
        let operators: Arc<[_]> = {
            let operators = self.0.lock();
            operators.values().cloned().collect()
        };
        let metrics = OPERATORS.iter().zip(OFFSETS);
        metrics.flat_map(move |(metric, offset)| {
            let operators = operators.clone();
            let begins = (0..operators.len()).step_by(AT_A_TIME);
            begins.filter_map(move |begin| {
                let end = operators.len().min(begin + AT_A_TIME);
                let some: Vec<_> = operators[begin..end]
                    .iter()
                    .filter_map(Weak::upgrade)
                    .collect();
                (!some.is_empty()).then(|| part(metric, offset, &some, begin == 0))
            })
        })
    }
}

/// The series of `operators` for a metric as text; the first part includes the metric's help and type.
fn part(
    metric: &Metric,
    offset: usize,
    operators: &[Arc<OperatorSeries>],
    is_first: bool,
) -> prometheus::Result<String> {
    let family = family(metric, offset, operators);
    let mut text = TextEncoder::new().encode_to_string(&[family])?;
    if !is_first {
        let series = text
            .find(&format!("\n{}", metric.name))
            .map_or(0, |at| at + 1);
        text.drain(..series);
    }
    Ok(text)
}

/// The series of `operators` for a metric, whose cells begin at `offset`.
fn family(
    metric: &Metric,
    offset: usize,
    operators: &[Arc<OperatorSeries>],
) -> proto::MetricFamily {
    let own = metric.combinations();
    let series = operators.iter().flat_map(|operator| {
        let numbered = own.iter().enumerate();
        numbered
            .map(move |(number, own)| operator.value(metric, own, offset + number * width(metric)))
    });
    let mut family = proto::MetricFamily::default();
    family.set_name(metric.name.to_owned());
    family.set_help(metric.help.to_owned());
    family.set_field_type(match metric.kind {
        MetricKind::Counter => proto::MetricType::COUNTER,
        MetricKind::Gauge => proto::MetricType::GAUGE,
        MetricKind::Histogram => proto::MetricType::HISTOGRAM,
    });
    family.set_metric(series.collect());
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_an_operator_are_small() {
        assert!(
            size_of::<OperatorSeries>() < 1 << 10,
            "{}",
            size_of::<OperatorSeries>()
        );
    }

    #[test]
    fn a_histogram_counts_what_is_below_each_bound() {
        let all = AllOperatorSeries::default();
        let series = all.of(std::array::from_fn(|number| number.to_string()));
        for value in [0.0005, 0.002, 2.0, 60.0] {
            series.observe(Of::QueueWait, value);
        }
        let metric = &OPERATORS[Of::QueueWait as usize];
        let family = family(metric, OFFSETS[Of::QueueWait as usize], &[series]);
        let histogram = family.get_metric()[0].get_histogram();
        let below: Vec<u64> = histogram
            .get_bucket()
            .iter()
            .map(proto::Bucket::cumulative_count)
            .collect();
        assert_eq!(below, [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3]);
        assert_eq!(histogram.get_sample_count(), 4);
        assert!((histogram.get_sample_sum() - 62.0025).abs() < 1e-9);
    }

    #[test]
    fn many_operators_are_reported_in_parts_and_each_metric_is_explained_once() {
        let all = AllOperatorSeries::default();
        let held: Vec<_> = (0..=2 * AT_A_TIME)
            .map(|number| all.of(std::array::from_fn(|_| format!("a\n\"{number:02}"))))
            .collect();
        let parts: prometheus::Result<Vec<_>> = all.parts().collect();
        let parts = parts.unwrap();
        assert_eq!(parts.len(), 3 * OPERATORS.len());
        let text = parts.concat();
        for metric in OPERATORS {
            let name = metric.name;
            let lines =
                |start: String| text.lines().filter(|line| line.starts_with(&start)).count();
            assert_eq!(lines(format!("# HELP {name} ")), 1, "{name}");
            assert_eq!(lines(format!("# TYPE {name} ")), 1, "{name}");
            let series = match metric.kind {
                MetricKind::Histogram => lines(format!("{name}_count{{")),
                MetricKind::Counter | MetricKind::Gauge => lines(format!("{name}{{")),
            };
            assert_eq!(series, held.len() * metric.combinations().len(), "{name}");
        }
        let mut names: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("# TYPE"))
            .collect();
        names.dedup();
        assert_eq!(names.len(), OPERATORS.len());
        drop(held);
        assert_eq!(all.parts().count(), 0);
    }
}
