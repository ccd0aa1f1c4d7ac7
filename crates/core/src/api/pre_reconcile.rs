//! When a pass runs: what must hold before one, and when another follows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::ExternalCall;
use super::gate::Gates;
use super::later::Idle;
use super::scalar::Text;

/// What must hold before a pass. A resource that is held back is looked at again when something changes that a gate asks
/// for, also the time; where calls are made for a gate, `requeue` and the resync look again too. One that is being deleted is
/// never held back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["sentinels"], "a reconcile pass follows from the state, not from what changed: compare `metadata.generation` with `status.observedGeneration`"))]
pub struct PreReconcile {
    /// What must hold for a resource to be queued. While it doesn't, no pass runs, and the condition `Gated` of the resource says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueue_gate: Option<Hold>,
    /// What must hold for a queued resource to be reconciled. While it doesn't, no pass runs: the condition `Gated` of the
    /// resource says so, and the operator's health shows it as gated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile_gate: Option<Hold>,
    /// Calls before either gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// What must hold before a pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["eventAware", "sentinels"], "a reconcile pass follows from the newest state, not from what changed"))]
#[schemars(transform = Idle(&["failPolicy"], "a gate that cannot be evaluated fails the reconcile pass, which is retried"))]
pub struct Hold {
    /// What is asked.
    #[serde(flatten)]
    pub gates: Gates,
    /// Calls before the gate; those of the second gate are made when the first one is open. One that fails and must not
    /// fails the pass: the gate is neither open nor closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// When a resource is reconciled again: one rule, or several of which the first that holds counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Requeues {
    /// One rule.
    One(Requeue),
    /// Several: the first that holds counts.
    Several(Vec<Requeue>),
}

/// Reconciles a resource again after a while. The resync goes on beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Requeue {
    /// How long after a pass that went well, or that was held back by a gate for which calls are made: a duration such as
    /// `5m`, at least a second, or a template for one. Empty and `0s` are not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Text>,
    /// What must hold for it.
    #[serde(flatten)]
    pub gates: Gates,
}
