//! Metrics: one table of metrics, a registry for each runtime, and the series of each operator.
//!
//! ```text
//!  operators! { … } ──► OPERATORS ─┬─► docs/reference/metrics.md, config/monitoring/dashboard.json (tests compare)
//!  process! { … } ────► PROCESS ───┘
//!                          │
//!                          ▼
//!                     OperatorMetrics: an operator's series, removed with it; Families: those of the process
//! ```
//!
//! Label values come from plans and from fixed sets, never from object names or messages.

mod calls;
mod compilations;
pub mod dashboard;
mod fetches;
mod metric;
#[cfg(test)]
mod monitoring;
mod operator;
mod series;
mod webhooks;

use std::{
    fmt,
    sync::{Arc, Weak},
};

use orkestra_cluster::client::flow::FlowMetrics;
use orkestra_ground::tasks::{self, Task};
use orkestra_language::reasons::Reason;
use parking_lot::Mutex;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder, process_collector::ProcessCollector,
};

pub use calls::{CallMetrics, CallResult};
pub use compilations::CompiledFor;
pub use fetches::FetchResult;
pub use metric::{Metric, MetricKind, markdown};
pub use operator::{ActiveWorker, OperatorMetrics, PassOutcome, Trigger, Verb};
use series::AllOperatorSeries;
pub use webhooks::{Reviewed, Webhook, WebhookCounts, WebhookMetrics, WebhookResult};

/// Labels of every series of an operator, in this order. `katalog` is `namespace/name`.
pub const OPERATOR_LABELS: [&str; 5] = ["katalog", "crd", "group", "version", "kind"];

/// Upper bounds in seconds. A pass that writes nothing takes well under a millisecond; one that waits for a slow server takes
/// seconds.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];

/// A metric family that is built from a [`Metric`].
trait Family: prometheus::core::Collector + Clone + Sized + 'static {
    const KIND: MetricKind;
    fn build(metric: &Metric) -> prometheus::Result<Self>;
}

macro_rules! family {
    ($type:ty, $kind:ident, $opts:expr) => {
        impl Family for $type {
            const KIND: MetricKind = MetricKind::$kind;
            fn build(metric: &Metric) -> prometheus::Result<Self> {
                let opts: fn(&Metric) -> _ = $opts;
                <$type>::new(opts(metric), &metric.label_names())
            }
        }
    };
}
family!(IntCounterVec, Counter, |metric| Opts::new(
    metric.name,
    metric.help
));
family!(IntGaugeVec, Gauge, |metric| Opts::new(
    metric.name,
    metric.help
));
family!(HistogramVec, Histogram, |metric| HistogramOpts::new(
    metric.name,
    metric.help
)
.buckets(BUCKETS.to_vec()));

/// Defines every metric of operators once: type, name, own labels, help.
macro_rules! operators {
    ($($metric:ident: $kind:ident, $name:literal, [$($label:literal = $values:expr),*], $help:literal;)*) => {
        /// Every metric of an operator.
        pub const OPERATORS: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            per_operator: true,
            labels: &[$(($label, $values)),*],
            help: $help,
        }),*];

        /// A metric of [`OPERATORS`], in the same order.
        #[derive(Clone, Copy)]
        enum Of { $($metric),* }
    };
}

/// Defines every metric of the process once: field, type, name, own labels, help.
macro_rules! process {
    ($($field:ident: $type:ty, $name:literal, [$($label:literal = $values:expr),*], $help:literal;)*) => {
        /// Every metric of the process.
        pub const PROCESS: &[Metric] = &[$(Metric {
            name: $name,
            kind: <$type as Family>::KIND,
            per_operator: false,
            labels: &[$(($label, $values)),*],
            help: $help,
        }),*];

        struct Families { $($field: $type),* }

        impl Families {
            fn register(registry: &Registry) -> prometheus::Result<Self> {
                let mut table = PROCESS.iter();
                $(
                    let metric = table.next().ok_or_else(|| prometheus::Error::Msg($name.to_owned()))?;
                    let $field = <$type as Family>::build(metric)?;
                    registry.register(Box::new($field.clone()))?;
                )*
                Ok(Self { $($field),* })
            }
        }
    };
}

const RESULTS: &[&str] = &["success", "error"];
const TRIGGERS: &[&str] = &["changed", "timer", "retry", "resync"];
const YES_OR_NO: &[&str] = &["yes", "no"];
const ALLOWED: &[&str] = &["an entry of --external-allow", "other"];
const CALL_RESULTS: &[&str] = &[
    "success",
    "status",
    "timeout",
    "busy",
    "refused",
    "unreachable",
    "broken",
];
/// Every reason of the condition `Ready` of a custom resource that is not ready, in the order of [`Reason::ALL`].
const NOT_READY: &[&str] = &{
    let mut names = [""; Reason::ALL.len() - 1];
    let mut at = 0;
    while at < names.len() {
        names[at] = Reason::ALL[at].name();
        at += 1;
    }
    names
};
const VERBS: &[&str] = &[
    "apply",
    "create",
    "delete",
    "apply_metadata",
    "patch_status",
    "normalize",
];

operators! {
    Reconcile: Counter, "orkestra_reconcile_total", ["result" = RESULTS],
        "Reconcile passes completed, by result. A pass that waits is a success.";
    Passes: Counter, "orkestra_passes_total", ["cause" = TRIGGERS, "wrote" = YES_OR_NO],
        "Reconcile passes completed, by cause and by whether they wrote anything. Causes: changed, an object changed; timer, an earlier pass requested this time; retry, the previous pass failed; resync, the periodic resync.";
    ReconcileDuration: Histogram, "orkestra_reconcile_duration_seconds", [],
        "Duration of a reconcile pass, including its writes.";
    Resources: Gauge, "orkestra_resource_count", [],
        "Custom resources in the cache.";
    ResourcesReady: Gauge, "orkestra_resources_ready", [],
        "Custom resources whose last reconcile pass left them ready.";
    ResourcesNotReady: Gauge, "orkestra_resources_not_ready", ["reason" = NOT_READY],
        "Custom resources whose last reconcile pass did not leave them ready, by the reason of their condition Ready. Those without a pass under the revision in force are in neither gauge.";
    ResourcesFailing: Gauge, "orkestra_resources_failing_after_revision", [],
        "Custom resources that were ready under an earlier revision and fail under the one in force.";
    CacheRecords: Gauge, "orkestra_cache_records", [],
        "Cached records of custom resources, children and other watched objects. Records that operators share count for the operator that read them first.";
    CacheBytes: Gauge, "orkestra_cache_bytes", [],
        "Bytes of these records and their indexes, without the parts that equal records share.";
    QueueMaxDepth: Gauge, "orkestra_queue_max_depth", [],
        "Depth at which the queue counts as full; 0 means no limit. Keys are never dropped.";
    QueueDepth: Gauge, "orkestra_queue_depth", [],
        "Keys that are due and waiting for a worker.";
    QueueOldest: Gauge, "orkestra_queue_oldest_seconds", [],
        "Longest time that a key in the queue has waited for a worker; 0 if none is waiting.";
    QueueDelayed: Gauge, "orkestra_queue_delayed", [],
        "Keys scheduled for later: by a retry, a timer or the circuit breaker.";
    QueueWait: Histogram, "orkestra_queue_wait_seconds", [],
        "Time that a due key waited for a worker.";
    Workers: Gauge, "orkestra_workers", [],
        "Running workers.";
    Autoscaled: Gauge, "orkestra_autoscale_override_active", [],
        "1 while an autoscaler's `do` overrides the declared capacity.";
    Overrides: Counter, "orkestra_autoscale_overrides_total", [],
        "Times that an autoscaler's `do` took effect.";
    Restores: Counter, "orkestra_autoscale_restores_total", [],
        "Times that the declared capacity was restored.";
    Degraded: Gauge, "orkestra_degraded", [],
        "1 while the operator is degraded: too many of its passes fail.";
    WorkersActive: Gauge, "orkestra_workers_active", [],
        "Workers that are running a reconcile pass.";
    Panics: Counter, "orkestra_panics_total", [],
        "Reconcile passes that panicked; each also counts as an error in orkestra_reconcile_total.";
    Writes: Counter, "orkestra_writes_total", ["verb" = VERBS],
        "Writes that the API server accepted. apply, create and delete write children; apply_metadata, patch_status and normalize write custom resources.";
    DriftRepairs: Counter, "orkestra_drift_repairs_total", [],
        "Drift corrections: children restored after another client changed or deleted them.";
    Conflicts: Counter, "orkestra_conflicts_total", [],
        "Applies that conflicted with a field of another field manager.";
}

process! {
    requests_in_flight: IntGaugeVec, "orkestra_requests_in_flight", [],
        "Requests to the API server in flight; watches and Lease requests are not counted.";
    requests_limit: IntGaugeVec, "orkestra_requests_limit", [],
        "Current limit of requests in flight. It decreases when the API server responds with 429, fails or becomes slow for most operators, and increases while the API server keeps up.";
    requests_throttled: IntCounterVec, "orkestra_requests_throttled_total", [],
        "Responses with status 429, with which the API server throttles requests.";
    requests_wait: HistogramVec, "orkestra_requests_wait_seconds", [],
        "Time that a request waited because of the limit.";
    events_dropped: IntCounterVec, "orkestra_events_dropped_total", [],
        "Kubernetes Events that were not sent: the queue was full, or the API server did not accept them.";
    external_calls: IntCounterVec, "orkestra_external_calls_total", ["host" = ALLOWED, "result" = CALL_RESULTS],
        "Attempts of `external` calls. host is the entry of --external-allow that permits the host; other stands for hosts without an entry.";
    source_fetches: IntCounterVec, "orkestra_source_fetches_total", ["kind" = fetches::KINDS, "result" = fetches::RESULTS],
        "Fetches of sources of Komposers in the cluster. changed: the source has a new revision; unchanged: it has not.";
    source_duration: HistogramVec, "orkestra_source_fetch_duration_seconds", ["kind" = fetches::KINDS],
        "Duration of a fetch of a source, without the time that it waited for others.";
    source_bytes: IntCounterVec, "orkestra_source_fetch_bytes_total", ["kind" = fetches::KINDS],
        "Bytes of the documents of new revisions of sources.";
    compilations: IntCounterVec, "orkestra_katalog_compilations_total", ["revision" = compilations::SUBJECTS, "result" = compilations::RESULTS],
        "Compilations of Katalogs and Komposers of the cluster. newest: the object as it is, once for each change of it, of its Motifs, its sources or the CRDs of its kinds; stored: an accepted revision after a start; review: an object before it is stored. waiting: its sources are not fetched yet, and nothing was compiled.";
    leader: IntGaugeVec, "orkestra_leader", [],
        "1 while this process is the leader or runs without leader election; 0 while it is a follower.";
    api_server_reachable: IntGaugeVec, "orkestra_api_server_reachable", [],
        "1 unless the API server is known to be unreachable; 0 while all requests wait for it.";
    task_running: IntGaugeVec, "orkestra_task_running", ["task" = Task::NAMES],
        "Running tasks. docs/operate/tasks.md describes each task and the effect when it fails.";
    task_failures: IntCounterVec, "orkestra_task_failures_total", ["task" = Task::NAMES],
        "Tasks that panicked or ended unexpectedly.";
    task_restarts: IntCounterVec, "orkestra_task_restarts_total", ["task" = Task::NAMES],
        "Restarts of failed tasks.";
    unreadable_objects: IntGaugeVec, "orkestra_unreadable_objects", [],
        "Watched objects that cannot be decoded completely, counted per watch. The log and an Event name each object.";
    webhook_requests: IntCounterVec, "orkestra_webhook_requests_total", ["webhook" = webhooks::WEBHOOKS, "result" = webhooks::RESULTS],
        "Requests of the API server to webhooks. error: the request is not valid, or could not be answered; throttled: too many requests of the same operator waited (429).";
    webhook_duration: HistogramVec, "orkestra_webhook_duration_seconds", ["webhook" = webhooks::WEBHOOKS],
        "Duration of a request to a webhook, from its head to the response.";
    webhook_certificate_end: IntGaugeVec, "orkestra_webhook_certificate_end_seconds", [],
        "End of the validity of the webhooks' certificate, in seconds since 1970.";
    build_info: IntGaugeVec, "orkestra_build_info", ["version" = &[orkestra_ground::VERSION]],
        "Always 1; the label is the running version.";
}

/// The metrics of one runtime. Cheap to clone; every clone counts into the same registry.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    families: Families,
    operators: AllOperatorSeries,
    /// Figures of operators' webhooks.
    webhooks: webhooks::AllFigures,
    /// Sources that are measured at each scrape.
    measured: Mutex<Vec<Weak<dyn Measured>>>,
}

/// A source of values that are updated at each scrape.
pub trait Measured: Send + Sync {
    /// Sets the source's series.
    fn measure(&self);
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Every metric of [`OPERATORS`] and [`PROCESS`], and Prometheus' metrics of a process.
    ///
    /// # Errors
    /// The registry refuses a metric of the tables; a test proves that there is none.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        registry.register(Box::new(ProcessCollector::for_self()))?;
        let families = Families::register(&registry)?;
        families
            .build_info
            .with_label_values(&[orkestra_ground::VERSION])
            .set(1);
        // The series must exist before the first loss.
        families.events_dropped.with_label_values::<&str>(&[]);
        families.unreadable_objects.with_label_values::<&str>(&[]);
        Ok(Self(Arc::new(Inner {
            registry,
            families,
            operators: AllOperatorSeries::default(),
            webhooks: webhooks::AllFigures::default(),
            measured: Mutex::default(),
        })))
    }

    /// Calls `one` at each scrape, until it is dropped.
    pub fn at_scrape(&self, one: Weak<dyn Measured>) {
        let mut measured = self.0.measured.lock();
        measured.retain(|one| one.strong_count() > 0);
        measured.push(one);
    }

    /// All series in Prometheus' text format, in parts, so that they need not be held in memory together.
    ///
    /// # Errors
    /// A series cannot be encoded; a test proves that there is none.
    pub fn parts(&self) -> impl Iterator<Item = prometheus::Result<String>> + use<> {
        let measured: Vec<_> = self
            .0
            .measured
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for one in measured {
            one.measure();
        }
        self.count_tasks();
        let inner = self.0.clone();
        let of_process = move || TextEncoder::new().encode_to_string(&inner.registry.gather());
        (self.0.operators.parts()).chain(std::iter::once_with(of_process))
    }

    /// Copies the counters of all tasks of the process that were ever started.
    fn count_tasks(&self) {
        // Two concurrent scrapes must not add the same difference twice.
        let _alone = self.0.measured.lock();
        let families = &self.0.families;
        for task in Task::ALL {
            let counts = tasks::counts(*task);
            if counts.started == 0 {
                continue;
            }
            let name = [task.name()];
            let running = families.task_running.with_label_values(&name);
            running.set(counts.running);
            let failures = families.task_failures.with_label_values(&name);
            failures.inc_by(counts.failures.saturating_sub(failures.get()));
            let restarts = families.task_restarts.with_label_values(&name);
            restarts.inc_by(counts.restarts.saturating_sub(restarts.get()));
        }
    }

    /// Whether this process leads.
    pub fn leader(&self) -> IntGauge {
        self.0.families.leader.with_label_values::<&str>(&[])
    }

    /// Whether the API server is reachable.
    pub fn api_server_reachable(&self) -> IntGauge {
        self.0
            .families
            .api_server_reachable
            .with_label_values::<&str>(&[])
    }

    /// The metrics of flow control, all at 0.
    pub fn flow(&self) -> FlowMetrics {
        let families = &self.0.families;
        FlowMetrics {
            in_flight: (families.requests_in_flight).with_label_values::<&str>(&[]),
            limit: families.requests_limit.with_label_values::<&str>(&[]),
            throttled: (families.requests_throttled).with_label_values::<&str>(&[]),
            wait: families.requests_wait.with_label_values::<&str>(&[]),
        }
    }

    /// A watch has changed its number of unreadable objects from `before` to `now`.
    pub fn unreadable_objects(&self, before: usize, now: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let gauge = &self.0.families.unreadable_objects;
        let gauge = gauge.with_label_values::<&str>(&[]);
        gauge.add(number(now) - number(before));
    }

    /// The counter of Events that were not sent.
    pub fn events_dropped(&self) -> IntCounter {
        self.0
            .families
            .events_dropped
            .with_label_values::<&str>(&[])
    }
}

#[cfg(test)]
mod tests;
