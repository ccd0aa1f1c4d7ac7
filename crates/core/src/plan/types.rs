//! The plan's types: what `compile` makes and `step` reads.

mod child;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    CallPlan, EndPlan, EnrichPlan, Gate, GroupKind, HoldPlan, KatalogRef, MetadataKey, ObservePlan,
    RequeuePlan, ResourceType, RulesPlan, TargetsPlan, Watched, cross::CrossPlan,
};
use crate::{
    api::{DeletionPolicy, DependencyCondition, names},
    value::{Key, Path},
};

pub use child::*;

/// A compiled Katalog.
#[derive(Debug)]
pub struct Plan {
    /// Which Katalog.
    pub katalog: KatalogRef,
    /// One for each enabled entry of `spec.crds` that can run, sorted by name.
    pub operators: Vec<Arc<OperatorPlan>>,
    /// Enabled entries that do not run, sorted by name.
    pub stopped: Vec<Stopped>,
    /// Whether custom resources go with the Katalog.
    pub deletion_policy: DeletionPolicy,
}

/// An entry of `spec.crds` that is accepted and does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The entry's key in `spec.crds`.
    pub name: String,
    /// Its kind.
    pub kind: ResourceType,
    /// Why it does not run.
    pub message: String,
}

/// Which pages of the HTTP API an operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesPlan {
    /// That of its health.
    pub health: bool,
    /// That which says what it is.
    pub info: bool,
    /// Those of its custom resources.
    pub resources: bool,
}

impl Default for PagesPlan {
    /// All of them.
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
    /// Which Katalog declares it.
    pub katalog: KatalogRef,
    /// The entry's key in `spec.crds`.
    pub name: String,
    /// The custom resource's kind; `plural` is always known.
    pub resource: ResourceType,
    /// Concurrent passes, at least 1.
    pub workers: usize,
    /// Concurrent passes while custom resources wait for one: as many as `workers` where these are declared, or where
    /// an autoscaler is.
    pub most_workers: usize,
    /// Period of the safety net; zero is off.
    pub resync: Duration,
    /// Which custom resources it looks after.
    pub watched: Watched,
    /// The namespaces that they may choose for their children.
    pub targets: TargetsPlan,
    /// Roots that templates read of the custom resource beside `metadata`, `spec` and `status`: of built-in kinds such as
    /// `ConfigMap`.
    pub roots: Box<[Key]>,
    /// Labels and annotations that every custom resource gets.
    pub labels: Box<[(MetadataKey, Leaf)]>,
    /// Whether other operators may read the custom resources.
    pub cross_access: bool,
    /// Which of its pages are shown.
    pub pages: PagesPlan,
    /// How it works through its queue.
    pub queue: QueuePlan,
    /// When it works with another capacity.
    pub autoscale: Option<Box<AutoscalePlan>>,
    /// The operators of the Katalog that it waits for, by name.
    pub depends_on: Box<[Dependency]>,
    /// Whether custom resources get our finalizer (`finalizers: []` opts out).
    pub finalizer: bool,
    /// What is made of a custom resource, and asked of it, before anything else.
    pub rules: RulesPlan,
    /// Finalizers of others that custom resources get beside ours.
    pub other_finalizers: Box<[Box<str>]>,
    /// The imports of Motifs, outer ones before those of their Motifs.
    pub imports: Box<[ImportPlan]>,
    /// The custom resources of other operators that templates read.
    pub cross: Box<[CrossPlan]>,
    /// Objects and Events that lead to a pass.
    pub observe: ObservePlan,
    /// What is added to children.
    pub enrich: Box<[EnrichPlan]>,
    /// What holds custom resources back, and closes all blocks.
    pub hold: HoldPlan,
    /// When a pass follows by itself on one that went well.
    pub requeue: Box<[RequeuePlan]>,
    /// The calls to the outside, in the order in which they are made; those of Motifs after those of the Katalog.
    pub calls: Box<[CallPlan]>,
    /// The lifecycle blocks that the children stand in.
    pub blocks: Box<[BlockPlan]>,
    /// The declared children in creation order: by kind (accounts, Secrets, `ConfigMaps`, Services, workloads,
    /// others), then as declared.
    pub children: Box<[ChildPlan]>,
    /// What is done before a custom resource goes.
    pub ending: Option<Box<EndPlan>>,
    /// What is written to the custom resource's status.
    pub status: StatusPlan,
    /// What the templates read.
    pub reads: Reads,
    /// Names that templates use for the children, below `.children`.
    pub children_names: Box<[ChildAlias]>,
    /// Hash over everything above that changes what a pass does; equal hashes need no new pass.
    pub hash: String,
}

impl OperatorPlan {
    /// The name that no other operator of the process has: `<namespace of the Katalog>/<Katalog>/<entry>`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.katalog, self.name)
    }

    /// A plan that does nothing, for nothing: what compiling starts from.
    pub(crate) fn of_nothing() -> Self {
        Self {
            katalog: KatalogRef {
                namespace: String::new(),
                name: String::new(),
            },
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
            ending: None,
            status: StatusPlan {
                conditions: true,
                own: Box::default(),
                ready_when: Gate::default(),
                fields: Box::default(),
            },
            reads: Reads::default(),
            children_names: Box::default(),
            hash: String::new(),
        }
    }

    /// The field manager that this operator writes as.
    pub fn field_manager(&self) -> String {
        names::field_manager(
            self.resource.plural.as_deref().unwrap_or_default(),
            &self.resource.group,
        )
    }

    /// The field manager that holds the metadata of its custom resources.
    pub fn metadata_manager(&self) -> String {
        names::metadata_manager(
            self.resource.plural.as_deref().unwrap_or_default(),
            &self.resource.group,
        )
    }
}

/// How an operator works through its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuePlan {
    /// The depth that counts as a full queue; 0 is none.
    pub max_depth: u32,
    /// Failed passes in a row after which the operator counts as degraded, at least 1.
    pub failure_threshold: u64,
    /// How long a key whose pass failed waits.
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

/// How long a key whose pass failed waits for the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// After the first failure; not zero.
    pub first: Duration,
    /// The longest; at least the first.
    pub longest: Duration,
    /// How many times as long each wait is as the one before, at least 1.
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

/// When an operator works with another capacity, and which.
#[derive(Debug)]
pub struct AutoscalePlan {
    /// How often the gate is looked at.
    pub interval: Duration,
    /// How long the gate must be closed before everything is as declared again.
    pub cooldown: Duration,
    /// What must hold; it reads nothing but metrics.
    pub gate: Gate,
    /// The operators whose metrics the gate reads: the name below `.cross`, and the entry.
    pub cross: Box<[(Key, Box<str>)]>,
    /// What counts while it holds.
    pub capacity: CapacityPlan,
    /// Hash over all of it.
    pub hash: String,
}

/// What counts instead of what is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityPlan {
    /// Concurrent passes, at least 1.
    pub workers: Option<usize>,
    /// The depth that counts as a full queue; 0 is none.
    pub queue_depth: Option<u32>,
    /// Period of the safety net; zero is off.
    pub resync: Option<Duration>,
}

/// An operator that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The entry of the same Katalog.
    pub on: Box<str>,
    /// What must be so of it.
    pub condition: DependencyCondition,
}

/// What a plan reads of the objects it sees; records keep these parts and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Paths of the custom resource that templates and conditions read (`spec.image`, `status.phase`). An event that
    /// changes none of them, nor what the runtime itself needs, wakes nobody.
    pub cr: Vec<Path>,
    /// Paths of children, by kind, that templates read. Every declared kind has an entry, if an empty one.
    pub children: BTreeMap<GroupKind, Vec<Path>>,
    /// Paths of the custom resource whose text is compared with that of all others of the kind.
    pub unique: Vec<Path>,
}

/// A name below `.children`. Every declared kind has several: `.children.configMap`, `.children.configmap`,
/// `.children.configMaps`, `.children.configmaps`. Only names that some template reads are kept; reading any other name
/// is an error at compile time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildAlias {
    /// The name, as templates write it.
    pub name: Key,
    /// Which children it stands for.
    pub kind: GroupKind,
    /// One object, or a map of all of them by object name.
    pub number: Number,
}

/// What stands at a name below `.children`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// One object: of Jobs the one created last, of other kinds the first that is declared.
    Singular,
    /// A map of the objects by name.
    Plural,
}

/// One import of a Motif: what `.inputs` is for the children and status fields that come from it.
#[derive(Debug)]
pub struct ImportPlan {
    /// The name of the Motif's document, for messages.
    pub motif: Box<str>,
    /// The import whose Motif declares this one, by its place in [`OperatorPlan::imports`]: its inputs are what the
    /// given values read as `.inputs`. None is the Katalog.
    pub outer: Option<usize>,
    /// The inputs that the Motif declares, in order.
    pub inputs: Box<[InputPlan]>,
}

/// One input of an import.
#[derive(Debug)]
pub struct InputPlan {
    /// Its name below `.inputs`.
    pub name: Key,
    /// What the import gives.
    pub given: Option<Tree>,
    /// What the Motif says where nothing is given, or what is given turns out to be nothing. It reads no inputs.
    pub default: Option<Tree>,
    /// The declared type.
    pub coerce: Coerce,
    /// Whether it is the user's intent alone: the live world has no say in it.
    pub is_intent: bool,
    /// Where it is given, for messages.
    pub path: Box<str>,
}

/// One lifecycle block: what its children have in common.
#[derive(Debug)]
pub struct BlockPlan {
    /// Where it stands in the Katalog, or in the Motif of `import`.
    pub path: Box<str>,
    /// The import that it comes from, by its place in [`OperatorPlan::imports`]; none is the Katalog.
    pub import: Option<usize>,
    /// What must hold for the block to count; a closed one closes each of its children.
    pub gate: Gate,
}

/// What is written to the custom resource's status.
#[derive(Debug)]
pub struct StatusPlan {
    /// Whether conditions are written (`status.conditions: false` turns them off).
    pub conditions: bool,
    /// Conditions of the Katalog's own.
    pub own: Box<[OwnCondition]>,
    /// What `Ready` waits for beside what it asks anyway.
    pub ready_when: Gate,
    /// Declared fields, those of Motifs and includes first, in declaration order; a later one of the same path wins.
    pub fields: Box<[StatusField]>,
}

/// One entry of `status.fields`.
#[derive(Debug)]
pub struct StatusField {
    /// The import that it comes from, by its place in [`OperatorPlan::imports`]; none is the Katalog.
    pub import: Option<usize>,
    /// Relative to `status`.
    pub path: Path,
    /// The value.
    pub value: Leaf,
    /// The declared type; none means that the CRD's schema decides, and else the value's own type.
    pub kind: Option<Coerce>,
    /// What must hold, or the old value stays.
    pub gate: Gate,
    /// Whether it is emptied then.
    pub clear: bool,
}

/// One entry of `status.conditions`.
#[derive(Debug)]
pub struct OwnCondition {
    /// Its type.
    pub name: Box<str>,
    /// `True`, `False` or `Unknown`; none is whether the gate is open.
    pub status: Option<Leaf>,
    /// One word.
    pub reason: Option<Leaf>,
    /// Text.
    pub message: Option<Leaf>,
    /// What must hold, or it stays as it is.
    pub gate: Gate,
    /// Where it stands in the Katalog, for messages.
    pub path: Box<str>,
}
