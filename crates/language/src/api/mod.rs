//! API types: the documents that users write, and the status that Orkestra reports.
//!
//! The types are the only definition of the language's fields. The custom resource definitions, the check of documents for
//! unknown, misshapen and unsupported fields, and the reference documents are derived from their schemas. Doc comments of fields
//! are the descriptions that users read.

pub mod apply_set;
pub mod auth;
pub mod autoscale;
pub mod calls;
pub mod children;
pub mod cleanup;
pub mod conditions;
pub mod conversion;
mod crd;
pub mod cross;
pub mod depends;
pub mod duration;
pub mod e2e;
pub mod emit;
pub mod endpoints;
pub mod enrich;
mod entry_schema;
mod envelope;
pub mod gate;
pub mod hooks;
pub mod info;
pub mod keys;
pub mod later;
pub mod lifecycle;
pub mod motif;
pub mod names;
pub mod notes;
mod notification;
pub mod observe;
pub mod oci;
mod on_delete;
pub mod operator_box;
pub mod or_template;
pub mod pre_reconcile;
pub mod profiles;
mod providers;
pub mod queue;
pub mod rules;
pub mod scalar;
pub mod security;
pub mod setup;
pub mod shape;
pub mod simulate;
pub mod sources;
pub mod status;
pub mod status_condition;
pub mod targets;

pub mod katalog;
pub mod komposer;

pub use calls::ExternalCall;
pub use children::Lifecycle;
pub use cleanup::{BoxRuntime, Cleanup};
pub use conversion::{Conversion, ConversionPath};
pub use crd::{crds, crds_yaml};
pub use cross::{Cross, CrossSelector};
pub use depends::{DependencyCondition, DependsOn};
pub use e2e::E2eSpec;
pub use emit::{Emit, EmitOn, EmittedEvent};
pub use enrich::EnrichTarget;
pub use entry_schema::{EntrySchema, PrinterColumn, SchemaNames, SchemaRule};
pub use gate::{DayOfWeek, GateCondition, GateOperator, Gates, TimeWindow, ValueType};
pub use hooks::{Constructor, Hook, HookAt, HookHttp, HookProtocol, Hooks, ManagedResource};
pub use katalog::{ApiTypes, CrdEntry, DeletionPolicy, Katalog, KatalogSpec};
pub use katalog::{Scope, Scopes};
pub use komposer::{Komposer, KomposerSpec, KomposerStatus, LockMode};
pub use motif::{Motif, MotifImport, MotifSpec};
pub use notes::{Note, Notes};
pub use on_delete::{DeleteGroup, OnDelete};
pub use operator_box::{OperatorBox, Reconciler, StatusField, StatusSpec, StatusType};
pub use or_template::OrTemplate;
pub use pre_reconcile::{Hold, PreReconcile, Requeue, Requeues};
pub use profiles::{Profile, Profiles};
pub use scalar::{Scalar, Text, Texts};
pub use security::{EntryProtection, EntryWebhooks, FailurePolicy, Operation, Security};
pub use setup::{HelmChart, Setup, SetupFile, SetupWait};
pub use simulate::SimulateSpec;
pub use sources::Sources;
pub use status::{
    FailingInstances, KatalogStatus, OperatedKind, OperatorStatus, RulePlaces, SourceStatus,
};
pub use status_condition::{StatusCondition, StatusConditions};
pub use targets::{AllowedTarget, LabelOperator, LabelRequirement, NamespaceSelector};
