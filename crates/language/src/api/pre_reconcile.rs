//! `preReconcile` and `requeue`: the conditions under which a reconcile pass runs, and the time of the next one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::ExternalCall;
use super::gate::Gates;
use super::later::Idle;
use super::scalar::Text;

/// Conditions for a reconcile pass to run. A resource that is held back is evaluated again when something changes that a gate
/// reads, including the time. If calls are made for a gate, `requeue` and the resync evaluate it too. A resource that is being
/// deleted is never held back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["sentinels"], "a reconcile pass follows from the state, not from what changed: compare `metadata.generation` with `status.observedGeneration`"))]
pub struct PreReconcile {
    /// Conditions for a custom resource to be queued. While they do not hold, no reconcile pass runs, and the condition `Gated`
    /// of the resource reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueue_gate: Option<Hold>,
    /// Conditions for a queued custom resource to be reconciled. While they do not hold, no reconcile pass runs: the condition
    /// `Gated` of the resource reports it, and the operator's health shows it as gated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile_gate: Option<Hold>,
    /// A list of calls that are made before both gates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// Conditions for a reconcile pass to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["eventAware", "sentinels"], "a reconcile pass follows from the newest state, not from what changed"))]
#[schemars(transform = Idle(&["failPolicy"], "a gate that cannot be evaluated fails the reconcile pass, which is retried"))]
pub struct Hold {
    /// What is asked.
    #[serde(flatten)]
    pub gates: Gates,
    /// A list of calls that are made before the gate. Those of the second gate are made when the first one is open. If a call
    /// fails without `continueOnError`, the reconcile pass fails: the gate is neither open nor closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// Rules for reconciling a custom resource again: one rule, or a list of which the first that holds applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Requeues {
    /// One rule.
    One(Requeue),
    /// Several rules: the first that holds applies.
    Several(Vec<Requeue>),
}

/// Reconciles a custom resource again after a delay, in addition to the resync.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Requeue {
    /// The delay after a reconcile pass that succeeded, or that was held back by a gate for which calls are made: a duration
    /// such as `5m`, at least `1s`, or a template for one. Empty and `0s` disable it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Text>,
    /// What must hold for it.
    #[serde(flatten)]
    pub gates: Gates,
}
