//! `operatorBox`: the behavior of an operator for each custom resource.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::autoscale::Autoscale;
use super::calls::ExternalCall;
use super::children::Lifecycle;
use super::cleanup::BoxRuntime;
use super::cross::Cross;
use super::duration::Span;
use super::emit::Emit;
use super::gate::GateCondition;
use super::hooks::{Constructor, Hooks};
use super::later::{Later, Refused};
use super::observe::Observe;
use super::on_delete::OnDelete;
use super::pre_reconcile::{PreReconcile, Requeues};
use super::providers::ProviderResource;
use super::queue::Queue;
use super::rules::Normalize;
use super::scalar::{Scalar, Text};
use super::status_condition::StatusConditions;

/// The reconciliation of each custom resource of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorBox {
    /// If `false`, `constructor` decides on all children, and no blocks are declared. Default `true`: the declared blocks
    /// are the reconciler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
    /// Workers and resync period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciler: Option<Reconciler>,
    /// Functions outside of the Katalog that are called in addition to the declared blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// A function outside of the Katalog that decides on all children. It requires `default: false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constructor: Option<Constructor>,
    /// A list of calls that are made in every reconcile pass, before those of the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
    /// Children that are created once. A child that is deleted later is not created again, and the condition `Ready` reports
    /// it. To keep an object as declared, declare it under `onReconcile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_create: Option<Lifecycle>,
    /// Children that are kept as declared, and deleted when their `when` no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_reconcile: Option<Lifecycle>,
    /// Work to complete before a custom resource is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// A list of custom resources of other operators to read. A change of one triggers a reconcile pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<Cross>,
    /// Objects and Events that trigger a reconcile pass, in addition to the custom resource, its children and the objects that
    /// templates read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe: Option<Observe>,
    /// The status of the custom resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusSpec>,
    /// Conditions that must all hold for the children of the box to be created and kept. They apply to every block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold for the children of the box to be created and kept. If `when` is also set,
    /// both apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// Conditions for a reconcile pass to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_reconcile: Option<PreReconcile>,
    /// The same as `normalize` of the entry, which is the recommended place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalize>,
    /// Scaling of workers and queue by conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<Autoscale>,
    /// A list of finalizers that are added to every custom resource, in addition to Orkestra's. Each is removed by its own
    /// controller. `[]` also omits Orkestra's finalizer. Default: those of the entry, or else those of the Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// Tasks of the operator other than reconciling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<BoxRuntime>,
    /// Events to emit, in addition to the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emit: Option<Emit>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<BoxLater>,
}

/// Further blocks of `operatorBox`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct BoxLater {
    /// External resources, by provider.
    providers: Option<BTreeMap<String, Vec<ProviderResource>>>,
    /// If `true`, a failed reconcile pass is rolled back.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the next reconcile pass continues where this one failed"))]
    roll_back_on_error: Option<bool>,
    /// The rollback after failed reconcile passes.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the next reconcile pass continues where this one failed"))]
    rollback: Option<serde_json::Value>,
}

/// Workers, resync period and queue of the operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["remote"], "declare the service as `constructor.http`"))]
pub struct Reconciler {
    /// The maximum number of resources that are reconciled concurrently. If not set, it grows up to 32 while resources wait.
    /// Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// The interval at which every custom resource is reconciled without a change, such as `10m`. `0s` disables it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
    /// A profile that provides the fields that are not set: a built-in one such as `conservative`, or one of
    /// `profiles.reconciler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Path of a file with further fields under `reconciler`, relative to this file. Fields set here take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// The queue of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Reconciles a custom resource again after a delay. In a list, the first rule whose conditions hold applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue: Option<Requeues>,
}

/// The status of the custom resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusSpec {
    /// Path of a file with further fields under `fields`, relative to this file. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// If `false`, the automatic conditions and `observedGeneration` are not written. Default `true`. A list adds custom
    /// conditions to the automatic ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<StatusConditions>,
    /// Conditions that must all hold for the condition `Ready` to be true, in addition to its own requirements: everything is
    /// as declared, and the children are ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ready_when: Vec<GateCondition>,
    /// A list of fields to write, in order. If two have the same path, the later one applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<StatusField>,
}

/// One field of the custom resource's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusField {
    /// Path of the field, relative to `status`, separated by dots: `network.endpoint`.
    pub path: Text,
    /// The value, or a template for it.
    pub value: Scalar,
    /// Type of the value. If not set, it is taken from the schema of the custom resource.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<StatusType>,
    /// Conditions that must all hold. Otherwise the field keeps its current value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold. Otherwise the field keeps its current value. If `when` is also set, both
    /// apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// If `true`, the field is cleared when the conditions do not hold: a string becomes empty if its schema permits it, any
    /// other value is removed. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear_on_false: Option<bool>,
}

/// The type of a status field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StatusType {
    /// Text.
    String,
    /// An integer.
    Int,
    /// A number.
    Float,
    /// `true` or `false`.
    Bool,
    /// The type that the text looks like: a number, a boolean, else text.
    Auto,
}
