//! `Komposer`: operators composed from Katalogs in other locations, with overrides.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::info::Info;
use super::katalog::{CrdEntry, DeletionPolicy};
use super::later::Later;
use super::notification::Notification;
use super::providers::Provider;
use super::security::Security;
use super::shape::Shape;
use super::sources::Sources;
use super::status::KatalogStatus;
use super::{duration::Span, envelope};
use orkestra_object::value::Node;

/// Fields of `spec` that may stand beside it.
pub const BLOCKS: &[&str] = &[
    "imports",
    "notification",
    "providers",
    "security",
    "sources",
];

/// The shape of a whole Komposer.
pub(crate) fn document_shape() -> Shape {
    envelope::shape::<KomposerSpec>(BLOCKS)
}

/// The status of a Komposer: that of a Katalog, with the state of each source.
pub type KomposerStatus = KatalogStatus;

/// The specification of a Komposer.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orkestra.orkspace.io",
    version = "v1",
    kind = "Komposer",
    plural = "komposers",
    shortname = "komp",
    category = "orkestra",
    namespaced,
    status = "KomposerStatus",
    schema = "disabled",
    doc = "A Komposer runs the operators of Katalogs from other places, with overrides."
)]
#[serde(rename_all = "camelCase", default)]
pub struct KomposerSpec {
    /// Author, version and other descriptive metadata for registries and users. A file may declare them in `metadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// The sources of the Katalogs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// Overrides of the operators of the sources, by operator name. Maps are merged field by field, lists are replaced.
    /// `enabled: false` does not start the operator.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, CrdEntry>")]
    pub crds: BTreeMap<String, Node>,
    /// The interval at which sources without their own `interval` are checked for a new revision. Default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// If `required`, a source is rejected unless its digest is locked, in the file `komposer.lock` or in `locked`. Default:
    /// only sources that are locked are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockMode>,
    /// Digests of sources, as in `komposer.lock`: a source with another digest is rejected.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub locked: BTreeMap<String, String>,
    /// Digests of source revisions whose additional permissions are approved, such as `sha256:…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<String>,
    /// If `true`, all operators stop. Custom resources and their children stay. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The number of accepted revisions that are kept before the newest one, for `ork history` and `ork rollback`; at most 50. Default `5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 50))]
    pub revision_history_limit: Option<u8>,
    /// The handling of custom resources when the Komposer is deleted. Default `keep`: they stay, with their children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Deletion protection, namespace protection and webhooks. They take precedence over those of the sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<KomposerLater>,
}

/// Further blocks of a Komposer.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct KomposerLater {
    /// Providers, in addition to those of the sources.
    providers: Option<Vec<Provider>>,
    /// Notifications. Teams are added to those of the sources.
    notification: Option<Notification>,
}

/// The requirement for locked digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockMode {
    /// Every source must be locked.
    Required,
}
