//! The responses of the HTTP API, as types. `docs/openapi.json` and the tables of `docs/http-api.md` are generated from them: the
//! first line of each field's documentation is its description there.
//!
//! One file: types without logic.

mod instances;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub(super) use self::instances::{Child, Instance, Instances, Item};

/// A summary of all operators.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// False while an operator is degraded.
    pub(super) healthy: bool,
    /// Whether `/readyz` answers 200.
    #[serde(rename = "OrkReady")]
    pub(super) ork_ready: bool,
    /// Whether the API server is reachable. While it is unreachable, all operators wait.
    pub(super) api_server: ApiServer,
    /// 503 while an operator is degraded, else 200; the HTTP status of the response is always 200.
    pub(super) status: u16,
    /// The first degraded operator, and why.
    pub(super) degraded_reason: Option<String>,
    /// Entries of all Katalogs and Komposers, including disabled ones.
    pub(super) total: usize,
    /// Operators.
    pub(super) total_enabled: usize,
    /// Degraded operators.
    pub(super) total_degraded: usize,
    /// Operators by state.
    pub(super) status_counts: BTreeMap<&'static str, usize>,
    /// Entries by the namespace of their Katalog.
    pub(super) namespaces: BTreeMap<String, Vec<String>>,
    /// Whether this process is the leader, which reconciles.
    pub(super) is_konductor: bool,
    /// Identity of this process in leader election.
    pub(super) identity: String,
    /// Identity of the leader; null if there is none.
    pub(super) leader: Option<String>,
    /// Why this process cannot take part in leader election.
    pub(super) election_problem: Option<String>,
    /// Version of `ork`.
    pub(super) runtime_version: &'static str,
    /// The Katalogs and Komposers, sorted by namespace and name.
    pub(super) katalogs: Vec<Katalog>,
    /// The operators of all Katalogs.
    pub(super) crds: Vec<OperatorRow>,
    /// Name of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// Description of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// Version of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Author of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) author: Option<String>,
    /// License of the Katalog, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) license: Option<String>,
}

/// Whether the API server is reachable.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiServer {
    /// False once requests and a probe got no response.
    pub(super) reachable: bool,
    /// How long it has been unreachable.
    pub(super) away_seconds: Option<u64>,
    /// The failure of the last probe.
    pub(super) reason: Option<String>,
}

/// A Katalog or a Komposer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Katalog {
    /// `Katalog` or `Komposer`.
    pub(super) kind: &'static str,
    /// Its namespace; `default` for Katalogs from files.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// Its description.
    pub(super) description: String,
    /// Its own version.
    pub(super) version: String,
    /// Its author.
    pub(super) author: String,
    /// Its license.
    pub(super) license: String,
    /// Status of its condition `Ready`; null is `Unknown`.
    pub(super) ready: Option<bool>,
    /// Reason of that condition.
    pub(super) reason: String,
    /// Message of that condition.
    pub(super) message: String,
    /// Name of the running revision; null until one has been accepted.
    pub(super) revision: Option<String>,
    /// Entries with `enabled: false`.
    pub(super) disabled: Vec<String>,
    /// The sources that it is composed from, in the order in which they are merged; empty without `sources`.
    pub(super) sources: Vec<SourceRow>,
}

/// A source of a Komposer, or of a Katalog with `sources`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceRow {
    /// Its identity, as in `komposer.lock`.
    pub(super) source: String,
    /// Where it was fetched from, without credentials; empty until it was.
    pub(super) url: String,
    /// The revision in use: a tag, `branch@commit` or a version.
    pub(super) revision: String,
    /// The digest of the revision in use.
    pub(super) digest: String,
    /// Who signed it; null if no signature is required.
    pub(super) verified: Option<String>,
    /// Why a newer revision is not in use, or why there is none; null if the newest is in use.
    pub(super) message: Option<String>,
    /// The entries that come from it.
    pub(super) operators: Vec<String>,
}

/// The summary of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorRow {
    /// Its entry in `spec.crds`.
    pub(super) name: String,
    /// Namespace of its Katalog.
    pub(super) namespace: String,
    /// Name of its Katalog or Komposer.
    pub(super) katalog: String,
    /// `Katalog` or `Komposer`: the kind that declares it.
    pub(super) declared_by: &'static str,
    /// The source that it comes from; null if its Katalog declares it.
    pub(super) source: Option<String>,
    /// Path of its page.
    pub(super) path: String,
    /// The kind that it reconciles.
    pub(super) gvk: Gvk,
    /// Its state.
    pub(super) state: StateWord,
    /// Whether the state is `started`, `healthy` or `standby`.
    pub(super) healthy: bool,
    /// Why it is not healthy; null if no problem is known.
    pub(super) reason: Option<String>,
    /// Running workers.
    pub(super) workers: usize,
    /// Custom resources that wait for a worker.
    pub(super) queue_depth: usize,
    /// Custom resources.
    pub(super) resource_count: usize,
    /// Custom resources that are ready.
    pub(super) ready_count: usize,
    /// Always true: a disabled entry has no operator.
    pub(super) enabled: bool,
}

/// State of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StateWord {
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
pub(super) struct Gvk {
    /// API group; empty for the core group.
    pub(super) group: String,
    /// Version.
    pub(super) version: String,
    /// Kind.
    pub(super) kind: String,
}

/// A resource.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Gvr {
    /// API group; empty for the core group.
    pub(super) group: String,
    /// Version.
    pub(super) version: String,
    /// Plural; null while the kind is not known to the cluster.
    pub(super) resource: Option<String>,
}

/// An operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Operator {
    /// Its entry in `spec.crds`.
    pub(super) name: String,
    /// Namespace of its Katalog.
    pub(super) namespace: String,
    /// Name of its Katalog or Komposer.
    pub(super) katalog: String,
    /// `Katalog` or `Komposer`: the kind that declares it.
    pub(super) declared_by: &'static str,
    /// The source that it comes from; null if its Katalog declares it.
    pub(super) source: Option<String>,
    /// Path of this page.
    pub(super) path: String,
    /// The kind that it reconciles.
    pub(super) gvk: Gvk,
    /// The resource of the kind.
    pub(super) gvr: Gvr,
    /// `Namespaced` or `Cluster`; null while unknown.
    pub(super) scope: Option<&'static str>,
    /// Always `dynamic`.
    pub(super) mode: &'static str,
    /// Its state.
    pub(super) state: StateWord,
    /// Whether the state is `started`, `healthy` or `standby`.
    pub(super) healthy: bool,
    /// Why it is not healthy; null if no problem is known.
    pub(super) reason: Option<String>,
    /// The running revision; null if there is none.
    pub(super) revision: Option<String>,
    /// The wanted revision, while it differs from the running one.
    pub(super) wanted_revision: Option<String>,
    /// Its workers.
    pub(super) workers: Workers,
    /// The settings of `autoscale`; null if there are none.
    pub(super) autoscaler: Option<Autoscaler>,
    /// How often each custom resource is reconciled without a change.
    pub(super) resync: String,
    /// Its queue.
    pub(super) queue: Queue,
    /// Custom resources that wait for a worker.
    pub(super) queue_depth: usize,
    /// Custom resources.
    pub(super) resource_count: usize,
    /// Custom resources that are ready.
    pub(super) ready_count: usize,
    /// Always true: a disabled entry has no operator.
    pub(super) enabled: bool,
    /// The condition to wait for, `started` or `healthy`, by entry.
    pub(super) depends_on: BTreeMap<String, &'static str>,
    /// Whether custom resources get a finalizer.
    pub(super) finalizer: bool,
    /// Kinds of children that it declares.
    pub(super) children: Vec<String>,
    /// The entry of another version that reconciles instead.
    pub(super) yields_to: Option<String>,
    /// The Katalog that has claimed the kind, as `namespace/name`.
    pub(super) conflicts_with: Option<String>,
    /// Problems, the most severe first.
    pub(super) problems: Vec<Problem>,
    /// Counts and rates.
    pub(super) metrics: Rates,
    /// Requests to its webhooks since the start of this process; null if there were none.
    pub(super) webhooks: Option<Webhooks>,
    /// Other pages.
    pub(super) endpoints: Endpoints,
}

/// Workers of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Workers {
    /// Running workers.
    pub(super) current: usize,
    /// The declared number, or the default.
    pub(super) configured: usize,
    /// The limit.
    pub(super) most: usize,
    /// The source of the limit: `autoscaler`, `default` or `configured`.
    pub(super) source: &'static str,
}

/// The settings of `autoscale`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Autoscaler {
    /// Whether `do` is in force.
    pub(super) active: bool,
    /// How often its conditions are evaluated.
    pub(super) interval: String,
    /// How long `do` stays in force after its conditions turn false.
    pub(super) cooldown: String,
    /// The capacity while its conditions are true.
    #[serde(rename = "do")]
    pub(super) capacity: Capacity,
}

/// The changes of an autoscaler; null is unchanged.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capacity {
    /// Workers.
    pub(super) workers: Option<usize>,
    /// Depth of the queue that counts as full.
    pub(super) queue_depth: Option<u32>,
    /// Interval of the resync.
    pub(super) resync: Option<String>,
}

/// Queue of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Queue {
    /// Custom resources that wait for a worker.
    pub(super) depth: usize,
    /// Depth that counts as full; 0 is none.
    pub(super) max_depth: u32,
    /// Consecutive failed passes after which the operator is degraded.
    pub(super) failure_threshold: u64,
}

/// A problem of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Problem {
    /// One of the reasons of [reasons.md](reasons.md).
    pub(super) reason: &'static str,
    /// The message.
    pub(super) message: String,
}

/// Counts and rates of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rates {
    /// Running workers.
    pub(super) workers: usize,
    /// Custom resources that wait for a worker.
    pub(super) queue_depth: usize,
    /// Failed passes since the start as a fraction of all, from 0 to 1; null if another process leads.
    pub(super) error_rate: Option<f64>,
    /// Successful passes since the start as a fraction of all, from 0 to 1; null if another process leads.
    pub(super) success_rate: Option<f64>,
}

/// Requests to the webhooks of an operator, in this process.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Webhooks {
    /// Requests that rules were applied to.
    pub(super) validations: u64,
    /// Requests that were refused.
    pub(super) denials: u64,
    /// Requests that were changed.
    pub(super) mutations: u64,
    /// Converted objects.
    pub(super) conversions: u64,
    /// Objects that could not be converted.
    pub(super) conversion_failures: u64,
    /// Average duration of the latest requests, in milliseconds.
    pub(super) average_milliseconds: f64,
    /// The duration, in milliseconds, that 95 of 100 of the latest requests do not exceed.
    pub(super) p95_milliseconds: f64,
}

/// Other pages of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Endpoints {
    /// Path of its health page.
    pub(super) health: String,
    /// Path of its custom resources.
    pub(super) cr: String,
}

/// Health of an operator.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a field of the response"
)]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health {
    /// Its entry in `spec.crds`.
    pub(super) name: String,
    /// Namespace of its Katalog.
    pub(super) namespace: String,
    /// Name of its Katalog.
    pub(super) katalog: String,
    /// Its state.
    pub(super) state: StateWord,
    /// The HTTP status of the response: 200, or 503 if the operator is degraded or pending.
    pub(super) status: u16,
    /// Whether this process is the leader.
    pub(super) is_konductor: bool,
    /// Whether the state is `started`, `healthy` or `standby`.
    pub(super) healthy: bool,
    /// Whether workers run; null if another process leads.
    pub(super) started: Option<bool>,
    /// Whether the state is `pending`.
    pub(super) pending: bool,
    /// Why it is not healthy; null if no problem is known.
    pub(super) reason: Option<String>,
    /// When its workers started here.
    pub(super) started_at: Option<String>,
    /// How long its workers have run here.
    pub(super) uptime_seconds: Option<i64>,
    /// Custom resources that wait for a worker.
    pub(super) queue_depth: usize,
    /// Failed passes since the start as a fraction of all, from 0 to 1; null if another process leads.
    pub(super) error_rate: Option<f64>,
    /// Failed passes since the last success; null if another process leads.
    pub(super) consecutive_fails: Option<u64>,
    /// Since when it has been degraded by failed passes.
    pub(super) degraded_since: Option<String>,
    /// Passes since the start; null if another process leads.
    pub(super) total_reconciles: Option<u64>,
    /// Failed passes since the start; null if another process leads.
    pub(super) total_failed: Option<u64>,
    /// Custom resources.
    pub(super) resource_count: usize,
    /// Custom resources that are ready.
    pub(super) ready_count: usize,
    /// Custom resources that a reconcile gate blocks; null if another process leads.
    pub(super) gated: Option<usize>,
    /// Whether it waits for an operator that it depends on.
    pub(super) has_unhealthy_dependencies: bool,
    /// Message of the last failed pass; kept after recovery.
    pub(super) last_error: Option<String>,
    /// When the last pass ended.
    pub(super) last_reconcile: Option<String>,
    /// Problems, the most severe first.
    pub(super) problems: Vec<Problem>,
}
