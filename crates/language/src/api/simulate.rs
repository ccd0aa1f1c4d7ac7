//! `Simulate`: tests of a Katalog without a cluster, over a simulated cluster in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::duration::Span;
use super::envelope;
use super::later::Refused;
use super::shape::Shape;
use orkestra_object::value::Node;

/// Fields of `spec` that may stand beside it.
pub(crate) const BLOCKS: &[&str] = &["imports"];

/// Cycles of a simulation that does not say how many.
pub const DEFAULT_CYCLES: u32 = 10;
/// The moment of the first cycle where none is given.
pub const DEFAULT_TIME: &str = "2025-01-01T00:00:00Z";
/// The time between two cycles where none is given.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);

/// The specification of a Simulate: the custom resources to reconcile, their environment, and the expected results.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["target"], "serve targets are not supported yet"))]
pub struct SimulateSpec {
    /// The Katalog file or folder, relative to this file. Required, unless the document has only `imports`.
    pub katalog: Option<String>,
    /// A file with custom resources. The first document of each operated kind is reconciled; further ones of that kind,
    /// and objects that nothing operates, exist from the start.
    pub cr: Option<String>,
    /// Further files with custom resources. They follow `cr`.
    pub cr_files: Vec<String>,
    /// A file with the custom resource definitions: they complete custom resources, and say which fields the status has.
    pub crd: Option<String>,
    /// Further files with custom resource definitions.
    pub crd_files: Vec<String>,
    /// The number of cycles. In each cycle, every reconciled custom resource has one reconcile pass. Default `10`.
    #[schemars(range(min = 1, max = 1000))]
    pub cycles: Option<u32>,
    /// If `true`, each `external` call without a response in `external` gets an empty body and the expected status. Default
    /// `false`: such a call fails.
    pub skip_external: Option<bool>,
    /// Responses to `external` calls, by the name of the call.
    pub external: BTreeMap<String, StubbedAnswer>,
    /// Outcomes of the objects that the operator creates. Default: workloads become ready, Jobs complete, volumes are bound and
    /// load balancers get an address, at the end of the cycle that wrote them.
    pub outcomes: Vec<Outcome>,
    /// Changes that a user makes to the custom resources between cycles.
    pub changes: Vec<UserChange>,
    /// The moment of the first cycle, as in `2025-06-30T12:00:00Z`. Default `2025-01-01T00:00:00Z`.
    pub at: Option<String>,
    /// The time between two cycles. Default `30s`.
    pub interval: Option<Span>,
    /// The expected results. Without it, the operations are printed and nothing is checked.
    pub expect: Option<Expect>,
    /// Files with further Simulates, relative to this file. Each runs by itself.
    pub imports: Vec<String>,
}

/// The response to an `external` call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StubbedAnswer {
    /// The HTTP status. Default `200`.
    #[schemars(range(min = 100, max = 599))]
    pub status: Option<u16>,
    /// The body: text, or what is sent as JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    pub body: Option<Node>,
    /// The error with which the call fails, instead of an answer.
    pub error: Option<String>,
}

/// The outcome of objects of a kind. If several rules match an object, later ones take precedence.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The kind of the objects, such as `Job`.
    pub kind: String,
    /// Name of the objects. Default: any.
    #[serde(default)]
    pub name: Option<String>,
    /// Namespace of the objects. Default: any.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The cycle at whose end it happens. Default: each cycle that writes the object.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub after: Option<u32>,
    /// The outcome. Default `ready`, or nothing where `status` is given.
    #[serde(default)]
    pub result: Option<OutcomeResult>,
    /// Fields of the status to set, in addition to those that `result` sets.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub status: Option<Node>,
}

/// The outcome of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutcomeResult {
    /// A workload is available, a Job complete, a volume claim bound.
    Ready,
    /// Its controller has observed it, and it makes no progress.
    Stuck,
    /// It fails permanently: a Deployment, Job or Pod.
    Failed,
}

/// A change by a user.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserChange {
    /// The cycle after which the change is made.
    #[schemars(range(min = 1, max = 1000))]
    pub after: u32,
    /// The operator's key in `spec.crds`. Required if several custom resources are reconciled.
    #[serde(default)]
    pub crd: Option<String>,
    /// A JSON merge patch of the custom resource.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub patch: Option<Node>,
    /// If `true`, requests the deletion of the custom resource, instead of a patch. Default `false`.
    #[serde(default)]
    pub delete: Option<bool>,
}

/// The expected results of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Expect {
    /// Expectations for all operators without their own block.
    #[serde(flatten)]
    pub all: Expectations,
    /// Expectations for single operators, by key in `spec.crds`. They replace all of the above for that operator.
    pub crds: BTreeMap<String, Expectations>,
}

/// Expectations for operators.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Expectations {
    /// If `true`, expects that some cycle and all later ones do nothing. `false` expects nothing. Default `false`.
    pub steady: Option<bool>,
    /// The cycle by which the simulation must be steady. A cycle is steady if neither it nor any later cycle does anything.
    #[schemars(range(min = 1, max = 1000))]
    pub steady_at: Option<u32>,
    /// If `true`, expects that no cycle fails. `false` expects nothing. Default `false`.
    pub no_errors: Option<bool>,
    /// A list of operations that must occur.
    pub ops: Vec<OpRule>,
    /// A list of operations that must not occur.
    pub absent: Vec<OpRule>,
    /// Fields of the custom resource's status after the last cycle. Other fields are ignored.
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
    /// A file with such rules under `ops`, relative to this one. Must not be combined with other fields.
    pub include: Option<String>,
    /// The cycle. Default: any.
    #[schemars(range(min = 1, max = 1000))]
    pub cycle: Option<u32>,
    /// The operation. Required under `ops`. Default: anything.
    pub verb: Option<OpVerb>,
    /// The plural of the kind, such as `deployments` or `deployments.apps`; `websites/status` is the status of custom
    /// resources.
    pub resource: Option<String>,
    /// The object's name. Default: any.
    pub name: Option<String>,
    /// The object's namespace. Default: any.
    pub namespace: Option<String>,
    /// The minimum number of occurrences. Default `1`.
    #[schemars(range(min = 1))]
    pub count: Option<u32>,
}

/// An operation on an object.
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
    /// Type of the condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// Expected status of the condition. Default `True`.
    #[serde(default)]
    pub status: Option<ExpectedStatus>,
    /// Expected reason of the condition. Default: any.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ExpectedStatus {
    /// It holds.
    True,
    /// It does not hold, or is absent.
    False,
    /// It is unknown.
    Unknown,
}

/// Objects that are expected.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedResource {
    /// Kind of the objects, such as `Deployment` or `Certificate.cert-manager.io`.
    pub kind: String,
    /// Name of the objects. Default: any.
    #[serde(default)]
    pub name: Option<String>,
    /// Namespace of the objects. Default: any in a Simulate; the namespace of the test in an E2E.
    #[serde(default)]
    pub namespace: Option<String>,
    /// If `true`, expects that each object is ready. Default `false`.
    #[serde(default)]
    pub ready: Option<bool>,
    /// The expected number of objects. `0` expects none. Default: at least one.
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
