//! Further blocks of `operatorBox`.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::calls::ExternalCall;
use crate::api::gate::Gates;
use crate::api::scalar::{Scalar, Text};

/// Further blocks of `operatorBox`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BoxLater {
    /// Resources outside of the cluster, by provider.
    providers: Option<BTreeMap<String, Vec<ProviderResource>>>,
    /// Nothing is rolled back.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the next reconcile pass continues where this one failed"))]
    roll_back_on_error: Option<bool>,
    /// What is applied again after passes that failed.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the next reconcile pass continues where this one failed"))]
    rollback: Option<serde_json::Value>,
    /// A function in Go that runs beside the declared blocks.
    hooks: Option<Hooks>,
    /// A reconciler in Go that runs instead of the declared blocks.
    constructor: Option<Constructor>,
}

/// A resource outside of the cluster: its type, and the fields of that.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderResource {
    /// Another form: what is done.
    action: Option<Text>,
    /// Another form: with what it is done.
    input: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(flatten)]
    types: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

/// A function in Go. None can be loaded here.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hooks {
    #[serde(flatten)]
    constructor: Constructor,
    /// `true` runs it before the declared blocks. Default `false`.
    run_hooks_first: Option<bool>,
}

/// A reconciler in Go. None can be loaded here.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Constructor {
    /// Where the code is.
    location: Option<String>,
    /// The function's name.
    function: Option<String>,
    /// What the code's package is called.
    alias: Option<String>,
    /// Kinds that the code makes.
    managed_resources: Option<Vec<ManagedResource>>,
    /// Arguments.
    args: Option<BTreeMap<String, serde_json::Value>>,
    /// Calls before it.
    external: Option<Vec<ExternalCall>>,
}

/// A kind that code makes.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ManagedResource {
    /// The kind.
    kind: String,
}

/// Further fields of a queue.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueLater {
    /// What happens to a queue that is full.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "nothing is ever dropped from a queue"))]
    behaviour: Option<QueueBehaviour>,
}

/// What happens to a queue that is full.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueBehaviour {
    /// At `maxDepth`.
    on_limit: Option<OnLimit>,
    /// At a share of `maxDepth`.
    on_threshold: Option<OnThreshold>,
}

/// What happens at `maxDepth`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnLimit {
    /// Whether more is dropped.
    drop: Option<bool>,
    #[serde(flatten)]
    gates: Gates,
}

/// What happens at a share of `maxDepth`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnThreshold {
    /// The share, in percent.
    value: Option<Scalar>,
    #[serde(flatten)]
    gates: Gates,
}
