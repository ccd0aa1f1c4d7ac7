//! `env` and `envFrom`: the container's environment, in the forms that Katalogs write.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::scalar::Text;
use orkestra_object::value::Node;

/// Environment variables: a map by name, or a list as in a Pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Env {
    /// A map by name; variables are set in the order of their names.
    Map(BTreeMap<String, EnvValue>),
    /// A list as in a Pod; the order is kept.
    List(Vec<EnvVar>),
}

impl Default for Env {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum EnvValue {
    /// The source of the value.
    Source(EnvSource),
    /// The literal value.
    Text(Text),
}

/// The source of an environment variable's value. Exactly one field must be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EnvSource {
    /// The literal value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// A key of a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// A key of a `ConfigMap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
}

/// One key of a Secret or `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the object.
    pub name: Text,
    /// The key in the object's data.
    pub key: Text,
    /// If `true`, the container starts even if the object or the key does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// An environment variable as in a Pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    pub name: Text,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The source of the value, as in a Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value_from: Option<Node>,
}

/// Environment variables from all keys of `ConfigMaps` and Secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum EnvFrom {
    /// An ordered list of sources.
    List(Vec<EnvFromSource>),
    /// By kind.
    Object(EnvFromObject),
}

impl Default for EnvFrom {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// A source of environment variables. Exactly one reference must be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvFromSource {
    /// A `ConfigMap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<NameRef>,
    /// A Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NameRef>,
    /// A prefix for the names of the variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Text>,
}

/// Sources of environment variables by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvFromObject {
    /// `ConfigMaps`, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_map_ref: Vec<NameRef>,
    /// Secrets, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secret_ref: Vec<NameRef>,
}

/// A reference to an object by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum NameRef {
    /// As in a Pod.
    Object(ObjectNameRef),
    /// The name alone.
    Name(Text),
}

/// A reference to an object by name, as in a Pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectNameRef {
    /// Name of the object.
    pub name: Text,
    /// If `true`, the container starts even if the object does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

impl NameRef {
    /// Name of the object.
    pub fn name(&self) -> &Text {
        match self {
            NameRef::Object(ObjectNameRef { name, .. }) | NameRef::Name(name) => name,
        }
    }

    /// Whether the object may be missing.
    pub fn optional(&self) -> Option<bool> {
        match self {
            NameRef::Object(object) => object.optional,
            NameRef::Name(_) => None,
        }
    }
}

impl EnvFrom {
    /// The sources as a list; of the form by kind, `ConfigMaps` come first.
    pub fn sources(&self) -> Vec<EnvFromSource> {
        match self {
            EnvFrom::List(list) => list.clone(),
            EnvFrom::Object(object) => {
                let config_maps = object.config_map_ref.iter().map(|name| EnvFromSource {
                    config_map_ref: Some(name.clone()),
                    ..EnvFromSource::default()
                });
                let secrets = object.secret_ref.iter().map(|name| EnvFromSource {
                    secret_ref: Some(name.clone()),
                    ..EnvFromSource::default()
                });
                config_maps.chain(secrets).collect()
            }
        }
    }
}
