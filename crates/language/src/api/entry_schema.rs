//! `schema` of an entry: the definition of the kind, in short.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use orkestra_object::value::Node;

/// The definition of the kind, from which the CRD is generated. `spec`, `status` and `types` are maps from a field's name to its
/// type: `string`, `integer`, `number`, `boolean`, `object`, a list (`[]string`), a map (`map[string]string`), a name of `types`,
/// or nested fields. After `|` follow settings: `required=true`, `default=…`, `enum="a,b"`, `minimum`, `maximum`, `minLength`,
/// `maxLength`, `minItems`, `maxItems`, `pattern`, `format`, `immutable=true`, `validation="CEL"` and `description="…"`. A field
/// `{openAPIV3Schema: …}` has a complete schema.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EntrySchema {
    /// The fields of the spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub spec: BTreeMap<String, Node>,
    /// Fields of the status, in addition to those that the entry writes, or with a type that differs from the derived one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub status: BTreeMap<String, Node>,
    /// Types that fields can name: maps of fields.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub types: BTreeMap<String, Node>,
    /// The description of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A list of rules in CEL about the spec, in which `self` is the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<SchemaRule>,
    /// A list of columns of `kubectl get`, before those of the condition `Ready` and the age.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub printer_columns: Vec<PrinterColumn>,
    /// Further names of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<SchemaNames>,
    /// A complete schema of the custom resource, instead of `spec`, `types` and `validation`.
    #[serde(rename = "openAPIV3Schema", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub open_api_v3_schema: Option<Node>,
    /// If `true`, this is the version in which custom resources are stored. Default: the version of the entry if it is the only
    /// one of its kind, else the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<bool>,
}

/// A rule in CEL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchemaRule {
    /// The rule, such as `self.minReplicas <= self.maxReplicas`.
    pub rule: String,
    /// The message if it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// The field, such as `.spec.replicas`.
    pub json_path: String,
    /// The type: `string`, `integer`, `number`, `boolean` or `date`. Default: that of the field, else `string`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// A description of the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A column with a priority above 0 is shown only in wide output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// Further names of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SchemaNames {
    /// Singular. Default: the kind in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub singular: Option<String>,
    /// A list of short names for `kubectl`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// A list of the groups of kinds, such as `all`, in which `kubectl get` shows this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}
