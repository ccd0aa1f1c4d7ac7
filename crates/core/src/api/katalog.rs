//! `Katalog`: the operators that a document declares, one for each entry of `spec.crds`.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conversion::Conversion;
use super::depends::DependsOn;
use super::endpoints::Endpoints;
use super::enrich::{Enrich, EnrichAll};
use super::envelope;
use super::later::{Ignored, Later};
use super::lifecycle::KatalogLifecycle;
use super::motif::{Info, MotifImport};
use super::notes::Notes;
use super::operator_box::OperatorBox;
use super::planned::{EntryLater, SpecLater};
use super::profiles::Profiles;
use super::rules::{Mutation, Normalize, Validation};
use super::scalar::Text;
use super::scope::Scopes;
use super::security::{EntryProtection, EntryWebhooks, Security};
use super::setup::Setup;
use super::shape::Shape;
use super::sources::Sources;
use super::status::KatalogStatus;
use super::targets::AllowedTarget;

/// Fields of `spec` that may stand beside it.
pub(crate) const BLOCKS: &[&str] = &[
    "crossAccess",
    "gateway",
    "imports",
    "lifecycle",
    "notes",
    "notification",
    "policy",
    "profiles",
    "providers",
    "publish",
    "security",
    "sources",
];

/// What a Katalog declares: an operator for each custom resource definition.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orkestra.orkspace.io",
    version = "v1",
    kind = "Katalog",
    plural = "katalogs",
    shortname = "kat",
    category = "orkestra",
    namespaced,
    status = "KatalogStatus",
    schema = "disabled",
    doc = "A Katalog declares operators: one for each custom resource definition it names."
)]
#[serde(rename_all = "camelCase", default)]
pub struct KatalogSpec {
    /// The operators, by name. The name is the operator's own: it appears in `/katalog/{name}`, in
    /// `dependsOn` and in overrides.
    pub crds: BTreeMap<String, CrdEntry>,
    /// Author, version and the like, for registries and people. A file may have them in `metadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// Motifs whose profiles and notes the whole Katalog may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<MotifImport>,
    /// Profiles that fields named `profile` refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Profiles>,
    /// Functions that all templates of the Katalog may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// Finalizers that the resources of all operators get beside ours; an operator's own list counts
    /// instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// What happens to custom resources when the Katalog is deleted. Default `keep`: they stay, with
    /// their children, and nobody looks after them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Which pages of the HTTP API operators have that say nothing else. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// How mature the Katalog is, and whether another one replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<KatalogLifecycle>,
    /// Protection and webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// `true` stops all operators: custom resources and their children stay, and custom resources can be deleted. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Where further Katalogs come from; their operators run beside those of `crds`. An entry of `crds` with the name of one of
    /// them overrides it, as in a Komposer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// The sources that it was composed from.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) scopes: Scopes,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<SpecLater>,
}

/// What happens to custom resources when their Katalog is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeletionPolicy {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted, and the Katalog stays until they are gone.
    Delete,
}

/// One operator: the custom resource definition it serves and what it does for each resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Ignored(&["mode"]))]
pub struct CrdEntry {
    /// `false` declares the operator without starting it. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What the operator is for; shown to people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Path or HTTPS URL of the custom resource definition. `ork run` applies it first and reads the
    /// API types from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd_file: Option<String>,
    /// Manifests of custom resources that `ork run` applies once the definition is established.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cr_files: Vec<String>,
    /// Manifests that `ork run` applies before the operator starts, in order: a list of files, or a map with `apply` and
    /// `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// Group, version, kind and plural of the custom resource. May be left out beside `crdFile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_types: Option<ApiTypes>,
    /// How many resources are reconciled at a time; left out, it grows up to 32 while resources wait. Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// Whether the custom resource lives in namespaces. Read from the cluster when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaced: Option<bool>,
    /// `true` takes fields of children that another manager applies. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_conflict: Option<bool>,
    /// The only namespace that is watched. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only resources in these namespaces are reconciled. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_namespaces: Vec<String>,
    /// Resources in these namespaces are not reconciled, and no children are made there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted_namespaces: Vec<String>,
    /// Namespaces that a resource may choose for its children: names with `*` for any text, or label selectors over
    /// namespaces. Required where the namespace of a child depends on the resource, unless the operator also creates that
    /// namespace. The resource's own namespace and namespaces that are written out are always permitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_targets: Vec<AllowedTarget>,
    /// Labels that resources must have to be watched. One that loses them is let go: its children stay. Required for
    /// built-in kinds such as `Deployment`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, String>,
    /// Fields that resources must have to be watched, as far as the API server selects by them:
    /// `metadata.name`, and `selectableFields` of the definition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub field_selector: BTreeMap<String, String>,
    /// Labels that every resource gets; values may be templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Text>,
    /// Annotations that every resource gets; values may be templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Text>,
    /// Finalizers that every resource gets beside ours; those of `operatorBox` count before these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// `true` never writes a status. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_status_patch: Option<bool>,
    /// Operators that must run first: their names, or names with what must be so of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<DependsOn>,
    /// What is added to children that templates read, such as the pods of a workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enrich: Vec<Enrich>,
    /// `true` adds everything that `enrich` can; with `except`, everything but what that lists. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enrich_all: Option<EnrichAll>,
    /// What the operator does for each resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_box: Option<OperatorBox>,
    /// Values of the spec, brought to one form before anything is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalize>,
    /// Rules that complete resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
    /// Rules that resources must keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// The conversion of custom resources from one version of their kind to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// The webhooks that custom resources pass when they are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<EntryWebhooks>,
    /// The protection of the definition and of custom resources against deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<EntryProtection>,
    /// Motifs that the operator is made of, beside its box.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<MotifImport>,
    /// Whether other entries, and other Katalogs, may read the resources through `cross`. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_access: Option<bool>,
    /// `true` makes each resource the parent of an `ApplySet` (KEP-3659) of its children, with labels and annotations of
    /// `applyset.kubernetes.io`. The definition needs the label `applyset.kubernetes.io/is-parent-type: "true"`. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_set: Option<bool>,
    /// Which pages of the HTTP API the operator has. Default: those of `spec.endpoints`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<EntryLater>,
}

impl CrdEntry {
    /// Whether the operator is to run.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// Where the API server serves a kind. Beside `crdFile`, the definition fills in what is left out; of kinds of Kubernetes
/// itself, `kind` is enough, in any case or as a short name such as `pvc`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Ignored(&["location", "object", "objectList", "alias"]))]
pub struct ApiTypes {
    /// API group, such as `demo.example.org`; empty for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Version, such as `v1alpha1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind, such as `Website`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Plural name in paths, such as `websites`. Default: that of the definition, else the kind in lower case with the
    /// ending of an English plural.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plural: Option<String>,
    /// Root path: `/apis`, or `/api` for the core group. Follows from the group when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_path: Option<String>,
}

/// The shape of a whole Katalog.
pub(crate) fn document_shape() -> Shape {
    envelope::shape::<KatalogSpec>(BLOCKS)
}
