//! Declared children and their lifecycle blocks.

use std::sync::Arc;

use super::{
    CopyPlan, Gate, GeneratedSecretPlan, GroupKind, Leaf, ListKeys, NameRule, ObjectTree,
    PlanPlace, Reach, ResourceType, ScalePlan, for_each::ForEachPlan,
    generated_secret::CertificatePlan, kinds, scale::REPLICAS,
};
use orkestra_object::value::Path;

/// The path of the size of a volume in a `StatefulSet`.
const VOLUME_SIZE: [&str; 7] = [
    "spec",
    "volumeClaimTemplates",
    "*",
    "spec",
    "resources",
    "requests",
    "storage",
];

/// One declared child.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the language or follows from some, and any may stand with any other"
)]
#[derive(Debug)]
pub struct ChildPlan {
    /// Its path in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0]`; in a Motif, after
    /// the name of its document: `motifs/cache.yaml: spec.resources.services[0]`.
    pub path: PlanPlace,
    /// The import that declares it, as an index into [`super::OperatorPlan::imports`]; `None` for the Katalog.
    pub import: Option<usize>,
    /// Its block, as an index into [`super::OperatorPlan::blocks`]; not used in `onDelete`.
    pub block: usize,
    /// Its kind.
    pub kind: ResourceType,
    /// Whether drift is corrected.
    pub mode: Mode,
    /// The list that it is expanded for; `None` is a single child.
    pub for_each: Option<Box<ForEachPlan>>,
    /// The gate of the child.
    pub gate: Gate,
    /// The action on an existing child whose gate is closed or whose element is gone; only for [`Mode::Reconciled`].
    pub on_false: OnFalsePlan,
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
    pub body: ObjectTree,
    /// Lists of the body that may be empty and are owned as a whole, as far as the schema of the kind is known: their
    /// paths, without indexes. Other lists have no owner while they are empty.
    pub whole_lists: Box<[Path]>,
    /// Lists of the body whose items some of their fields identify, as far as the schema of the kind is known.
    pub list_keys: Arc<ListKeys>,
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
    /// True if the object may contain values of Secrets that its templates read, also through other children, inputs and
    /// `cross`: then messages of the API server about it, which quote values, are withheld.
    pub shows_secrets: bool,
}

impl ChildPlan {
    /// True if it may be where no owner reference is possible: in another namespace, or cluster-scoped.
    pub fn may_be_elsewhere(&self) -> bool {
        self.namespace.is_some() || self.kind.namespaced != Some(true)
    }

    /// True if an autoscaler may own `spec.replicas` of the child: it is in a namespace, Orkestra corrects the field, and the
    /// kind can be scaled. Only then are autoscalers listed and watched, and only for it is that permission derived.
    pub fn may_be_scaled(&self) -> bool {
        let sets_replicas = self.scale.is_some() || self.body.may_have(&REPLICAS);
        // An autoscaler and its target are in one namespace.
        self.mode == Mode::Reconciled
            && self.kind.namespaced != Some(false)
            && kinds::may_be_scaled(&self.kind.group_kind())
            && sets_replicas
    }

    /// True if it is a `StatefulSet` whose pods have volumes of their own: the claims grow with its templates.
    pub(crate) fn may_grow_claims(&self) -> bool {
        self.mode == Mode::Reconciled
            && self.kind.group_kind() == GroupKind::parse("StatefulSet.apps")
            && self.body.may_have(&VOLUME_SIZE)
    }

    /// Returns the expressions beside the body: the names of the certificate, the source of the copy, and the number of
    /// pods.
    pub fn upkeep(&self) -> impl Iterator<Item = &Leaf> {
        let certificate = self.generated.iter().flat_map(|plan| {
            let GeneratedSecretPlan {
                once: _,
                renew_after: _,
                certificate,
            } = &**plan;
            certificate
        });
        let names = certificate.flat_map(|plan| {
            let CertificatePlan {
                common_name,
                hosts,
                valid_for: _,
            } = plan;
            common_name.iter().chain(hosts)
        });
        let copy = self.copy.iter().flat_map(|plan| {
            let CopyPlan {
                kind: _,
                name,
                namespace,
                allowed: _,
                parts: _,
            } = &**plan;
            std::iter::once(name).chain(namespace)
        });
        let scale = self.scale.iter().flat_map(|plan| plan.leaves());
        names.chain(copy).chain(scale)
    }

    /// True if its body is rendered only on creation, so that random values in it are kept.
    pub fn draws_once(&self) -> bool {
        self.generated.is_some() || (self.mode == Mode::Once && !self.spread)
    }

    /// True if it holds values that no later pass renders again: generated ones, or random ones of a child that is created
    /// once. Such values are lost with the object, so it gets no owner reference: Kubernetes would collect it while a backup is
    /// being restored, before its new owner exists.
    pub fn keeps_values(&self) -> bool {
        self.generated.is_some() || (self.draws_once() && self.body.is_random())
    }

    /// True if it is not created again after another client deletes it: the inventory records that it was created.
    pub fn stays_gone(&self) -> bool {
        self.mode == Mode::Once && self.generated.is_none()
    }
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
pub enum OnFalsePlan {
    /// Delete it: every operand is the user's intent, or the Katalog declares it.
    Delete,
    /// Keep it unchanged: an operand depends on the state of the cluster, or the Katalog declares it.
    Keep,
}

/// One lifecycle block, with the parts common to its children.
#[derive(Debug)]
pub struct BlockPlan {
    /// Its path in the Katalog, or in the Motif of `import`.
    pub path: PlanPlace,
    /// The import that declares it, as an index into [`OperatorPlan::imports`](super::OperatorPlan::imports); `None` for
    /// the Katalog.
    pub import: Option<usize>,
    /// The gate of the block; if closed, all of its children are closed.
    pub gate: Gate,
}
