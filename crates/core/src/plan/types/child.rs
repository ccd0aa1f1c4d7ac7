//! A declared child, and the objects with expressions at their leaves that it is made of.

use super::super::{CopyPlan, Gate, GroupKind, LastingPlan, Reach, ResourceType, ScalePlan};
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
    /// Where it stands in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0]`; a Motif's
    /// after the name of its document: `motifs/cache.yaml: spec.resources.services[0]`.
    pub path: Box<str>,
    /// The import that it comes from, by its place in [`super::OperatorPlan::imports`]; none is the Katalog.
    pub import: Option<usize>,
    /// The block that it stands in, by its place in [`super::OperatorPlan::blocks`]; without meaning in `onDelete`.
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
    /// Who decides on that namespace.
    pub reach: Reach,
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
    /// It is deleted and created again where the API server refuses a change of an immutable field.
    pub recreates: bool,
    /// A Secret whose values are made once, and how long they last.
    pub lasting: Option<Box<LastingPlan>>,
    /// The object that it is a copy of; what the body has wins.
    pub copy: Option<Box<CopyPlan>>,
    /// A workload whose number of pods follows conditions.
    pub scale: Option<Box<ScalePlan>>,
    /// Of a binding whose role the custom resource chooses: the names that its definition lists.
    pub bound_roles: Box<[Box<str>]>,
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
    /// Whether the element of a map is `{key, value}`, as its templates read it; else it is the key, and `.value` the value.
    pub pairs: bool,
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

/// What each profile has in one place, and which of them counts.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The name of the profile, in any case.
    pub name: Leaf,
    /// What the profiles have here, by their names in lower case; one may have nothing.
    pub options: Box<[(Box<str>, Option<Tree>)]>,
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
    /// What a profile has here that each custom resource chooses.
    Chosen(Box<Chosen>),
    /// An object, and what is merged into it.
    Patched(Box<(Tree, Tree)>),
    /// The value of [`crate::api::names::LABEL_WORKLOAD`] for the workload of this kind and rendered name.
    Workload(Box<(GroupKind, Leaf)>),
    /// Something of the custom resource as the value of a label.
    Owner(OwnerPart),
}

/// What of a custom resource the value of a label is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerPart {
    /// Its kind in lower case.
    Kind,
    /// Its name.
    Name,
}
