//! `reconciler.queue`: the queue of an operator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::gate::Gates;
use super::later::{Idle, Later};
use super::scalar::Scalar;

/// The queue of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Queue {
    /// The depth at which the queue counts as full. Autoscalers and pages use percentages of it; nothing is ever dropped.
    /// Default `0`, which means that no depth is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub max_depth: Option<u32>,
    /// The operator is degraded after this many failed reconcile passes, if this many custom resources (or all, if there are
    /// fewer) fail and they are at least half of all. A resource that fails because of its own input is not counted at all. The
    /// operator has recovered when fewer resources fail, or when this many of the failed resources succeed in succession
    /// without a failure. Default `5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub failure_threshold: Option<u32>,
    /// The Katalog is not ready while more than this percentage of the custom resources that a revision made ready fail under
    /// the revision in force. Only those count that were ready under an earlier revision and whose spec has not changed since.
    /// `100` disables this. Default `10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub failing_percent: Option<u32>,
    /// `true` has no effect: every operator has its own queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// The backoff after a failed reconcile pass. A failed reconcile pass is retried until it succeeds. If not set, the first
    /// delay is `5ms`, each delay is twice as long as the previous one, and the maximum is `1000s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<QueueBackoff>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<QueueLater>,
}

/// Further fields of a queue.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct QueueLater {
    /// The handling of a full queue.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "nothing is ever dropped from a queue"))]
    behaviour: Option<QueueBehaviour>,
}

/// The handling of a full queue.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct QueueBehaviour {
    /// The handling at `maxDepth`.
    on_limit: Option<OnLimit>,
    /// The handling at a percentage of `maxDepth`.
    on_threshold: Option<OnThreshold>,
}

/// The handling at `maxDepth`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct OnLimit {
    /// If `true`, further items are dropped.
    drop: Option<bool>,
    #[serde(flatten)]
    gates: Gates,
}

/// The handling at a percentage of `maxDepth`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct OnThreshold {
    /// The threshold, as a percentage.
    value: Option<Scalar>,
    #[serde(flatten)]
    gates: Gates,
}

/// The backoff after a failed reconcile pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum QueueBackoff {
    /// The first delay only.
    Initial(Span),
    /// All fields.
    Full(QueueWaits),
}

/// Exponentially increasing delays after failed reconcile passes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["maxAttempts"], "a failed reconcile pass is retried until it succeeds"))]
pub struct QueueWaits {
    /// The first delay. Default `500ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// The maximum delay. Default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// The factor by which the delay grows after each attempt. Default `2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Scalar>,
}
