//! `reconciler.queue`: the queue of an operator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::later::{Idle, Later};
use super::planned::QueueLater;
use super::scalar::Scalar;

/// The queue of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Queue {
    /// The depth that counts as a full queue: autoscalers and pages take shares of it, and nothing is ever dropped.
    /// Default `0`, which is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub max_depth: Option<u32>,
    /// The operator is degraded after this many failed passes, once this many resources fail (or all, where there are fewer)
    /// and they are at least half of all. A resource that fails because of its own input counts neither among those that
    /// fail nor among all. The operator has recovered when fewer resources fail, or when this many of those that failed
    /// succeed without a failure in between. Default `5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub failure_threshold: Option<u32>,
    /// `true` has no effect: every operator has a queue of its own, so that none waits behind another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// How long a resource whose pass failed waits for the next. A failed pass is tried again for as long as it takes;
    /// left out, the first wait is `5ms`, each is twice as long as the one before, and the longest is `1000s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<QueueBackoff>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<QueueLater>,
}

/// How long a resource whose pass failed waits for the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum QueueBackoff {
    /// The first wait alone.
    Initial(Span),
    /// All of it.
    Full(QueueWaits),
}

/// Waits after failed passes, each longer than the one before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["maxAttempts"], "a failed reconcile pass is retried until it succeeds"))]
pub struct QueueWaits {
    /// The first wait. Default `500ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// The longest wait. Default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// How many times as long as the one before each wait is. Default `2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Scalar>,
}
