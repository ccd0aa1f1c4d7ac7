//! `allowedTargets`: the namespaces that custom resources may choose for children.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A namespace, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum AllowedTarget {
    /// A name, with `*` for any text.
    Name(String),
    /// The namespaces that a label selector selects.
    Selector(NamespaceSelector),
}

/// A label selector over namespaces, as Kubernetes writes it. All that is given must match, and something must be given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceSelector {
    /// Labels that the namespace has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on the namespace's labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// How the label compares with `values`.
    pub operator: LabelOperator,
    /// The values of `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a label compares. Source: Kubernetes, "Labels and Selectors".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// The label has one of the values.
    In,
    /// The label is missing, or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is missing.
    DoesNotExist,
}
