//! `dependsOn`: which operators an operator waits for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operators that must run first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum DependsOn {
    /// Their names: they must have started.
    List(Vec<String>),
    /// Their names, and what must be so.
    Map(BTreeMap<String, Dependency>),
}

/// What must be so of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Dependency {
    /// It alone.
    Condition(DependencyCondition),
    /// Under `condition`.
    Object(DependencyObject),
}

/// What must be so of an operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DependencyObject {
    /// What must be so. Default `started`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<DependencyCondition>,
}

/// What must be so of an operator.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DependencyCondition {
    /// Its workers run. Once that was so, it is not asked again.
    #[default]
    Started,
    /// Its workers run, a pass has succeeded, and it is not degraded. While that is not so, the operator that waits
    /// begins no pass.
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
