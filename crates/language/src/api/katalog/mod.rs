//! `Katalog`: the operators that a document declares, one for each entry of `spec.crds`.

mod scope;

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conversion::Conversion;
use super::depends::DependsOn;
use super::endpoints::Endpoints;
use super::enrich::{Enrich, EnrichAll};
use super::entry_schema::EntrySchema;
use super::envelope;
use super::info::Info;
use super::later::{Ignored, Later};
use super::lifecycle::KatalogLifecycle;
use super::motif::MotifImport;
use super::notes::Notes;
use super::notification::Notification;
use super::operator_box::OperatorBox;
use super::profiles::Profiles;
use super::providers::Provider;
use super::rules::{Mutation, Normalize, Validation};
use super::scalar::Text;
use super::security::{EntryProtection, EntryWebhooks, Security};
use super::setup::Setup;
use super::shape::Shape;
use super::sources::Sources;
use super::status::KatalogStatus;
use super::targets::AllowedTarget;

pub use scope::{Scope, Scopes};

/// Fields of `spec` that may stand beside it.
pub const BLOCKS: &[&str] = &[
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

/// The specification of a Katalog: an operator for each custom resource definition.
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
    /// The operators, by name. The name identifies the operator in `/katalog/{name}`, in `dependsOn` and in overrides.
    pub crds: BTreeMap<String, CrdEntry>,
    /// Author, version and other descriptive metadata for registries and users. A file may declare them in `metadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// A list of Motifs whose profiles and functions are available to the whole Katalog.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<MotifImport>,
    /// Profiles that fields named `profile` refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Profiles>,
    /// Functions that all templates of the Katalog can call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// A list of finalizers that are added to the custom resources of all operators, in addition to Orkestra's. An operator's
    /// own list replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// The handling of custom resources when the Katalog is deleted. Default `keep`: they stay, with their children, and are no
    /// longer reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// The pages of the HTTP API for operators that do not set `endpoints`. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// Maturity and deprecation of the Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<KatalogLifecycle>,
    /// Deletion protection, namespace protection and webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// If `true`, all operators stop. Custom resources and their children stay, and custom resources can be deleted. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The number of accepted revisions that are kept before the newest one, for `ork history` and `ork rollback`; at most 50. Default `5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 50))]
    pub revision_history_limit: Option<u8>,
    /// Sources of further Katalogs, whose operators run in addition to those of `crds`. An entry of `crds` with the same name
    /// overrides the operator, as in a Komposer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// The sources that it was composed from.
    #[serde(skip)]
    #[schemars(skip)]
    pub scopes: Scopes,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<SpecLater>,
}

/// Further blocks of a Katalog.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct SpecLater {
    /// Providers of external resources.
    providers: Option<Vec<Provider>>,
    /// Notifications about failures.
    notification: Option<Notification>,
    /// The REST API and access to other clusters.
    gateway: Option<serde_json::Value>,
    /// If `true`, other operators can read the custom resources through `cross`.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "each entry of `spec.crds` has its own `crossAccess`"))]
    cross_access: Option<bool>,
    /// The requirements of a registry for artifacts.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "it is for registries"))]
    policy: Option<serde_json::Value>,
    /// The steps to run when the document is published.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "it is for registries"))]
    publish: Option<serde_json::Value>,
}

/// The handling of custom resources when their Katalog is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeletionPolicy {
    /// Custom resources are kept.
    #[default]
    Keep,
    /// Custom resources are deleted, and the Katalog stays until they are gone.
    Delete,
}

/// An operator: its custom resource definition, and the reconciliation of its custom resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Ignored(&["mode"]))]
pub struct CrdEntry {
    /// If `false`, the operator is declared but not started. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// A description of the operator for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Path or HTTPS URL of the custom resource definition's manifest. `ork run` applies it first and reads the API types from
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd_file: Option<String>,
    /// The definition of the kind, instead of `crdFile`: the CRD is generated from it. `ork run` applies it, and `ork generate crd`
    /// prints it for `kubectl apply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<EntrySchema>,
    /// A list of manifests of custom resources that `ork run` applies once the definition is established.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cr_files: Vec<String>,
    /// Manifests that `ork run` applies before the operator starts, in order: a list of files, or a map with `apply` and
    /// `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// Group, version, kind and plural of the custom resource. Optional if `crdFile` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_types: Option<ApiTypes>,
    /// The maximum number of resources that are reconciled concurrently. If not set, it grows up to 32 while resources wait.
    /// Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// If `true`, the custom resource is namespaced. If not set, this is read from the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaced: Option<bool>,
    /// If `true`, takes ownership of fields of children that another field manager applies. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_conflict: Option<bool>,
    /// The namespace to watch. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// A list of the namespaces whose resources are reconciled. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_namespaces: Vec<String>,
    /// A list of namespaces whose resources are not reconciled and in which no children are created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted_namespaces: Vec<String>,
    /// A list of namespaces that a resource may select for its children: names, in which `*` matches any text, or label
    /// selectors over namespaces. Required if the namespace of a child depends on the resource, unless the operator also
    /// creates that namespace. The resource's own namespace and namespaces that the Katalog names literally are always
    /// permitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_targets: Vec<AllowedTarget>,
    /// Labels that a resource must have to be watched. A resource that loses them is no longer managed; its children stay.
    /// Required for built-in kinds such as `Deployment`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, String>,
    /// Fields that a resource must have to be watched. Limited to the fields by which the API server can select:
    /// `metadata.name`, and `selectableFields` of the definition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub field_selector: BTreeMap<String, String>,
    /// Labels that are added to every custom resource. Values may be templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Text>,
    /// Annotations that are added to every custom resource. Values may be templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Text>,
    /// A list of finalizers that are added to every custom resource, in addition to Orkestra's. Those of `operatorBox` take
    /// precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// If `true`, no status is written. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_status_patch: Option<bool>,
    /// The operators that this one depends on: a list of names, or a map from names to conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<DependsOn>,
    /// A list of related data to add to the children that templates read, such as the pods of a workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enrich: Vec<Enrich>,
    /// If `true`, adds everything that `enrich` supports. With `except`, adds everything except the listed items. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enrich_all: Option<EnrichAll>,
    /// The reconciliation of each custom resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_box: Option<OperatorBox>,
    /// Normalization of values of the spec, before any child is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalize>,
    /// Rules that set fields of custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
    /// Rules that custom resources must satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// The conversion of custom resources from one version of their kind to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// The admission webhooks for custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<EntryWebhooks>,
    /// The protection of the definition and of custom resources against deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<EntryProtection>,
    /// A list of Motifs that are part of the operator, in addition to `operatorBox`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<MotifImport>,
    /// Who can read the custom resources through `cross`: with `true` all Katalogs, with `false` no other Katalog; without it the other entries,
    /// and the Katalogs in the namespace of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_access: Option<bool>,
    /// If `true`, each custom resource is the parent of an `ApplySet` (KEP-3659) of its children, with labels and annotations
    /// of `applyset.kubernetes.io`. The definition needs the label `applyset.kubernetes.io/is-parent-type: "true"`. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_set: Option<bool>,
    /// The pages of the HTTP API for the operator. Default: those of `spec.endpoints`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<EntryLater>,
}

/// Further fields of an operator.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct EntryLater {
    /// If `true`, every change is reconciled, regardless of the observed generation.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    ignore_observed_generation: Option<bool>,
    /// If `true`, all finalizers of a deleted custom resource are removed.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "only the finalizers of Orkestra are removed: each controller removes its own"))]
    remove_finalizers: Option<bool>,
    /// The operator's self-service pages.
    serve: Option<serde_json::Value>,
}

impl CrdEntry {
    /// Whether the operator is to run.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// The API types of a custom resource. With `crdFile`, fields that are not set are read from the definition. For built-in
/// kinds, `kind` is sufficient, in any letter case or as a short name such as `pvc`.
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
    /// Root path: `/apis`, or `/api` for the core group. Derived from the group if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_path: Option<String>,
}

/// The shape of a whole Katalog.
pub(crate) fn document_shape() -> Shape {
    envelope::shape::<KatalogSpec>(BLOCKS)
}
