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
    /// External resources, by provider.
    providers: Option<BTreeMap<String, Vec<ProviderResource>>>,
    /// If `true`, a failed reconcile pass is rolled back.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the next reconcile pass continues where this one failed"))]
    roll_back_on_error: Option<bool>,
    /// The rollback after failed reconcile passes.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the next reconcile pass continues where this one failed"))]
    rollback: Option<serde_json::Value>,
    /// A function in Go that runs in addition to the declared blocks.
    hooks: Option<Hooks>,
    /// A reconciler in Go that runs instead of the declared blocks.
    constructor: Option<Constructor>,
}

/// An external resource: its type, and the fields of the type.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderResource {
    /// Alternative form: the action.
    action: Option<Text>,
    /// Alternative form: the input of the action.
    input: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(flatten)]
    types: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

/// A function in Go. Orkestra cannot load Go code.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hooks {
    #[serde(flatten)]
    constructor: Constructor,
    /// If `true`, runs before the declared blocks. Default `false`.
    run_hooks_first: Option<bool>,
}

/// A reconciler in Go. Orkestra cannot load Go code.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Constructor {
    /// Import path of the code.
    location: Option<String>,
    /// Name of the function.
    function: Option<String>,
    /// Import alias of the package.
    alias: Option<String>,
    /// A list of kinds that the code creates.
    managed_resources: Option<Vec<ManagedResource>>,
    /// Arguments of the function.
    args: Option<BTreeMap<String, serde_json::Value>>,
    /// A list of calls that are made before it.
    external: Option<Vec<ExternalCall>>,
}

/// A kind that the code creates.
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
    /// The handling of a full queue.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "nothing is ever dropped from a queue"))]
    behaviour: Option<QueueBehaviour>,
}

/// The handling of a full queue.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueBehaviour {
    /// The handling at `maxDepth`.
    on_limit: Option<OnLimit>,
    /// The handling at a percentage of `maxDepth`.
    on_threshold: Option<OnThreshold>,
}

/// The handling at `maxDepth`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnLimit {
    /// If `true`, further items are dropped.
    drop: Option<bool>,
    #[serde(flatten)]
    gates: Gates,
}

/// The handling at a percentage of `maxDepth`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnThreshold {
    /// The threshold, as a percentage.
    value: Option<Scalar>,
    #[serde(flatten)]
    gates: Gates,
}
