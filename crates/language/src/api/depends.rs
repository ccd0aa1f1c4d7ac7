//! `dependsOn`: the operators that an operator waits for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operators that an operator depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum DependsOn {
    /// A list of names. The operators must have started.
    List(Vec<String>),
    /// A map from names to conditions.
    Map(BTreeMap<String, Dependency>),
}

/// A condition on an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Dependency {
    /// The condition only.
    Condition(DependencyCondition),
    /// Under `condition`.
    Object(DependencyObject),
}

/// A condition on an operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DependencyObject {
    /// The condition that the operator must meet. Default `started`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<DependencyCondition>,
}

/// A condition on an operator.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DependencyCondition {
    /// The operator's workers run. After the condition was met once, it is not checked again.
    #[default]
    Started,
    /// The operator's workers run, a reconcile pass has succeeded, and it is not degraded. While this is not met, the dependent
    /// operator starts no reconcile pass.
    Healthy,
}

impl DependsOn {
    /// The operators by name, each once, and what must be so of each.
    pub fn conditions(&self) -> BTreeMap<&str, DependencyCondition> {
        match self {
            Self::List(names) => names
                .iter()
                .map(|name| (name.as_str(), DependencyCondition::default()))
                .collect(),
            Self::Map(entries) => entries
                .iter()
                .map(|(name, dependency)| {
                    let condition = match dependency {
                        Dependency::Condition(condition) => *condition,
                        Dependency::Object(object) => object.condition.unwrap_or_default(),
                    };
                    (name.as_str(), condition)
                })
                .collect(),
        }
    }
}
