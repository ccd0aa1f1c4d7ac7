//! The contract of hooks: what a hook is asked with, and what it answers. The same in each transport.
//!
//! These types are what the runtime writes and reads; their JSON Schemas are in `docs/reference`.

use std::collections::BTreeMap;

use orkestra_object::value::Node;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conditions::ConditionStatus;
use super::duration::Span;

/// `apiVersion` of requests and answers.
pub const HOOK_API_VERSION: &str = "hooks.orkestra.orkspace.io/v1";
/// `kind` of requests.
pub const HOOK_REQUEST: &str = "HookRequest";
/// Most Events and conditions in one answer.
pub const MOST_REPORTS: usize = 20;

/// What a hook is asked with. It has no time and no resource version, so the same state gives the same request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "HookRequest")]
pub struct HookRequest {
    /// `hooks.orkestra.orkspace.io/v1`.
    #[schemars(extend("const" = HOOK_API_VERSION))]
    pub api_version: String,
    /// `HookRequest`.
    #[schemars(extend("const" = HOOK_REQUEST))]
    pub kind: String,
    /// The name of the hook; `constructor` for a constructor.
    pub hook: String,
    /// Why it is called.
    pub operation: HookOperation,
    /// The custom resource as templates see it, without `metadata.resourceVersion` and `metadata.managedFields`.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub object: Node,
    /// Its existing children of the managed kinds: by kind, such as `Deployment.apps/v1`, then by name. Each managed kind has an entry.
    /// The name of a namespaced child of a cluster-scoped custom resource is `<namespace>/<name>`.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>")]
    pub children: Node,
    /// The arguments, by name.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub args: Node,
    /// The responses of external calls, by name, as templates see them.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub external: Node,
}

/// Why a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum HookOperation {
    /// The custom resource exists.
    Sync,
    /// The custom resource is being deleted.
    Finalize,
}

/// What a hook answers. Every field is optional, and `null` is the same as a missing field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a JSON object"
)]
#[schemars(title = "HookAnswer")]
pub struct HookAnswer {
    /// `hooks.orkestra.orkspace.io/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Any text, such as `HookAnswer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The wanted children. Those that are no longer returned are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HookChildren>")]
    pub children: Option<Node>,
    /// Any value, for templates at `.hook.<name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub data: Option<Node>,
    /// Fields of the status. Maps are merged; `null` removes a field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub status: Option<Node>,
    /// Conditions of the custom resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MOST_REPORTS))]
    pub conditions: Option<Vec<HookCondition>>,
    /// Events about the custom resource. Each is sent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MOST_REPORTS))]
    pub events: Option<Vec<HookEvent>>,
    /// The time until the next reconcile pass, such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Span>,
    /// For `finalize`: `true` if nothing is left to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalized: Option<bool>,
    /// Why the hook failed. Nothing else of the answer is used then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HookFailure>")]
    pub error: Option<Node>,
}

/// The wanted children, in one of two forms.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "only the schema is used: messages name the child")]
enum HookChildren {
    /// Whole objects, each of a kind of `managedResources`.
    Objects(Vec<HookObject>),
    /// Entries of the language, by list, as under `onReconcile`.
    Entries(BTreeMap<String, Vec<BTreeMap<String, Value>>>),
}

/// A whole object.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used: messages name the child")]
struct HookObject {
    /// `apiVersion` of the object, such as `apps/v1`.
    api_version: String,
    /// Kind of the object.
    kind: String,
    /// Name, namespace, labels and annotations are used.
    metadata: HookObjectMetadata,
    /// The fields of the object.
    #[serde(flatten)]
    fields: BTreeMap<String, Value>,
}

/// The metadata of a whole object.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only the schema is used: messages name the child")]
struct HookObjectMetadata {
    /// Name of the object.
    name: String,
    /// Namespace of the object. Default: that of the custom resource, and required if that is cluster-scoped.
    namespace: Option<String>,
    /// Labels of the object.
    labels: Option<BTreeMap<String, Option<String>>>,
    /// Annotations of the object.
    annotations: Option<BTreeMap<String, Option<String>>>,
    /// Other fields are ignored.
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

/// A condition of the custom resource. `Ready` that is not `True` keeps it from being ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookCondition {
    /// Type of the condition. Those of the runtime, such as `Stalled`, are refused.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Why, as one word in CamelCase. Default `Reported`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A human-readable message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An Event about the custom resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookEvent {
    /// `Normal` or `Warning`. Default `Normal`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<HookEventType>,
    /// Why, as one word in CamelCase.
    pub reason: String,
    /// A human-readable message.
    pub message: String,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum HookEventType {
    /// It is information.
    Normal,
    /// It is a problem.
    Warning,
}

/// Why a hook failed.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(
    dead_code,
    reason = "only the schema is used: any text and any map is a failure"
)]
enum HookFailure {
    /// A message; the call is retried.
    Text(String),
    /// A message, and whether a retry is pointless.
    Failure {
        /// A human-readable message.
        message: Option<String>,
        /// Whether only a change of the custom resource or of the hook helps: it is retried slowly.
        permanent: Option<bool>,
    },
}

impl HookAnswer {
    /// Reads an answer.
    ///
    /// # Errors
    /// The field that is not as the contract says, with the reason; or why the text is not JSON.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            match inner.classify() {
                serde_json::error::Category::Data if path == "." => {
                    format!("the answer is not valid: {inner}")
                }
                serde_json::error::Category::Data => format!("`{path}`: {inner}"),
                _ => format!("the answer is not JSON: {inner}"),
            }
        })?;
        match deserializer.end() {
            Ok(()) => Ok(read),
            Err(error) => Err(format!("the answer is not JSON: {error}")),
        }
    }
}

/// Returns the JSON Schema (draft 2020-12) of requests.
pub fn hook_request_schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<HookRequest>()
}

/// Returns the JSON Schema (draft 2020-12) of answers.
pub fn hook_answer_schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings
        .into_generator()
        .into_root_schema_for::<HookAnswer>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_valid_says_where_and_why() {
        let cases = [
            ("{} {}", "the answer is not JSON: trailing characters"),
            ("up", "the answer is not JSON: "),
            (
                "[]",
                "the answer is not valid: invalid type: sequence, expected a JSON object",
            ),
            (
                r#"{"childern": []}"#,
                "unknown field `childern`, expected one of",
            ),
            (
                r#"{"conditions": [{"type": "On", "status": "Yes"}]}"#,
                "`conditions[0].status`: unknown variant `Yes`",
            ),
            (
                r#"{"events": [{"reason": "Up"}]}"#,
                "`events[0]`: missing field `message`",
            ),
            (r#"{"requeueAfter": "soon"}"#, "`requeueAfter`: "),
            (
                r#"{"finalized": "yes"}"#,
                "`finalized`: invalid type: string \"yes\", expected a boolean",
            ),
        ];
        for (text, expected) in cases {
            let error = HookAnswer::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let empty = HookAnswer::parse(r#"{"children": null, "finalized": null}"#);
        assert_eq!(empty, Ok(HookAnswer::default()));
    }
}
