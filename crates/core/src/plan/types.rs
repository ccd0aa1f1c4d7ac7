//! The plan's types: what `compile` makes and `step` reads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    CallPlan, CopyPlan, EndPlan, EnrichPlan, Gate, GroupKind, HoldPlan, KatalogRef, LastingPlan,
    ObservePlan, RequeuePlan, ResourceType, RulesPlan, ScalePlan, Watched, cross::CrossPlan,
};
use crate::{
    api::{DeletionPolicy, DependencyCondition, names},
    template::Template,
    value::{Key, Node, Path},
};

/// A compiled Katalog.
#[derive(Debug)]
pub struct Plan {
    /// Which Katalog.
    pub katalog: KatalogRef,
    /// One for each enabled entry of `spec.crds`, sorted by name.
    pub operators: Vec<Arc<OperatorPlan>>,
    /// Whether custom resources go with the Katalog.
    pub deletion_policy: DeletionPolicy,
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
    /// Labels that every custom resource gets.
    pub labels: Box<[(Key, Leaf)]>,
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
    pub requeue: Option<Box<RequeuePlan>>,
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
            labels: Box::default(),
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
            requeue: None,
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

/// One declared child.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the language, and any may stand with any other"
)]
#[derive(Debug)]
pub struct ChildPlan {
    /// Where it stands in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0]`; a Motif's
    /// after the name of its document: `motifs/cache.yaml: spec.resources.services[0]`.
    pub path: Box<str>,
    /// The import that it comes from, by its place in [`OperatorPlan::imports`]; none is the Katalog.
    pub import: Option<usize>,
    /// The block that it stands in, by its place in [`OperatorPlan::blocks`]; without meaning in `onDelete`.
    pub block: usize,
    /// Its kind.
    pub kind: ResourceType,
    /// How it is kept.
    pub mode: Mode,
    /// What it is made for each of; none is one child.
    pub for_each: Option<Box<ForEach>>,
    /// What must hold for the child to exist.
    pub gate: Gate,
    /// What becomes of an existing child when its gate is closed or its element is gone; only for [`Mode::Reconciled`].
    pub on_false: OnFalse,
    /// Its name; rendered text is trimmed.
    pub name: Leaf,
    /// Which names the kind allows.
    pub name_rule: NameRule,
    /// Its namespace; none is the custom resource's own. Ignored for cluster-scoped kinds.
    pub namespace: Option<Leaf>,
    /// The whole object with `apiVersion`, `kind`, the user's labels and annotations; without name, namespace and what
    /// ownership adds, which a pass puts in.
    pub body: Tree,
    /// Lists of the body that may be empty and are owned whole, as far as the schema of the kind is known: their paths,
    /// without indexes. Of other lists nobody owns anything while they are empty.
    pub whole_lists: Box<[Path]>,
    /// Paths that another manager holds by apply are taken (`forceConflict`).
    pub force_conflict: bool,
    /// An object of this name that is not ours is taken over (`adopt`).
    pub adopt: bool,
    /// A Secret whose values are made once, and how long they last.
    pub lasting: Option<Box<LastingPlan>>,
    /// The object that it is a copy of; what the body has wins.
    pub copy: Option<Box<CopyPlan>>,
    /// A workload whose number of pods follows conditions.
    pub scale: Option<Box<ScalePlan>>,
    /// Whether its pods roll when a Secret or a `ConfigMap` changes that they use.
    pub rolls: bool,
    /// Whether its entry makes one in each of several namespaces: where `namespace` renders to nothing, there is none.
    pub spread: bool,
}

impl ChildPlan {
    /// Whether it may be where no owner reference reaches: in another namespace, or in none.
    pub fn may_be_elsewhere(&self) -> bool {
        self.namespace.is_some() || self.kind.namespaced != Some(true)
    }
}

/// A list or map whose elements each make a child.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// Where it lies, from the roots of the templates on.
    pub field: Path,
    /// What templates call the element, beside `.item`.
    pub name: Key,
    /// Where it stands in the Katalog, for messages: `….deployments[0].forEach`.
    pub path: Box<str>,
}

/// How a child is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Plain `onCreate`: made once, then left alone.
    Once,
    /// `onReconcile`, or `onCreate` with `reconcile: true`: drift is corrected.
    Reconciled,
}

/// What becomes of a child whose gate closes. Source: language reference, lifecycle blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFalse {
    /// It is deleted: every operand is the user's intent, or the Katalog says so.
    Delete,
    /// It stays as it is: an operand comes from the live world, or the Katalog says so.
    Keep,
}

/// Which names a kind allows. Source: Kubernetes, "Object Names and IDs".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain, at most 253 characters.
    Subdomain,
    /// DNS-1035 label, at most 63 characters: Services.
    Label1035,
    /// DNS-1123 label, at most 63 characters: Namespaces.
    Label1123,
    /// Any path segment, as RBAC kinds and unknown kinds allow: no `/`, no `%`, not `.` or `..`, at most 253 characters.
    PathSegment,
}

/// A compiled string or scalar at a leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The expression, or literal text.
    pub template: Template,
    /// What the field takes.
    pub coerce: Coerce,
    /// The field in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0].replicas`.
    pub path: Box<str>,
}

/// What a field takes: [`Coerce::apply`]. Coercion trims and an empty result leaves the field out, but for `Native`, `Text`,
/// `Base64` and `Auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coerce {
    /// The expression's own type; null leaves the field out.
    Native,
    /// Text; an expression's number becomes its digits. Never trimmed, never left out.
    Text,
    /// As `Native`, and what is no text becomes its text: a manifest's field of text.
    AsText,
    /// Text, left out where empty.
    OptionalText,
    /// An integer.
    Int,
    /// A port's number; 0 leaves the field out, as the empty text does.
    Port,
    /// A decimal number.
    Float,
    /// `true` or `false`.
    Bool,
    /// An integer where it reads as one, else text: ports, percentages, quantities are not integers by themselves.
    IntOrText,
    /// The base64 of the text: Secret data.
    Base64,
    /// What the text looks like: an integer, a number, a boolean, else text.
    Auto,
    /// One of these words, in whatever case it is written; other text stays as it is.
    Word(&'static [&'static str]),
}

/// An object, or a part of one, with expressions at its leaves.
#[derive(Clone, Debug)]
pub enum Tree {
    /// No expression anywhere below.
    Fixed(Node),
    /// One rendered value.
    Leaf(Leaf),
    /// Keys are fixed; a value that is left out takes its key along. The map itself stays, if empty.
    Map(Box<[(Key, Tree)]>),
    /// A map that is left out whole when the value of its first key is: a port without a number.
    Part(Box<[(Key, Tree)]>),
    /// Values that are left out are not counted; a list that keeps none of them is left out.
    List(Box<[Tree]>),
    /// The name of the container of `image` in the workload of this name: [`crate::resources::container_name`].
    ContainerName(Leaf),
    /// An image, and the tag that it gets if it has none: [`crate::resources::tagged_image`].
    Image(Box<(Leaf, Leaf)>),
    /// An object, and what is merged into it.
    Patched(Box<(Tree, Tree)>),
    /// The value of [`crate::api::names::LABEL_WORKLOAD`] for the workload of this kind and rendered name.
    Workload(Box<(GroupKind, Leaf)>),
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
