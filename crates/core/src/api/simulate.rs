//! `Simulate`: tests of a Katalog without a cluster, over a world in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::duration::Span;
use super::envelope;
use super::later::Refused;
use super::shape::Shape;
use crate::value::Node;

/// Fields of `spec` that may stand beside it.
pub(crate) const BLOCKS: &[&str] = &["imports"];

/// Cycles of a simulation that does not say how many.
pub const DEFAULT_CYCLES: u32 = 10;
/// The moment of the first cycle where none is given.
pub const DEFAULT_TIME: &str = "2025-01-01T00:00:00Z";
/// The time between two cycles where none is given.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);

/// What a Simulate declares: which custom resources are reconciled, in which world, and what is expected of that.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["target"], "serve targets are not supported yet"))]
pub struct SimulateSpec {
    /// The Katalog file or folder, relative to this file. Required, unless the document has only `imports`.
    pub katalog: Option<String>,
    /// A file with custom resources. The first document of each operated kind is reconciled; further ones of that kind,
    /// and objects that nothing operates, exist from the start.
    pub cr: Option<String>,
    /// Further files of that sort; they follow `cr`.
    pub cr_files: Vec<String>,
    /// A file with the custom resource definitions: they complete custom resources, and say which fields the status has.
    pub crd: Option<String>,
    /// Further files with custom resource definitions.
    pub crd_files: Vec<String>,
    /// How many cycles run: in each, every reconciled custom resource has one pass. Default `10`.
    #[schemars(range(min = 1, max = 1000))]
    pub cycles: Option<u32>,
    /// `true` answers each `external` call that has no answer below with an empty body and the status that is expected.
    /// Default `false`: such a call fails.
    pub skip_external: Option<bool>,
    /// Answers to `external` calls, by the name of the call.
    pub external: BTreeMap<String, StubbedAnswer>,
    /// What becomes of the objects that the operator creates. Default: workloads become ready, Jobs complete, volumes are
    /// bound and load balancers get an address, at the end of the cycle that wrote them.
    pub outcomes: Vec<Outcome>,
    /// Changes that a user makes to the custom resources between cycles.
    pub changes: Vec<Change>,
    /// The moment of the first cycle, as in `2025-06-30T12:00:00Z`. Default `2025-01-01T00:00:00Z`.
    pub at: Option<String>,
    /// The time between two cycles. Default `30s`.
    pub interval: Option<Span>,
    /// What is expected. Without it, the operations are printed and nothing is checked.
    pub expect: Option<Expect>,
    /// Files with further Simulates, relative to this file. Each runs by itself.
    pub imports: Vec<String>,
}

/// The answer of an `external` call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StubbedAnswer {
    /// The HTTP status. Default `200`.
    #[schemars(range(min = 100, max = 599))]
    pub status: Option<u16>,
    /// The body: text, or what is sent as JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    pub body: Option<Node>,
    /// Why the call fails, instead of an answer.
    pub error: Option<String>,
}

/// What becomes of objects of a kind. Of several rules for one object, later ones win.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The kind of the objects, such as `Job`.
    pub kind: String,
    /// Their name. Default: any.
    #[serde(default)]
    pub name: Option<String>,
    /// Their namespace. Default: any.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The cycle at whose end it happens. Default: each cycle that writes the object.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub after: Option<u32>,
    /// What happens. Default `ready`, or nothing where `status` is given.
    #[serde(default)]
    pub result: Option<OutcomeResult>,
    /// Fields of the status to set, beside those that `result` sets.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub status: Option<Node>,
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutcomeResult {
    /// A workload is available, a Job complete, a volume claim bound.
    Ready,
    /// Its controller has seen it, and it gets no further.
    Stuck,
    /// It fails for good: a Deployment, Job or Pod.
    Failed,
}

/// What a user changes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The cycle after which it happens.
    #[schemars(range(min = 1, max = 1000))]
    pub after: u32,
    /// The operator's key in `spec.crds`. Required where several custom resources are reconciled.
    #[serde(default)]
    pub crd: Option<String>,
    /// A JSON merge patch of the custom resource.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub patch: Option<Node>,
    /// `true` requests the deletion of the custom resource, instead of a patch. Default `false`.
    #[serde(default)]
    pub delete: Option<bool>,
}

/// What is expected of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Expect {
    /// What is expected of all operators without a block of their own.
    #[serde(flatten)]
    pub all: Expectations,
    /// What is expected of one operator, by its key in `spec.crds`: it replaces everything above for that operator.
    pub crds: BTreeMap<String, Expectations>,
}

/// What is expected of operators.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Expectations {
    /// `true` expects that some cycle, and each after it, does nothing. `false` expects nothing. Default `false`.
    pub steady: Option<bool>,
    /// The cycle at which, or before which, that is so. A cycle is steady that does nothing, and after which nothing is
    /// done.
    #[schemars(range(min = 1, max = 1000))]
    pub steady_at: Option<u32>,
    /// `true` expects that no cycle fails. `false` expects nothing. Default `false`.
    pub no_errors: Option<bool>,
    /// Operations that are seen.
    pub ops: Vec<OpRule>,
    /// Operations that are not seen.
    pub absent: Vec<OpRule>,
    /// Fields of the custom resource's status after the last cycle; others may be there too.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub status: Option<Node>,
    /// Conditions of the custom resource after the last cycle.
    pub conditions: Vec<ExpectedCondition>,
    /// Objects after the last cycle.
    pub resources: Vec<ExpectedResource>,
}

/// An operation, or a file with some.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpRule {
    /// A file with such rules under `ops`, relative to this one. Nothing else may stand beside it.
    pub include: Option<String>,
    /// The cycle. Default: any.
    #[schemars(range(min = 1, max = 1000))]
    pub cycle: Option<u32>,
    /// What is done. Required under `ops`. Default: anything.
    pub verb: Option<OpVerb>,
    /// The plural of the kind, such as `deployments` or `deployments.apps`; `websites/status` is the status of custom
    /// resources.
    pub resource: Option<String>,
    /// The object's name. Default: any.
    pub name: Option<String>,
    /// The object's namespace. Default: any.
    pub namespace: Option<String>,
    /// How often it is seen at least. Default `1`.
    #[schemars(range(min = 1))]
    pub count: Option<u32>,
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OpVerb {
    /// A child is created.
    Create,
    /// A child is created or changed.
    Apply,
    /// A child is changed.
    Update,
    /// A child is deleted.
    Delete,
    /// A child is changed, or the custom resource: its finalizer, labels, normalized fields or status.
    Patch,
}

/// A condition of a custom resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its status. Default `True`.
    #[serde(default)]
    pub status: Option<ConditionStatus>,
    /// Its reason. Default: any.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold, or is not there.
    False,
    /// It cannot be told.
    Unknown,
}

/// Objects that are expected.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedResource {
    /// Their kind, such as `Deployment` or `Certificate.cert-manager.io`.
    pub kind: String,
    /// Their name. Default: any.
    #[serde(default)]
    pub name: Option<String>,
    /// Their namespace. Default: any in a Simulate; the namespace of the test in an E2E.
    #[serde(default)]
    pub namespace: Option<String>,
    /// `true` expects that each of them is ready. Default `false`.
    #[serde(default)]
    pub ready: Option<bool>,
    /// How many there are; `0` expects none. Default: at least one.
    #[serde(default)]
    pub count: Option<u32>,
    /// Fields of each of them, by path, as in `spec.replicas: 2`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub fields: BTreeMap<String, Node>,
}

/// The shape of a whole Simulate. `spec` may be left out of a suite of `imports`.
pub(crate) fn document_shape() -> Shape {
    envelope::without_spec(envelope::shape::<SimulateSpec>(BLOCKS))
}
