//! `operatorBox.cross`: custom resources of other operators that templates read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::later::Later;
use super::planned::CrossLater;
use super::scalar::Text;

/// A custom resource of another operator that is read. What templates read of it is at `.cross.<as>`, and beside that
/// `found` (`"true"` or `"false"`), and the `health` and the `metrics` of its operator.
///
/// Where there is none, `found` is `"false"` and all else is empty. While it cannot be told whether there is one, because
/// no operator of that name runs here or a right is missing, whatever reads it stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cross {
    /// The operator whose resource it is: its name in `spec.crds`, of this Katalog or of another one in the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd: Option<String>,
    /// Chooses the operator, instead of `crd`, by labels of the `CustomResourceDefinition` that it operates. One operator
    /// must have them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, Text>,
    /// Which resource it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<CrossSelector>,
    /// Namespaces that a resource may choose to read from: names, with `*` for any text. Required where `selector.namespace`
    /// depends on the resource. Its own namespace, and one that is written out, are always permitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_namespaces: Vec<String>,
    /// The key under `.cross`. Default: `crd`.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub as_: Option<String>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<CrossLater>,
}

/// Which resource is read. Its templates read the custom resource, and entries of `cross` above this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CrossSelector {
    /// Its name. Where that is empty, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Its namespace. Default: the custom resource's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// Its labels, instead of `name`: of those in the namespace that have all of them, the first by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, Text>,
}
