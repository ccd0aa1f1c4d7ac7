//! A declared child, and its object with expressions at the leaves.

use super::super::{
    CopyPlan, Gate, GeneratedSecretPlan, GroupKind, Reach, ResourceType, ScalePlan,
};
use crate::{
    template::Template,
    value::{Key, Node, Path},
};

/// One declared child.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the language, and any may stand with any other"
)]
#[derive(Debug)]
pub struct ChildPlan {
    /// Its path in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0]`; in a Motif, after
    /// the name of its document: `motifs/cache.yaml: spec.resources.services[0]`.
    pub path: Box<str>,
    /// The import that declares it, as an index into [`super::OperatorPlan::imports`]; `None` for the Katalog.
    pub import: Option<usize>,
    /// Its block, as an index into [`super::OperatorPlan::blocks`]; not used in `onDelete`.
    pub block: usize,
    /// Its kind.
    pub kind: ResourceType,
    /// Whether drift is corrected.
    pub mode: Mode,
    /// The list that it is expanded for; `None` is a single child.
    pub for_each: Option<Box<ForEach>>,
    /// The gate of the child.
    pub gate: Gate,
    /// The action on an existing child whose gate is closed or whose element is gone; only for [`Mode::Reconciled`].
    pub on_false: OnFalse,
    /// Its name; rendered text is trimmed.
    pub name: Leaf,
    /// The rule for names of the kind.
    pub name_rule: NameRule,
    /// Its namespace; `None` is the custom resource's own. Ignored for cluster-scoped kinds.
    pub namespace: Option<Leaf>,
    /// Determines that namespace.
    pub reach: Reach,
    /// The whole object with `apiVersion`, `kind`, the user's labels and annotations; a pass adds name, namespace and
    /// ownership metadata.
    pub body: Tree,
    /// Lists of the body that may be empty and are owned as a whole, as far as the schema of the kind is known: their
    /// paths, without indexes. Other lists have no owner while they are empty.
    pub whole_lists: Box<[Path]>,
    /// Takes paths that another manager applied (`forceConflict`).
    pub force_conflict: bool,
    /// Adopts an existing object of this name that is not ours (`adopt`).
    pub adopt: bool,
    /// Deletes and recreates the object if the API server refuses a change of an immutable field.
    pub recreates: bool,
    /// The lifetime of generated Secret values.
    pub generated: Option<Box<GeneratedSecretPlan>>,
    /// The source of a copy; the body takes precedence.
    pub copy: Option<Box<CopyPlan>>,
    /// The autoscaler of a workload.
    pub scale: Option<Box<ScalePlan>>,
    /// For a binding whose role the custom resource chooses: the names that its definition lists.
    pub bound_roles: Box<[Box<str>]>,
    /// True if its pods roll when a Secret or a `ConfigMap` that they use changes.
    pub rolls: bool,
    /// True if its entry is expanded into several namespaces: if `namespace` renders to nothing, the child is left out.
    pub spread: bool,
}

impl ChildPlan {
    /// True if it may be where no owner reference is possible: in another namespace, or cluster-scoped.
    pub fn may_be_elsewhere(&self) -> bool {
        self.namespace.is_some() || self.kind.namespaced != Some(true)
    }
}

/// A list or map; each element makes a child.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// Its path, from the template roots.
    pub field: Path,
    /// The name of the element in templates, beside `.item`.
    pub name: Key,
    /// True if the element of a map is `{key, value}`, as its templates read it; otherwise it is the key, and `.value` the
    /// value.
    pub pairs: bool,
    /// Its path in the Katalog, for messages: `….deployments[0].forEach`.
    pub path: Box<str>,
}

/// Whether a child is reconciled after creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Plain `onCreate`: created once and not changed later.
    Once,
    /// `onReconcile`, or `onCreate` with `reconcile: true`: drift is corrected.
    Reconciled,
}

/// The action on a child whose gate closes. Source: language reference, lifecycle blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFalse {
    /// Delete it: every operand is the user's intent, or the Katalog declares it.
    Delete,
    /// Keep it unchanged: an operand depends on the state of the cluster, or the Katalog declares it.
    Keep,
}

/// The rule for names of a kind. Source: Kubernetes, "Object Names and IDs".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain, at most 253 characters.
    Subdomain,
    /// DNS-1035 label, at most 63 characters: Services.
    Label1035,
    /// DNS-1123 label, at most 63 characters: Namespaces.
    Label1123,
    /// Any path segment, for RBAC kinds and unknown kinds: no `/`, no `%`, not `.` or `..`, at most 253 characters.
    PathSegment,
}

/// A compiled string or scalar at a leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The expression, or a literal.
    pub template: Template,
    /// The type of the field.
    pub coerce: Coerce,
    /// Its path in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0].replicas`.
    pub path: Box<str>,
}

/// The type of a field: [`Coerce::apply`]. Coercion trims and leaves the field out if the result is empty, except for
/// `Native`, `Text`, `Base64` and `Auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coerce {
    /// The expression's own type; null leaves the field out.
    Native,
    /// Text; a number becomes its digits. Never trimmed, never left out.
    Text,
    /// As `Native`, but other values become text: a text field of a manifest.
    AsText,
    /// Text, left out if empty.
    OptionalText,
    /// An integer.
    Int,
    /// A port number; 0 leaves the field out, as empty text does.
    Port,
    /// A decimal number.
    Float,
    /// `true` or `false`.
    Bool,
    /// An integer if the text is one, else text: for ports, percentages, quantities, which are not always integers.
    IntOrText,
    /// Base64 of the text: Secret data.
    Base64,
    /// The type that the text looks like: an integer, a number, a boolean, else text.
    Auto,
    /// One of these words, ignoring case; other text stays unchanged.
    Word(&'static [&'static str]),
}

/// The values of all profiles in one place, and the choice between them.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The name of the profile, ignoring case.
    pub name: Leaf,
    /// The values by profile name in lower case; a profile may have none.
    pub options: Box<[(Box<str>, Option<Tree>)]>,
}

/// An object, or a part of one, with expressions at its leaves.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A value without expressions.
    Fixed(Node),
    /// One rendered value.
    Leaf(Leaf),
    /// A map with fixed keys; a value that is left out removes its key. The map itself stays, even if empty.
    Map(Box<[(Key, Tree)]>),
    /// A map that is left out if the value of its first key is: a port without a number.
    Part(Box<[(Key, Tree)]>),
    /// A list; values that are left out are removed, and an empty list is left out.
    List(Box<[Tree]>),
    /// The name of the container of `image` in the workload with this name: `plan::container_name`.
    ContainerName(Leaf),
    /// An image, and its tag if it has none: `plan::tagged_image`.
    Image(Box<(Leaf, Leaf)>),
    /// The value of a profile that each custom resource chooses.
    Chosen(Box<Chosen>),
    /// An object, and the patch merged into it.
    Patched(Box<(Tree, Tree)>),
    /// The value of [`crate::api::names::LABEL_WORKLOAD`] for the workload of this kind and rendered name.
    Workload(Box<(GroupKind, Leaf)>),
    /// A part of the custom resource as the value of a label.
    Owner(OwnerPart),
}

/// The part of a custom resource in the value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerPart {
    /// Its kind in lower case.
    Kind,
    /// Its name.
    Name,
}
