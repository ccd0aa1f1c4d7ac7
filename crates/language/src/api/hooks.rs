//! `hooks` and `constructor`: functions outside of the Katalog that decide on children and on the status.

use std::collections::BTreeMap;

use orkestra_object::value::Node;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::{CallAuth, RetryBackoff};
use super::duration::Span;
use super::gate::GateCondition;
use super::later::{Later, Refused};
use super::scalar::Text;

/// Why a function in Go is refused.
const NO_GO: &str = "Orkestra loads no Go code: serve the function over HTTP, in any language, and name its address under `http`";

/// Hooks: one, or a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Hooks {
    /// One hook.
    One(Box<Hook>),
    /// Several hooks, which are called in this order.
    Several(Vec<Hook>),
}

impl Hooks {
    /// Returns the hooks.
    pub fn all(&self) -> &[Hook] {
        match self {
            Self::One(hook) => std::slice::from_ref(hook),
            Self::Several(hooks) => hooks,
        }
    }
}

/// A function outside of the Katalog that is called in addition to the declared blocks. It gets the custom resource and its
/// children, and returns children, fields of the status, and data, which templates read at `.hook.<name>`. Nothing is
/// written before its whole answer is valid.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["location", "function", "alias", "runHooksFirst", "external"], NO_GO))]
pub struct Hook {
    /// The key of its data under `.hook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it is called. Default `before`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<HookAt>,
    /// The HTTP endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HookHttp>,
    /// Values for the function, by name. Each may be a template; one of a single expression gives its value with its type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub args: BTreeMap<String, Node>,
    /// The kinds of children that it may return. It gets the existing children of these kinds, and permissions are derived from
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_resources: Vec<ManagedResource>,
    /// Conditions that must all hold for the hook to be called. While they do not hold, none of its children is wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold for the hook to be called. If `when` is also set, both apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// The duration for which an answer is used again for the same request; `0s` calls the hook in every reconcile pass. Default:
    /// until the request changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_for: Option<Span>,
    /// The timeout of an attempt, at most `30s`. Default `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The backoff for retries of a failed call within a reconcile pass. Default: none; a failed reconcile pass is retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<RetryBackoff>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<HookLater>,
}

/// A function outside of the Katalog that decides on all children, instead of declared blocks. It requires `default: false`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["location", "function", "alias", "external"], NO_GO))]
pub struct Constructor {
    /// The HTTP endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HookHttp>,
    /// Values for the function, by name. Each may be a template; one of a single expression gives its value with its type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub args: BTreeMap<String, Node>,
    /// The kinds of children that it may return. It gets the existing children of these kinds, and permissions are derived from
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_resources: Vec<ManagedResource>,
    /// The duration for which an answer is used again for the same request; `0s` calls it in every reconcile pass. Default:
    /// until the request changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_for: Option<Span>,
    /// The timeout of an attempt, at most `30s`. Default `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The backoff for retries of a failed call within a reconcile pass. Default: none; a failed reconcile pass is retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<RetryBackoff>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<HookLater>,
}

/// Further transports of hooks.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct HookLater {
    /// A WebAssembly module.
    wasm: Option<serde_json::Value>,
    /// A hook of a program that embeds Orkestra.
    rust: Option<serde_json::Value>,
}

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookAt {
    /// Before templates are rendered.
    Before,
    /// When all children that templates declare exist.
    After,
    /// When the custom resource is being deleted, before `onDelete`.
    Finalize,
}

/// The HTTP endpoint of a hook. The runtime only calls endpoints that its `--external-allow` permits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookHttp {
    /// URL of the endpoint, `https://…` or `http://…`. Each call is a POST.
    pub url: Text,
    /// URL that is called when the custom resource is being deleted, before `onDelete`. Default: for hooks with `at: finalize`
    /// that of `url`, for others none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalize_url: Option<Text>,
    /// The shape of requests and responses. Default `orkestra`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<HookProtocol>,
    /// HTTP headers of the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// A bearer token. If it is not a template, `$VAR` is a variable of the runtime's environment that `--external-env`
    /// permits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Text>,
    /// A bearer token from a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<CallAuth>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<HookHttpLater>,
}

/// Further fields of the endpoint of a hook.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct HookHttpLater {
    /// URL that returns the related objects that the hook gets.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "declare related objects under `observe.watch` or `cross`, and pass them under `args`"))]
    customize_url: Option<Text>,
}

/// The shape of requests and responses of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookProtocol {
    /// Orkestra's own.
    Orkestra,
    /// That of Metacontroller's `CompositeController` and `DecoratorController`.
    Metacontroller,
}

/// A kind of children that a hook returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResource {
    /// `apiVersion` of the objects, such as `batch/v1`. Default: that of the built-in kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Text>,
    /// Kind of the objects.
    pub kind: Text,
}
