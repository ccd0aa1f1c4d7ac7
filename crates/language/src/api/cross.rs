//! `operatorBox.cross`: custom resources of other operators that templates read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::SecretRef;
use super::duration::Span;
use super::later::Later;
use super::scalar::Text;

/// A custom resource of another operator to read. It is at `.cross.<as>`, together with `found` (`"true"` or `"false"`), and
/// the `health` and the `metrics` of its operator.
///
/// If it does not exist, `found` is `"false"` and everything else is empty. While its existence cannot be determined, because
/// no operator of that name runs here or a permission is missing, everything that reads it stays unchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cross {
    /// Name of the operator of the resource: an entry of `spec.crds` of this Katalog, or of exactly one other Katalog in its
    /// namespace. In full, `namespace/katalog/crd`, it is the entry of any Katalog in the process; one in another namespace must have
    /// `crossAccess: true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd: Option<String>,
    /// Selects the operator, instead of `crd`, by labels of the `CustomResourceDefinition` that it operates. One operator must
    /// have them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, Text>,
    /// Selects the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<CrossSelector>,
    /// A list of namespaces that a resource may select to read from: names, in which `*` matches any text. Required if
    /// `selector.namespace` depends on the resource. Its own namespace, and one that the Katalog names literally, are always
    /// permitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_namespaces: Vec<String>,
    /// The key under `.cross`. Default: the name of the entry in `crd`.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub as_: Option<String>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<CrossLater>,
}

/// Selects the resource to read. Its templates can read the custom resource, and entries of `cross` above this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CrossSelector {
    /// Name of the resource. If it is empty, no resource is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Namespace of the object. Default: the custom resource's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// Labels of the resource, instead of `name`. If several resources in the namespace have all of them, the first by name is
    /// read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, Text>,
}

/// Further fields of an entry of `cross`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct CrossLater {
    /// The location of the resource, if it is not in this cluster.
    source: Option<CrossSource>,
}

/// The location of another custom resource.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct CrossSource {
    /// URL of another runtime.
    host: Option<Text>,
    /// The data to read. Default `cr`.
    protocol: Option<CrossProtocol>,
    /// URL of JSON to read, instead of `host`.
    endpoint: Option<Text>,
    /// The duration for which a response is cached. Default `30s`.
    cache_for: Option<Span>,
    /// Namespace of the resource. Default: the custom resource's.
    namespace: Option<Text>,
    /// Credentials. One of the two fields must be set.
    auth: Option<CrossAuth>,
}

/// The data to read from another runtime.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum CrossProtocol {
    /// The custom resource.
    Cr,
    /// The health of its operator.
    Health,
    /// The metrics of its operator.
    Metrics,
    /// Information about its operator.
    Info,
    /// Its Events.
    Events,
}

/// Credentials for another runtime.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct CrossAuth {
    /// A bearer token; `$VAR` is read from the environment.
    token: Option<String>,
    /// The key of a Secret.
    secret_ref: Option<SecretRef>,
}
