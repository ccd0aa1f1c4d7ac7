//! The types of a plan, which `compile` creates and `step` reads.
//!
//! One file: types without logic.

mod child;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    AdmissionPlan, CallPlan, CleanupPlan, ConversionPlan, EmitPlan, EnrichPlan, Gate, GroupKind,
    HoldPlan, KatalogRef, MetadataKey, ObservePlan, OnDeletePlan, RequeuePlan, ResourceType,
    RulesPlan, SecurityPlan, TargetsPlan, Watched, cross::CrossPlan, introspection::Introspection,
};
use crate::{
    api::{DeletionPolicy, DependencyCondition, apply_set, names},
    value::{Key, Path},
};

pub use child::*;

/// A compiled Katalog.
#[derive(Debug)]
pub struct Plan {
    /// The Katalog.
    pub katalog: KatalogRef,
    /// One for each enabled entry of `spec.crds` that can run, sorted by name.
    pub operators: Vec<Arc<OperatorPlan>>,
    /// Enabled entries that do not run, sorted by name.
    pub stopped: Vec<Stopped>,
    /// Whether custom resources are deleted with the Katalog.
    pub deletion_policy: DeletionPolicy,
    /// Protection and webhooks.
    pub security: SecurityPlan,
    /// The conversions between versions, one for each kind that declares one, sorted by kind.
    pub conversions: Box<[Arc<ConversionPlan>]>,
}

/// An entry of `spec.crds` that is accepted but does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The entry's key in `spec.crds`.
    pub name: String,
    /// Its kind.
    pub kind: ResourceType,
    /// The reason why it does not run.
    pub message: String,
}

/// The pages of the HTTP API that an operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesPlan {
    /// The health page.
    pub health: bool,
    /// The info page.
    pub info: bool,
    /// The pages of its custom resources.
    pub resources: bool,
}

impl Default for PagesPlan {
    /// Enables all pages.
    fn default() -> Self {
        Self {
            health: true,
            info: true,
            resources: true,
        }
    }
}

/// One entry of `spec.crds`, compiled.
#[derive(Debug)]
pub struct OperatorPlan {
    /// The Katalog that declares it.
    pub katalog: KatalogRef,
    /// The name of the Katalog that a composition has it from; `None` if the Katalog is not composed.
    pub source: Option<Box<str>>,
    /// The entry's key in `spec.crds`.
    pub name: String,
    /// The custom resource's kind; `plural` is always known.
    pub resource: ResourceType,
    /// Concurrent passes, at least 1.
    pub workers: usize,
    /// Concurrent passes while custom resources wait for one: equal to `workers` if these, or an autoscaler, are declared.
    pub most_workers: usize,
    /// Resync period; zero is off.
    pub resync: Duration,
    /// The custom resources that it reconciles.
    pub watched: Watched,
    /// The namespaces that custom resources may choose for their children.
    pub targets: TargetsPlan,
    /// Root fields that templates read of the custom resource beside `metadata`, `spec` and `status`: of built-in kinds
    /// such as `ConfigMap`.
    pub roots: Box<[Key]>,
    /// Labels and annotations that every custom resource gets.
    pub labels: Box<[(MetadataKey, Leaf)]>,
    /// True if other operators may read the custom resources.
    pub cross_access: bool,
    /// The enabled pages.
    pub pages: PagesPlan,
    /// The queue settings.
    pub queue: QueuePlan,
    /// The autoscaler.
    pub autoscale: Option<Box<AutoscalePlan>>,
    /// The operators of the Katalog that it depends on, by name.
    pub depends_on: Box<[Dependency]>,
    /// True if custom resources get our finalizer (`finalizers: []` opts out).
    pub finalizer: bool,
    /// Rules that change and check a custom resource before anything else.
    pub rules: RulesPlan,
    /// The part of rules and protection that applies when a custom resource is written.
    pub admission: AdmissionPlan,
    /// Further finalizers that custom resources get beside ours.
    pub other_finalizers: Box<[Box<str>]>,
    /// The imports of Motifs, outer ones before those of their Motifs.
    pub imports: Box<[ImportPlan]>,
    /// The other operators' custom resources that templates read.
    pub cross: Box<[CrossPlan]>,
    /// Objects and Events that trigger a pass.
    pub observe: ObservePlan,
    /// The additions to children.
    pub enrich: Box<[EnrichPlan]>,
    /// The gates that hold custom resources back, or close all blocks.
    pub hold: HoldPlan,
    /// Rules that requeue after a successful pass.
    pub requeue: Box<[RequeuePlan]>,
    /// The external calls, in the order in which they are made; those of Motifs after those of the Katalog.
    pub calls: Box<[CallPlan]>,
    /// The lifecycle blocks of the children.
    pub blocks: Box<[BlockPlan]>,
    /// The declared children in creation order: by kind (accounts, Secrets, `ConfigMaps`, Services, workloads,
    /// others), then as declared.
    pub children: Box<[ChildPlan]>,
    /// The steps before a custom resource is deleted.
    pub on_delete: Option<Box<OnDeletePlan>>,
    /// The status that is written to the custom resource.
    pub status: StatusPlan,
    /// The declared Events about the custom resource, by name.
    pub emits: Box<[EmitPlan]>,
    /// When the custom resource is deleted by its operator.
    pub cleanup: Option<Box<CleanupPlan>>,
    /// The reads of the templates.
    pub reads: Reads,
    /// The names that templates use for the children, below `.children`.
    pub children_names: Box<[ChildAlias]>,
    /// Hash of everything above that changes what a pass does; equal hashes need no new pass.
    pub hash: String,
}

impl OperatorPlan {
    /// Returns a name unique in the process: `<namespace of the Katalog>/<Katalog>/<entry>`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.katalog, self.name)
    }

    /// Returns an empty plan, the starting point of compilation.
    pub(crate) fn of_nothing() -> Self {
        Self {
            katalog: KatalogRef::new(String::new(), String::new()),
            source: None,
            name: String::new(),
            resource: ResourceType {
                group: Key::from(""),
                version: Key::from(""),
                kind: Key::from(""),
                plural: None,
                namespaced: None,
            },
            workers: 1,
            most_workers: 1,
            resync: Duration::ZERO,
            watched: Watched::default(),
            targets: TargetsPlan::default(),
            roots: Box::default(),
            labels: Box::default(),
            cross_access: true,
            pages: PagesPlan::default(),
            queue: QueuePlan::default(),
            autoscale: None,
            depends_on: Box::default(),
            finalizer: true,
            rules: RulesPlan::default(),
            admission: AdmissionPlan::default(),
            other_finalizers: Box::default(),
            imports: Box::default(),
            cross: Box::default(),
            observe: ObservePlan::default(),
            enrich: Box::default(),
            hold: HoldPlan::default(),
            requeue: Box::default(),
            calls: Box::default(),
            blocks: Box::default(),
            children: Box::default(),
            on_delete: None,
            status: StatusPlan {
                conditions: true,
                own: Box::default(),
                ready_when: Gate::default(),
                fields: Box::default(),
            },
            emits: Box::default(),
            cleanup: None,
            reads: Reads::default(),
            children_names: Box::default(),
            hash: String::new(),
        }
    }

    /// True if its custom resources are parents of `ApplySets`.
    pub fn is_apply_set(&self) -> bool {
        let mut keys = self.labels.iter().map(|(key, _)| key.key());
        keys.any(|key| key == apply_set::LABEL_ID)
    }

    /// Returns the field manager of this operator's writes.
    pub fn field_manager(&self) -> String {
        names::field_manager(
            self.resource.plural.as_deref().unwrap_or_default(),
            &self.resource.group,
        )
    }

    /// Returns the field manager of the metadata of its custom resources.
    pub fn metadata_manager(&self) -> String {
        names::metadata_manager(
            self.resource.plural.as_deref().unwrap_or_default(),
            &self.resource.group,
        )
    }
}

/// The queue settings of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuePlan {
    /// The depth that counts as a full queue; 0 disables it.
    pub max_depth: u32,
    /// Consecutive failed passes after which the operator counts as degraded, at least 1.
    pub failure_threshold: u64,
    /// The delay of a key whose pass failed.
    pub backoff: Backoff,
}

impl Default for QueuePlan {
    fn default() -> Self {
        Self {
            max_depth: 0,
            failure_threshold: 5,
            backoff: Backoff::default(),
        }
    }
}

/// The delay before a retry of a failed pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure; not zero.
    pub first: Duration,
    /// The longest delay; at least the first.
    pub longest: Duration,
    /// The factor from one delay to the next, at least 1.
    pub factor: f64,
}

impl Default for Backoff {
    /// Source: client-go, `DefaultControllerRateLimiter`.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(5),
            longest: Duration::from_secs(1000),
            factor: 2.0,
        }
    }
}

/// An operator's autoscaler.
#[derive(Debug)]
pub struct AutoscalePlan {
    /// The interval of evaluating the gate.
    pub interval: Duration,
    /// How long the gate must be closed before the declared capacity returns.
    pub cooldown: Duration,
    /// The gate; it reads only metrics.
    pub gate: Gate,
    /// The operators whose metrics the gate reads: the name below `.cross`, and the entry.
    pub cross: Box<[(Key, Box<str>)]>,
    /// The capacity while the gate is open.
    pub capacity: CapacityPlan,
    /// Hash of all of it.
    pub hash: String,
}

/// Values that replace the declared capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityPlan {
    /// Concurrent passes, at least 1.
    pub workers: Option<usize>,
    /// The depth that counts as a full queue; 0 disables it.
    pub queue_depth: Option<u32>,
    /// Resync period; zero is off.
    pub resync: Option<Duration>,
}

/// An operator that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The entry of the same Katalog.
    pub on: Box<str>,
    /// The condition that it must meet.
    pub condition: DependencyCondition,
}

/// The paths that a plan reads of objects; records keep only these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Paths of the custom resource that templates and conditions read (`spec.image`, `status.phase`). An event that
    /// changes none of them, nor the fields that the runtime itself needs, triggers no pass.
    pub cr: Vec<Path>,
    /// Paths of children, by kind, that templates read. Every declared kind has an entry, possibly empty.
    pub children: BTreeMap<GroupKind, Vec<Path>>,
    /// Paths of the custom resource whose text must be unique among all others of the kind.
    pub unique: Vec<Path>,
    /// The data about the operator itself that templates and conditions read.
    pub introspection: BTreeSet<Introspection>,
}

impl Reads {
    /// Returns the paths that records of children of that kind keep; none of a kind that is not declared.
    pub fn of_children(&self, kind: &GroupKind) -> &[Path] {
        self.children.get(kind).map_or(&[], Vec::as_slice)
    }
}

/// A name below `.children`. Every declared kind has several: `.children.configMap`, `.children.configmap`,
/// `.children.configMaps`, `.children.configmaps`. Only names that a template reads are kept; reading any other name is an
/// error at compile time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildAlias {
    /// The name in templates.
    pub name: Key,
    /// The kind of the children.
    pub kind: GroupKind,
    /// One object, or a map of all by object name.
    pub number: Number,
}

/// The value at a name below `.children`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// One object: of Jobs the latest, of other kinds the first declared.
    Singular,
    /// A map of the objects by name.
    Plural,
}

/// One import of a Motif: `.inputs` of the children and status fields that it declares.
#[derive(Debug)]
pub struct ImportPlan {
    /// The name of the Motif's document, for messages.
    pub motif: Box<str>,
    /// The import whose Motif declares this one, as an index into [`OperatorPlan::imports`]: the given values read its
    /// inputs as `.inputs`. `None` for the Katalog.
    pub outer: Option<usize>,
    /// The inputs that the Motif declares, in order.
    pub inputs: Box<[InputPlan]>,
}

/// One input of an import.
#[derive(Debug)]
pub struct InputPlan {
    /// Its name below `.inputs`.
    pub name: Key,
    /// The value that the import gives.
    pub given: Option<Tree>,
    /// The Motif's default if no value is given, or the given value renders to nothing. It reads no inputs.
    pub default: Option<Tree>,
    /// The declared type.
    pub coerce: Coerce,
    /// True if only the user's intent determines it, not the state of the cluster.
    pub is_intent: bool,
    /// The path of the given value, for messages.
    pub path: Box<str>,
}

/// One lifecycle block, with the parts common to its children.
#[derive(Debug)]
pub struct BlockPlan {
    /// Its path in the Katalog, or in the Motif of `import`.
    pub path: Box<str>,
    /// The import that declares it, as an index into [`OperatorPlan::imports`]; `None` for the Katalog.
    pub import: Option<usize>,
    /// The gate of the block; if closed, all of its children are closed.
    pub gate: Gate,
}

/// The status that is written to the custom resource.
#[derive(Debug)]
pub struct StatusPlan {
    /// True if conditions are written (`status.conditions: false` disables them).
    pub conditions: bool,
    /// User-defined conditions.
    pub own: Box<[OwnCondition]>,
    /// An additional gate for `Ready`.
    pub ready_when: Gate,
    /// Declared fields, those of Motifs and includes first, in declaration order; a later one with the same path takes
    /// precedence.
    pub fields: Box<[StatusField]>,
}

/// One entry of `status.fields`.
#[derive(Debug)]
pub struct StatusField {
    /// The import that declares it, as an index into [`OperatorPlan::imports`]; `None` for the Katalog.
    pub import: Option<usize>,
    /// The path relative to `status`.
    pub path: Path,
    /// The value.
    pub value: Leaf,
    /// The declared type; `None` uses the CRD's schema, else the value's own type.
    pub kind: Option<Coerce>,
    /// The gate of the field; if closed, the old value stays.
    pub gate: Gate,
    /// True if it is cleared when the gate is closed.
    pub clear: bool,
}

/// One entry of `status.conditions`.
#[derive(Debug)]
pub struct OwnCondition {
    /// Its type.
    pub name: Box<str>,
    /// `True`, `False` or `Unknown`; `None` uses the gate.
    pub status: Option<Leaf>,
    /// A single word.
    pub reason: Option<Leaf>,
    /// The message.
    pub message: Option<Leaf>,
    /// The gate of the condition; if closed, the condition stays unchanged.
    pub gate: Gate,
    /// Its path in the Katalog, for messages.
    pub path: Box<str>,
}
