//! Rates of operators: the metrics of the controller, read twice.
//!
//! ```text
//!  /metrics of each Pod ── parse ──► Sample ─┐
//!           a moment later ────────► Sample ─┴── rates ──► TopRow: passes and errors a second, p99, queue
//! ```

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::time::Instant;

use super::{
    Reader, Unavailable,
    controllers::{Installation, no_pods},
};

/// The page of metrics.
const METRICS: &str = "/metrics";
/// The share of passes that are not slower than p99.
const P99: f64 = 0.99;

/// The counters of all operators at a moment.
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    operators: BTreeMap<OperatorName, Counters>,
    /// The Pods that were read.
    pub pods: usize,
}

/// An operator, as metrics name it.
type OperatorName = (String, String);

/// The counters of an operator.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counters {
    successes: f64,
    errors: f64,
    /// Passes by their upper bound in seconds, as it is written.
    durations: BTreeMap<String, f64>,
    depth: f64,
    oldest: f64,
    workers: f64,
    resources: f64,
    ready: f64,
}

/// The rates of an operator between two samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopRow {
    /// Its Katalog, as `namespace/name`.
    pub katalog: String,
    /// Its entry in the Katalog.
    pub operator: String,
    /// Reconcile passes a second.
    pub passes_per_second: f64,
    /// Failed passes a second.
    pub errors_per_second: f64,
    /// The duration, in seconds, that 99 of 100 passes did not exceed; none without passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_seconds: Option<f64>,
    /// Custom resources that wait for a worker.
    pub queue_depth: u64,
    /// The longest time, in seconds, that one of them has waited.
    pub oldest_seconds: f64,
    /// Running workers.
    pub workers: u64,
    /// Custom resources.
    pub resources: u64,
    /// Ready custom resources.
    pub ready: u64,
}

/// The rates of all operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Top {
    /// A row for each operator, the busiest first.
    pub operators: Vec<TopRow>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
}

/// Reads the metrics of all Pods of an installation. Only the leader counts passes, so that the Pods add up.
pub async fn sample(
    reader: &Reader,
    of: &Installation,
    token: Option<&str>,
) -> (Sample, Vec<Unavailable>) {
    let (pods, missing) = reader.controller_pods(&of.namespace).await;
    let mut unavailable: Vec<Unavailable> = missing.into_iter().collect();
    if pods.is_empty() && unavailable.is_empty() {
        let what = "rates of operators".to_owned();
        unavailable.push(Unavailable::of(what, &no_pods(&of.namespace)));
    }
    let mut sample = Sample {
        at: Instant::now(),
        operators: BTreeMap::new(),
        pods: 0,
    };
    for pod in &pods {
        match reader.page(pod, METRICS, token).await {
            Ok(text) => {
                sample.pods += 1;
                sample.add(&text);
            }
            Err(error) => unavailable.push(error),
        }
    }
    sample.at = Instant::now();
    (sample, unavailable)
}

impl Sample {
    /// Adds the metrics of a Pod, in Prometheus' text format. Other lines are skipped.
    fn add(&mut self, text: &str) {
        for line in text.lines().filter(|line| line.starts_with("orkestra_")) {
            let Some(series) = Series::parse(line) else {
                continue;
            };
            let (Some(katalog), Some(operator)) = (series.label("katalog"), series.label("crd"))
            else {
                continue;
            };
            let key = (katalog.to_owned(), operator.to_owned());
            let counters = self.operators.entry(key).or_default();
            let value = series.value;
            match series.name {
                "orkestra_reconcile_total" if series.label("result") == Some("error") => {
                    counters.errors += value;
                }
                "orkestra_reconcile_total" => counters.successes += value,
                "orkestra_reconcile_duration_seconds_bucket" => {
                    let bound = series.label("le").unwrap_or_default().to_owned();
                    *counters.durations.entry(bound).or_default() += value;
                }
                "orkestra_queue_depth" => counters.depth += value,
                "orkestra_queue_oldest_seconds" => counters.oldest = counters.oldest.max(value),
                "orkestra_workers" => counters.workers += value,
                // Each replica has all custom resources in its cache.
                "orkestra_resource_count" => counters.resources = counters.resources.max(value),
                "orkestra_resources_ready" => counters.ready = counters.ready.max(value),
                _ => {}
            }
        }
    }

    /// Returns the rates since an earlier sample, the busiest operators first.
    pub fn since(&self, before: &Self) -> Vec<TopRow> {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let none = Counters::default();
        let rows = self.operators.iter().map(|(name, now)| {
            let then = before.operators.get(name).unwrap_or(&none);
            let [errors, successes] = [
                grown(then.errors, now.errors),
                grown(then.successes, now.successes),
            ];
            TopRow {
                katalog: name.0.clone(),
                operator: name.1.clone(),
                passes_per_second: rate(errors + successes, seconds),
                errors_per_second: rate(errors, seconds),
                p99_seconds: quantile(P99, &then.durations, &now.durations),
                queue_depth: whole(now.depth),
                oldest_seconds: now.oldest,
                workers: whole(now.workers),
                resources: whole(now.resources),
                ready: whole(now.ready),
            }
        });
        let mut rows: Vec<TopRow> = rows.collect();
        rows.sort_by(|a, b| {
            let busy = b.passes_per_second.total_cmp(&a.passes_per_second);
            busy.then_with(|| (&a.katalog, &a.operator).cmp(&(&b.katalog, &b.operator)))
        });
        rows
    }
}

/// Returns by how much a counter grew; one that was reset grew from zero.
fn grown(before: f64, now: f64) -> f64 {
    if now < before { now } else { now - before }
}

fn rate(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// Returns a number of objects: metrics are floating-point numbers.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and negative numbers are cut"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0).round() as u64
}

/// Returns the duration that this share of the passes between two samples did not exceed; none without passes.
///
/// Source: Prometheus, `histogram_quantile`: values are taken to be spread evenly within their bucket, and those above the highest
/// bound are at that bound.
fn quantile(
    share: f64,
    before: &BTreeMap<String, f64>,
    now: &BTreeMap<String, f64>,
) -> Option<f64> {
    let grew = now.iter().filter_map(|(bound, count)| {
        let then = before.get(bound).copied().unwrap_or_default();
        // `+Inf` is a number to the parser.
        Some((bound.parse::<f64>().ok()?, grown(then, *count)))
    });
    let mut buckets: Vec<(f64, f64)> = grew.filter(|(bound, _)| !bound.is_nan()).collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = buckets.last()?.1;
    if all <= 0.0 {
        return None;
    }
    let rank = share * all;
    let (mut lower, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if count >= rank {
            if bound.is_infinite() || count <= below {
                return Some(lower);
            }
            return Some(lower + (bound - lower) * (rank - below) / (count - below));
        }
        (lower, below) = (bound, count);
    }
    Some(lower)
}

/// A line of Prometheus' text format.
struct Series<'l> {
    name: &'l str,
    labels: Vec<(&'l str, String)>,
    value: f64,
}

impl<'l> Series<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (label, after) = rest.split_once("=\"")?;
                let (value, after) = quoted(after)?;
                labels.push((label, value));
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            rest = &rest[1..];
        }
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Self {
            name,
            labels,
            value,
        })
    }

    fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        let (_, value) = labels.find(|(label, _)| *label == name)?;
        Some(value)
    }
}

/// Returns the value that ends at the next quote that is not escaped, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LABELS: &str =
        r#"katalog="shop/waters",crd="pond",group="water.example",version="v1",kind="Pond""#;

    fn page(successes: u32, errors: u32, fast: u32, all: u32) -> String {
        format!(
            "# HELP orkestra_reconcile_total Passes.\n\
             orkestra_reconcile_total{{{LABELS},result=\"success\"}} {successes}\n\
             orkestra_reconcile_total{{{LABELS},result=\"error\"}} {errors}\n\
             orkestra_reconcile_duration_seconds_bucket{{{LABELS},le=\"0.1\"}} {fast}\n\
             orkestra_reconcile_duration_seconds_bucket{{{LABELS},le=\"1\"}} {all}\n\
             orkestra_reconcile_duration_seconds_bucket{{{LABELS},le=\"+Inf\"}} {all}\n\
             orkestra_queue_depth{{{LABELS}}} 7\n\
             orkestra_workers{{{LABELS}}} 3\n\
             orkestra_requests_total{{verb=\"get\"}} 9\n\
             orkestra_broken{{katalog=\"a\n"
        )
    }

    fn sample(at: Instant, page: &str) -> Sample {
        let mut sample = Sample {
            at,
            operators: BTreeMap::new(),
            pods: 1,
        };
        sample.add(page);
        sample
    }

    #[test]
    fn rates_are_the_growth_between_two_samples() {
        let start = Instant::now();
        let before = sample(start, &page(100, 10, 110, 110));
        let after = sample(start + Duration::from_secs(2), &page(130, 20, 140, 150));
        let rows = after.since(&before);
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((&*row.katalog, &*row.operator), ("shop/waters", "pond"));
        assert!((row.passes_per_second - 20.0).abs() < 1e-9, "{row:?}");
        assert!((row.errors_per_second - 5.0).abs() < 1e-9, "{row:?}");
        assert_eq!((row.queue_depth, row.workers), (7, 3));
        // 30 of 40 passes took at most 0.1 s, all at most 1 s: the 39.6th is near the end of the second bucket.
        let p99 = row.p99_seconds.unwrap();
        assert!((p99 - (0.1 + 0.9 * 9.6 / 10.0)).abs() < 1e-9, "{p99}");
    }

    #[test]
    fn a_restart_and_a_standstill_are_no_negative_rates() {
        let start = Instant::now();
        let before = sample(start, &page(100, 10, 110, 110));
        let later = start + Duration::from_secs(1);
        let restarted = sample(later, &page(5, 0, 5, 5)).since(&before);
        assert!((restarted[0].passes_per_second - 5.0).abs() < 1e-9);
        let still = sample(later, &page(100, 10, 110, 110)).since(&before);
        assert_eq!(still[0].p99_seconds, None);
        assert!(still[0].passes_per_second.abs() < 1e-9);
        let at_once = sample(start, &page(200, 10, 110, 110)).since(&before);
        assert!(at_once[0].passes_per_second.abs() < 1e-9);
    }

    #[test]
    fn labels_have_escapes() {
        let line = r#"orkestra_workers{katalog="a\"b\\c\nd",crd="x"} 2"#;
        let series = Series::parse(line).unwrap();
        assert_eq!(series.label("katalog"), Some("a\"b\\c\nd"));
        for broken in [
            "orkestra_workers{katalog=\"a",
            "orkestra_workers{",
            "orkestra_workers{} x",
            "x",
        ] {
            assert!(Series::parse(broken).is_none(), "{broken}");
        }
    }
}
