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
    /// What else leads to a pass.
    observe: Option<Observe>,
    /// Nothing is rolled back.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "the next pass goes on where this one failed"))]
    roll_back_on_error: Option<bool>,
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

/// What else leads to a pass.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Observe {
    /// Objects whose changes do.
    watch: Option<Vec<Watch>>,
    /// Events that do, by the name under `.events`.
    events: Option<BTreeMap<String, EventFilter>>,
    /// File with more of both, relative to this one.
    include: Option<String>,
}

/// Objects whose changes lead to a pass.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Watch {
    /// Their `apiVersion`.
    api_version: String,
    /// Their kind.
    kind: String,
    /// Their namespace. Default: any.
    namespace: Option<String>,
    /// Their name. Default: any.
    name: Option<String>,
    /// The changes. Default: all.
    on: Option<Vec<Change>>,
    /// How the custom resource is found. Default: by owner reference.
    key_from: Option<KeyFrom>,
    /// Indexes for code.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    index: Option<Vec<Index>>,
}

/// A change of an object.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    Create,
    Update,
    Delete,
}

/// How the custom resource that belongs to an object is found: by `label` or by `name`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyFrom {
    /// The label that holds its name.
    label: Option<String>,
    /// A template that gives its name.
    name: Option<Text>,
    /// A template that gives its namespace, beside `name`.
    namespace: Option<Text>,
}

/// An index for code.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    /// Its name.
    name: String,
    /// The path that it is over.
    field: String,
}

/// Events (events.k8s.io/v1) that lead to a pass. All that is given must be so.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventFilter {
    /// The event's reason.
    reason: Option<String>,
    /// The event's action.
    action: Option<String>,
    /// The event's type: `Normal` or `Warning`.
    #[serde(rename = "type")]
    type_: Option<String>,
    /// Who reports it.
    reporting_controller: Option<String>,
    /// Which instance reports it.
    reporting_instance: Option<String>,
    /// The event's namespace.
    namespace: Option<String>,
    /// The changes. Default: all.
    on: Option<Vec<Change>>,
    /// The object that it is about.
    regarding: Option<ObjectFilter>,
    /// The other object that it is about.
    related: Option<ObjectFilter>,
    /// How the custom resource is found. Default: by owner reference.
    key_from: Option<KeyFrom>,
}

/// An object that an event is about.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectFilter {
    /// Its `apiVersion`.
    api_version: Option<String>,
    /// Its kind.
    kind: Option<String>,
    /// Its name.
    name: Option<String>,
    /// Its namespace.
    namespace: Option<String>,
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
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "nothing is ever dropped from a queue"))]
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
