//! `configMaps` and `secrets`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use crate::api::later::Later;
use crate::api::planned::{ConfigMapLater, SecretLater};
use crate::api::scalar::Text;

/// A `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    /// Name, metadata and handling. Default name: `<cr>-config`.
    #[serde(flatten)]
    pub common: Common,
    /// The texts by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Text>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<ConfigMapLater>,
}

/// A Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Name, metadata and handling. Default name: `<cr>-secret`.
    #[serde(flatten)]
    pub common: Common,
    /// The Secret's type. Default `Opaque`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The texts by key, plain; they are encoded on the way to the cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Text>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<SecretLater>,
}
