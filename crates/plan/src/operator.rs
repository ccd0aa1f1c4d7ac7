//! Compiled Katalogs and their operators.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{
    AdmissionPlan, AutoscalePlan, BlockPlan, CallPlan, ChildAlias, ChildPlan, CleanupPlan,
    ConversionPlan, EmitPlan, EnrichPlan, Gate, GroupKind, HoldPlan, HookPlan, HookStage,
    ImportPlan, KatalogRef, Leaf, MetadataKey, Moment, ObservePlan, OnDeletePlan, Reads,
    RequeuePlan, ResourceType, RulesPlan, SecurityPlan, Stage, StatusPlan, TargetsPlan, TokenPlan,
    Watched,
    cross::{CrossAccess, CrossPlan},
    is_read,
};
use orkestra_language::{
    api::{DeletionPolicy, DependencyCondition, apply_set, names},
    enrich::{Addition, Relation},
};
use orkestra_object::value::{Key, Node, Path};

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
    /// The definitions that the installation applies for it, one for each kind with a `schema` and an operator, sorted by kind.
    pub definitions: Box<[Arc<DefinitionPlan>]>,
}

/// A definition that `schema` of entries generates, and that the controller applies.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionPlan {
    /// The kind.
    pub kind: GroupKind,
    /// The name of the `CustomResourceDefinition`.
    pub name: Key,
    /// The `CustomResourceDefinition`.
    pub crd: Node,
    /// Its hash.
    pub hash: String,
    /// Whether the Katalog declares how custom resources are converted between versions.
    pub converts: bool,
}

/// An entry of `spec.crds` that is accepted but does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The entry's key in `spec.crds`.
    pub name: String,
    /// Its kind.
    pub kind: ResourceType,
    /// The reason why it is not running.
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
    /// The Katalogs whose operators may read the custom resources.
    pub cross_access: CrossAccess,
    /// The enabled pages.
    pub pages: PagesPlan,
    /// The queue settings.
    pub queue: QueuePlan,
    /// The autoscaler.
    pub autoscale: Option<Box<AutoscalePlan>>,
    /// The operators of the Katalog that it depends on, by name.
    pub depends_on: Box<[DependencyPlan]>,
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
    /// The hooks, in the order in which they are called: by stage, then as declared.
    pub hooks: Box<[HookPlan]>,
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
    pub fn of_nothing() -> Self {
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
            cross_access: CrossAccess::default(),
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
            hooks: Box::default(),
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

    /// Returns the kinds of which its custom resources may have children.
    pub fn kinds(&self) -> impl Iterator<Item = &ResourceType> {
        let on_delete = self
            .on_delete
            .as_deref()
            .into_iter()
            .flat_map(OnDeletePlan::entries);
        self.children
            .iter()
            .chain(on_delete)
            .map(|child| &child.kind)
    }

    /// Returns the tokens of calls and hooks.
    pub fn tokens(&self) -> impl Iterator<Item = &TokenPlan> {
        let of_calls = self.calls.iter().map(|call| &call.token);
        let of_hooks = self.hooks.iter().map(|hook| &hook.http.token);
        of_calls.chain(of_hooks).flatten()
    }

    /// Returns the names of calls and hooks.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        let calls = self.calls.iter().map(|call| &*call.name);
        calls.chain(self.hooks.iter().map(|hook| &*hook.name))
    }

    /// Returns the number of calls after those of `stage` are.
    pub fn calls_until(&self, stage: Stage) -> usize {
        self.calls.partition_point(|call| call.stage <= stage)
    }

    /// Returns the hook whose block that is, as an index into [`Self::hooks`].
    pub fn hook_of(&self, block: usize) -> Option<usize> {
        self.hooks.iter().position(|hook| hook.block == block)
    }

    /// Returns the number of calls and hooks after those that are called before the templates of children are rendered.
    pub fn made_for_children(&self) -> usize {
        let early = self
            .hooks
            .partition_point(|hook| hook.at == HookStage::Before);
        self.calls.len() + early
    }

    /// True if calls are made for the gates of a pass.
    pub fn gates_ask_outside(&self) -> bool {
        let before = &self.calls[..self.calls_until(Stage::ReconcileGate)];
        before
            .iter()
            .any(|call| call.moments.includes(Moment::Pass))
    }

    /// True if gates are evaluated, or calls made, before a pass.
    pub fn holds_back(&self) -> bool {
        let HoldPlan {
            enqueue, reconcile, ..
        } = &self.hold;
        !enqueue.is_empty() || !reconcile.is_empty() || self.calls_until(Stage::ReconcileGate) > 0
    }

    /// Returns the fields of the spec that are written to the custom resource if they differ.
    pub fn persisted(&self) -> impl Iterator<Item = &Path> {
        let all = self.rules.persist.then_some(&self.rules.normalize);
        let known = all.into_iter().flatten().filter(|one| one.is_known);
        known.map(|one| &one.path)
    }

    /// Returns the additions that templates read, each with the kind of the children.
    pub fn additions_read(&self) -> impl Iterator<Item = (&'static Addition, &GroupKind)> {
        let declared = self
            .enrich
            .iter()
            .flat_map(|entry| entry.target.additions());
        declared.flat_map(|addition| {
            let kinds = self.reads.children.keys();
            let kinds = kinds.filter(|kind| is_read(addition, &self.reads, kind));
            kinds.map(move |kind| (addition, kind))
        })
    }

    /// Returns the relations that are watched for additions to children.
    pub fn relations(&self) -> BTreeSet<Relation> {
        let read = self.additions_read();
        read.filter_map(|(addition, _)| addition.source.relation())
            .collect()
    }
}

/// The queue settings of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuePlan {
    /// The depth that counts as a full queue; 0 disables it.
    pub max_depth: u32,
    /// Consecutive failed passes after which the operator counts as degraded, at least 1.
    pub failure_threshold: u64,
    /// The percentage of custom resources that a revision may break while its Katalog is ready.
    pub failing_percent: u32,
    /// The delay of a key whose pass failed.
    pub backoff: BackoffPlan,
}

impl Default for QueuePlan {
    fn default() -> Self {
        Self {
            max_depth: 0,
            failure_threshold: 5,
            failing_percent: 10,
            backoff: BackoffPlan::default(),
        }
    }
}

/// The delay before a retry of a failed pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffPlan {
    /// The delay after the first failure; not zero.
    pub first: Duration,
    /// The longest delay; at least the first.
    pub longest: Duration,
    /// The factor from one delay to the next, at least 1.
    pub factor: f64,
}

impl Default for BackoffPlan {
    /// Source: client-go, `DefaultControllerRateLimiter`.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(5),
            longest: Duration::from_secs(1000),
            factor: 2.0,
        }
    }
}

/// An operator that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyPlan {
    /// The entry of the same Katalog.
    pub on: Box<str>,
    /// The condition that it must meet.
    pub condition: DependencyCondition,
}
