//! Requests to the webhooks: counters of the process, and figures of each operator for its page.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use orkestra_plan::KatalogRef;
use parking_lot::{Mutex, MutexGuard};
use prometheus::{Histogram, IntCounter, IntGauge};

use super::Metrics;

/// A webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// Rules of `validation`.
    Validate,
    /// `mutation` and `normalize`.
    Mutate,
    /// Conversion between versions.
    Convert,
    /// Orkestra's own kinds.
    Katalogs,
    /// Deletions that a protection lets pass.
    DeletionProtection,
}

impl Webhook {
    const fn label(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Mutate => "mutate",
            Self::Convert => "convert",
            Self::Katalogs => "katalogs",
            Self::DeletionProtection => "deletion_protection",
        }
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookResult {
    /// It was accepted, or converted.
    Allowed,
    /// It was refused.
    Denied,
    /// The request is not valid, or could not be answered.
    Error,
    /// Too many requests wait.
    Throttled,
}

impl WebhookResult {
    const fn label(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Error => "error",
            Self::Throttled => "throttled",
        }
    }
}

/// The values of label `webhook`.
pub(crate) const WEBHOOKS: &[&str] = &[
    "validate",
    "mutate",
    "convert",
    "katalogs",
    "deletion_protection",
];
/// The values of label `result`.
pub(crate) const RESULTS: &[&str] = &["allowed", "denied", "error", "throttled"];

/// The number of requests whose duration an operator's figures cover, without `conversionWindow`.
const WINDOW: usize = 100;

/// What an operator's webhooks did since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookCounts {
    /// Requests that rules were applied to.
    pub validations: u64,
    /// Requests that were refused.
    pub denials: u64,
    /// Requests that were changed.
    pub mutations: u64,
    /// Converted objects.
    pub conversions: u64,
    /// Objects that could not be converted.
    pub conversion_failures: u64,
    /// The average duration of the latest requests.
    pub average: Duration,
    /// The duration that 95 of 100 of the latest requests do not exceed.
    pub p95: Duration,
}

/// A request of an operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reviewed {
    /// Rules were applied: accepted or not.
    Validated(bool),
    /// Changed or not.
    Mutated(bool),
    /// Numbers of converted objects, and of those that could not be.
    Converted(usize, usize),
}

/// The figures of one operator, and what they are made of.
#[derive(Debug, Default)]
pub(crate) struct WebhookFigures {
    figures: WebhookCounts,
    /// The latest durations.
    latest: VecDeque<Duration>,
    /// How many are kept.
    window: usize,
}

/// Figures by Katalog and entry.
pub(crate) type AllFigures = Mutex<BTreeMap<(KatalogRef, String), WebhookFigures>>;

/// The counters of webhooks. Cheap to clone.
#[derive(Clone)]
pub struct WebhookMetrics(Metrics);

impl std::fmt::Debug for WebhookMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookMetrics")
    }
}

impl WebhookMetrics {
    /// The series of the process.
    pub fn new(metrics: &Metrics) -> Self {
        Self(metrics.clone())
    }

    /// Counts a request.
    pub fn count(&self, webhook: Webhook, result: WebhookResult, took: Duration) {
        self.counter(webhook, result).inc();
        self.duration(webhook).observe(took.as_secs_f64());
    }

    fn counter(&self, webhook: Webhook, result: WebhookResult) -> IntCounter {
        let family = &self.0.0.families.webhook_requests;
        family.with_label_values(&[webhook.label(), result.label()])
    }

    fn duration(&self, webhook: Webhook) -> Histogram {
        let family = &self.0.0.families.webhook_duration;
        family.with_label_values(&[webhook.label()])
    }

    /// The end of the certificate's validity, in seconds since 1970.
    pub fn certificate_end(&self) -> IntGauge {
        let family = &self.0.0.families.webhook_certificate_end;
        family.with_label_values::<&str>(&[])
    }

    /// Records a request of an operator's. `window` is the number of requests whose durations count.
    pub fn note(
        &self,
        (katalog, entry): (&KatalogRef, &str),
        reviewed: Reviewed,
        took: Duration,
        window: Option<u32>,
    ) {
        let mut all = self.all();
        let entry = all.entry((katalog.clone(), entry.to_owned())).or_default();
        if let Some(window) = window.and_then(|window| usize::try_from(window).ok()) {
            entry.window = window;
        }
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let figures = &mut entry.figures;
        match reviewed {
            Reviewed::Validated(accepted) => {
                figures.validations += 1;
                figures.denials += u64::from(!accepted);
            }
            Reviewed::Mutated(changed) => figures.mutations += u64::from(changed),
            Reviewed::Converted(done, failed) => {
                figures.conversions += count(done);
                figures.conversion_failures += count(failed);
            }
        }
        entry.latest.push_back(took);
        while entry.latest.len() > entry.window.max(WINDOW) {
            entry.latest.pop_front();
        }
    }

    /// Returns the figures of an operator; none if its webhooks were never called.
    pub fn figures(&self, katalog: &KatalogRef, entry: &str) -> Option<WebhookCounts> {
        let all = self.all();
        let entry = all.get(&(katalog.clone(), entry.to_owned()))?;
        let mut sorted: Vec<Duration> = entry.latest.iter().copied().collect();
        sorted.sort_unstable();
        let number = u32::try_from(sorted.len()).unwrap_or(u32::MAX).max(1);
        Some(WebhookCounts {
            average: sorted.iter().sum::<Duration>() / number,
            p95: percentile(&sorted, 95),
            ..entry.figures
        })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<(KatalogRef, String), WebhookFigures>> {
        self.0.0.webhooks.lock()
    }
}

/// Returns the value that `percent` of 100 values do not exceed; zero without values.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_latest_requests() {
        let metrics = Metrics::new().unwrap();
        let webhooks = WebhookMetrics::new(&metrics);
        let katalog = KatalogRef::new("shop".to_owned(), "k".to_owned());
        let about = (&katalog, "site");
        assert_eq!(webhooks.figures(&katalog, "site"), None);
        for serial in 1..=200 {
            let took = Duration::from_millis(serial);
            let reviewed = Reviewed::Validated(serial % 2 == 0);
            webhooks.note(about, reviewed, took, None);
        }
        webhooks.note(about, Reviewed::Converted(3, 1), Duration::ZERO, None);
        let figures = webhooks.figures(&katalog, "site").unwrap();
        assert_eq!((figures.validations, figures.denials), (200, 100));
        assert_eq!((figures.conversions, figures.conversion_failures), (3, 1));
        // The percentile is that of the latest hundred durations: 0 ms, and 102 ms to 200 ms.
        assert_eq!(figures.p95, Duration::from_millis(195));
        assert_eq!(figures.average, Duration::from_micros(149_490));
    }
}
