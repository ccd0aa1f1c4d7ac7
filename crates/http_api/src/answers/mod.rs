//! The responses of the HTTP API, as types. `docs/reference/openapi.json` and the tables of `docs/reference/http-api.md` are generated from them: the
//! first line of each field's documentation is its description there.
//!
//! One file: types without logic.

mod instances;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::instances::{Child, Instance, Instances, Item};

/// The pages of the port.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    /// The pages.
    pub(crate) pages: Vec<IndexEntry>,
}

/// A page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexEntry {
    /// Its path.
    pub(crate) path: &'static str,
    /// Its content.
    pub(crate) shows: &'static str,
}

/// A summary of all operators.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// False while an operator is degraded.
    pub(crate) healthy: bool,
    /// Whether `/readyz` answers 200.
    #[serde(rename = "OrkReady")]
    pub(crate) ork_ready: bool,
    /// Whether the API server is reachable. While it is unreachable, all operators wait.
    pub(crate) api_server: ApiServer,
    /// 503 while an operator is degraded, else 200; the HTTP status of the response is always 200.
    pub(crate) status: u16,
    /// The first degraded operator, and why.
    pub(crate) degraded_reason: Option<String>,
    /// Entries of all Katalogs and Komposers, including disabled ones.
    pub(crate) total: usize,
    /// Operators.
    pub(crate) total_enabled: usize,
    /// Degraded operators.
    pub(crate) total_degraded: usize,
    /// Operators by state.
    pub(crate) status_counts: BTreeMap<&'static str, usize>,
    /// Entries by the namespace of their Katalog.
    pub(crate) namespaces: BTreeMap<String, Vec<String>>,
    /// Whether this process is the leader, which reconciles.
    pub(crate) is_konductor: bool,
    /// Identity of this process in leader election.
    pub(crate) identity: String,
    /// Identity of the leader; null if there is none.
    pub(crate) leader: Option<String>,
    /// Why this process cannot take part in leader election.
    pub(crate) election_problem: Option<String>,
    /// Version of `ork`.
    pub(crate) runtime_version: &'static str,
    /// The Katalogs and Komposers, sorted by namespace and name.
    pub(crate) katalogs: Vec<Katalog>,
    /// The operators of all Katalogs.
    pub(crate) crds: Vec<OperatorRow>,
    /// Name of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Description of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Version of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Author of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    /// License of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) license: Option<String>,
}

/// Whether the API server is reachable.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiServer {
    /// False once requests and a probe got no response.
    pub(crate) reachable: bool,
    /// How long it has been unreachable.
    pub(crate) away_seconds: Option<u64>,
    /// The failure of the last probe.
    pub(crate) reason: Option<String>,
}

/// A Katalog or a Komposer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Katalog {
    /// `Katalog` or `Komposer`.
    pub(crate) kind: &'static str,
    /// Its namespace; `default` for Katalogs from files.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its description.
    pub(crate) description: String,
    /// Its own version.
    pub(crate) version: String,
    /// Its author.
    pub(crate) author: String,
    /// Its license.
    pub(crate) license: String,
    /// Status of its condition `Ready`; null is `Unknown`.
    pub(crate) ready: Option<bool>,
    /// Reason of that condition.
    pub(crate) reason: String,
    /// Message of that condition.
    pub(crate) message: String,
    /// Name of the running revision; null until one has been accepted.
    pub(crate) revision: Option<String>,
    /// Entries with `enabled: false`.
    pub(crate) disabled: Vec<String>,
    /// The sources that it is composed from, in the order in which they are merged; empty without `sources`.
    pub(crate) sources: Vec<SourceRow>,
}

/// A source of a Komposer, or of a Katalog with `sources`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceRow {
    /// Its identity, as in `komposer.lock`.
    pub(crate) source: String,
    /// Where it was fetched from, without credentials; empty until it was.
    pub(crate) url: String,
    /// The revision in use: a tag, `branch@commit` or a version.
    pub(crate) revision: String,
    /// The digest of the revision in use.
    pub(crate) digest: String,
    /// Who signed it; null if no signature is required.
    pub(crate) verified: Option<String>,
    /// Why a newer revision is not in use, or why there is none; null if the newest is in use.
    pub(crate) message: Option<String>,
    /// The entries that come from it.
    pub(crate) operators: Vec<String>,
}

/// The summary of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorRow {
    /// Its entry in `spec.crds`.
    pub(crate) name: String,
    /// Namespace of its Katalog.
    pub(crate) namespace: String,
    /// Name of its Katalog or Komposer.
    pub(crate) katalog: String,
    /// `Katalog` or `Komposer`: the kind that declares it.
    pub(crate) declared_by: &'static str,
    /// The source that it comes from; null if its Katalog declares it.
    pub(crate) source: Option<String>,
    /// Path of its page.
    pub(crate) path: String,
    /// The kind that it reconciles.
    pub(crate) gvk: Gvk,
    /// Its state.
    pub(crate) state: StateWord,
    /// Whether the state is `started`, `healthy` or `standby`.
    pub(crate) healthy: bool,
    /// Why it is not healthy; null if no problem is known.
    pub(crate) reason: Option<String>,
    /// Running workers.
    pub(crate) workers: usize,
    /// Custom resources that wait for a worker.
    pub(crate) queue_depth: usize,
    /// Custom resources.
    pub(crate) resource_count: usize,
    /// Custom resources that are ready.
    pub(crate) ready_count: usize,
    /// Always true: a disabled entry has no operator.
    pub(crate) enabled: bool,
}

/// State of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateWord {
    /// Workers do not run yet.
    Pending,
    /// Another version of the CRD, or another process, reconciles.
    Standby,
    /// Workers run; no pass has succeeded yet.
    Started,
    /// Passes succeed.
    Healthy,
    /// Too many passes fail, or a requirement is missing.
    Degraded,
}

/// A kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Gvk {
    /// API group; empty for the core group.
    pub(crate) group: String,
    /// Version.
    pub(crate) version: String,
    /// Kind.
    pub(crate) kind: String,
}

/// A resource.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Gvr {
    /// API group; empty for the core group.
    pub(crate) group: String,
    /// Version.
    pub(crate) version: String,
    /// Plural; null while the kind is not known to the cluster.
    pub(crate) resource: Option<String>,
}

/// An operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operator {
    /// Its entry in `spec.crds`.
    pub(crate) name: String,
    /// Namespace of its Katalog.
    pub(crate) namespace: String,
    /// Name of its Katalog or Komposer.
    pub(crate) katalog: String,
    /// `Katalog` or `Komposer`: the kind that declares it.
    pub(crate) declared_by: &'static str,
    /// The source that it comes from; null if its Katalog declares it.
    pub(crate) source: Option<String>,
    /// Path of this page.
    pub(crate) path: String,
    /// The kind that it reconciles.
    pub(crate) gvk: Gvk,
    /// The resource of the kind.
    pub(crate) gvr: Gvr,
    /// `Namespaced` or `Cluster`; null while unknown.
    pub(crate) scope: Option<&'static str>,
    /// Always `dynamic`.
    pub(crate) mode: &'static str,
    /// Its state.
    pub(crate) state: StateWord,
    /// Whether the state is `started`, `healthy` or `standby`.
    pub(crate) healthy: bool,
    /// Why it is not healthy; null if no problem is known.
    pub(crate) reason: Option<String>,
    /// The running revision; null if there is none.
    pub(crate) revision: Option<String>,
    /// The wanted revision, while it differs from the running one.
    pub(crate) wanted_revision: Option<String>,
    /// Its workers.
    pub(crate) workers: Workers,
    /// The settings of `autoscale`; null if there are none.
    pub(crate) autoscaler: Option<Autoscaler>,
    /// How often each custom resource is reconciled without a change.
    pub(crate) resync: String,
    /// Its queue.
    pub(crate) queue: Queue,
    /// Custom resources that wait for a worker.
    pub(crate) queue_depth: usize,
    /// Custom resources.
    pub(crate) resource_count: usize,
    /// Custom resources that are ready.
    pub(crate) ready_count: usize,
    /// Always true: a disabled entry has no operator.
    pub(crate) enabled: bool,
    /// The condition to wait for, `started` or `healthy`, by entry.
    pub(crate) depends_on: BTreeMap<String, &'static str>,
    /// Whether custom resources get a finalizer.
    pub(crate) finalizer: bool,
    /// Kinds of children that it declares.
    pub(crate) children: Vec<String>,
    /// The entry of another version that reconciles instead.
    pub(crate) yields_to: Option<String>,
    /// The Katalog that has claimed the kind, as `namespace/name`.
    pub(crate) conflicts_with: Option<String>,
    /// Problems, the most severe first.
    pub(crate) problems: Vec<Problem>,
    /// Counts and rates.
    pub(crate) metrics: Rates,
    /// Requests to its webhooks since the start of this process; null if there were none.
    pub(crate) webhooks: Option<Webhooks>,
    /// Other pages.
    pub(crate) endpoints: Endpoints,
}

/// Workers of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Workers {
    /// Running workers.
    pub(crate) current: usize,
    /// The declared number, or the default.
    pub(crate) configured: usize,
    /// The limit.
    pub(crate) most: usize,
    /// The source of the limit: `autoscaler`, `default` or `configured`.
    pub(crate) source: &'static str,
}

/// The settings of `autoscale`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Autoscaler {
    /// Whether `do` is in force.
    pub(crate) active: bool,
    /// How often its conditions are evaluated.
    pub(crate) interval: String,
    /// How long `do` stays in force after its conditions turn false.
    pub(crate) cooldown: String,
    /// The capacity while its conditions are true.
    #[serde(rename = "do")]
    pub(crate) capacity: Capacity,
}

/// The changes of an autoscaler; null is unchanged.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capacity {
    /// Workers.
    pub(crate) workers: Option<usize>,
    /// Depth of the queue that counts as full.
    pub(crate) queue_depth: Option<u32>,
    /// Interval of the resync.
    pub(crate) resync: Option<String>,
}

/// Queue of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Queue {
    /// Custom resources that wait for a worker.
    pub(crate) depth: usize,
    /// Depth that counts as full; 0 is none.
    pub(crate) max_depth: u32,
    /// Consecutive failed passes after which the operator is degraded.
    pub(crate) failure_threshold: u64,
}

/// A problem of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// One of the reasons of [reasons.md](reasons.md).
    pub(crate) reason: &'static str,
    /// The message.
    pub(crate) message: String,
}

/// Counts and rates of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rates {
    /// Running workers.
    pub(crate) workers: usize,
    /// Custom resources that wait for a worker.
    pub(crate) queue_depth: usize,
    /// Failed passes since the start as a fraction of all, from 0 to 1; null if another process leads.
    pub(crate) error_rate: Option<f64>,
    /// Successful passes since the start as a fraction of all, from 0 to 1; null if another process leads.
    pub(crate) success_rate: Option<f64>,
}

/// Requests to the webhooks of an operator, in this process.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhooks {
    /// Requests that rules were applied to.
    pub(crate) validations: u64,
    /// Requests that were refused.
    pub(crate) denials: u64,
    /// Requests that were changed.
    pub(crate) mutations: u64,
    /// Converted objects.
    pub(crate) conversions: u64,
    /// Objects that could not be converted.
    pub(crate) conversion_failures: u64,
    /// Average duration of the latest requests, in milliseconds.
    pub(crate) average_milliseconds: f64,
    /// The duration, in milliseconds, that 95 of 100 of the latest requests do not exceed.
    pub(crate) p95_milliseconds: f64,
}

/// Other pages of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Endpoints {
    /// Path of its health page.
    pub(crate) health: String,
    /// Path of its custom resources.
    pub(crate) cr: String,
}

/// Health of an operator.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a field of the response"
)]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    /// Its entry in `spec.crds`.
    pub(crate) name: String,
    /// Namespace of its Katalog.
    pub(crate) namespace: String,
    /// Name of its Katalog.
    pub(crate) katalog: String,
    /// Its state.
    pub(crate) state: StateWord,
    /// The HTTP status of the response: 200, or 503 if the operator is degraded or pending.
    pub(crate) status: u16,
    /// Whether this process is the leader.
    pub(crate) is_konductor: bool,
    /// Whether the state is `started`, `healthy` or `standby`.
    pub(crate) healthy: bool,
    /// Whether workers run; null if another process leads.
    pub(crate) started: Option<bool>,
    /// Whether the state is `pending`.
    pub(crate) pending: bool,
    /// Why it is not healthy; null if no problem is known.
    pub(crate) reason: Option<String>,
    /// When its workers started here.
    pub(crate) started_at: Option<String>,
    /// How long its workers have run here.
    pub(crate) uptime_seconds: Option<i64>,
    /// Custom resources that wait for a worker.
    pub(crate) queue_depth: usize,
    /// Failed passes since the start as a fraction of all, from 0 to 1; null if another process leads.
    pub(crate) error_rate: Option<f64>,
    /// Failed passes since the last success; null if another process leads.
    pub(crate) consecutive_fails: Option<u64>,
    /// Since when it has been degraded by failed passes.
    pub(crate) degraded_since: Option<String>,
    /// Passes since the start; null if another process leads.
    pub(crate) total_reconciles: Option<u64>,
    /// Failed passes since the start; null if another process leads.
    pub(crate) total_failed: Option<u64>,
    /// Custom resources.
    pub(crate) resource_count: usize,
    /// Custom resources that are ready.
    pub(crate) ready_count: usize,
    /// Custom resources that a reconcile gate blocks; null if another process leads.
    pub(crate) gated: Option<usize>,
    /// Whether it waits for an operator that it depends on.
    pub(crate) has_unhealthy_dependencies: bool,
    /// Message of the last failed pass; kept after recovery.
    pub(crate) last_error: Option<String>,
    /// When the last pass ended.
    pub(crate) last_reconcile: Option<String>,
    /// Problems, the most severe first.
    pub(crate) problems: Vec<Problem>,
}
