//! `external`: calls to external HTTP endpoints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::gate::GateCondition;
use super::later::{Later, LaterValues};
use super::scalar::{Scalar, Text};

/// A call to an external HTTP endpoint. The response is at `.external.<name>`: `status`, `body`, `error` (empty on success),
/// `called` (`true` or `false`) and `json`, the parsed body if it is JSON. The runtime only makes calls that its
/// `--external-allow` permits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalCall {
    /// The key under `.external`.
    pub name: String,
    /// URL of the endpoint, `https://…` or `http://…`.
    pub url: Text,
    /// The HTTP method. Default `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The only HTTP status that is a success; `0` permits all except 4xx and 5xx. Default `0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<Scalar>,
    /// If `true`, the reconcile pass continues when the call fails, with the reason in `.error`. Default `false`: the reconcile
    /// pass fails, and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continue_on_error: Option<bool>,
    /// The timeout of an attempt, at most `30s`. Default `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Body of the request. Sent as JSON unless `headers` set another content type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
    /// HTTP headers of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// A bearer token. If it is not a template, `$VAR` is a variable of the runtime's environment that `--external-env`
    /// permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Text>,
    /// A bearer token from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<CallAuth>,
    /// Conditions that must all hold. Otherwise the call is skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold. Otherwise the call is skipped. If `when` is also set, both apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// The duration for which a successful response is cached, for all custom resources that make the same call. Default: not
    /// at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_for: Option<Span>,
    /// The backoff for retries of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<RetryBackoff>,
    /// Specifies when the call of a rule is made. Other calls are made in reconcile passes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<Fires>,
    /// Protocol of the call. Default `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<CallLater>,
}

/// Further fields of a call.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct CallLater {
    /// The delay before the call.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "a delay guarantees nothing: wait for a condition with `when`, or retry with `retryBackoff`"))]
    sleep: Option<Span>,
    /// The query, in the protocol's own language.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "calls use HTTP: put the query into `url` or `body`"))]
    query: Option<Text>,
}

/// Specifies whether a rule or its call applies at admission, in reconcile passes, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Fires {
    /// If `true`, applies when a custom resource is written. If `false`, applies in reconcile passes only. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<bool>,
    /// If `true`, applies in reconcile passes. If `false`, applies at admission only: in reconcile passes a call is skipped.
    /// Default `true`; a rule that reads `.old` or `.operation` never applies in reconcile passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<bool>,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// HTTP GET.
    Get,
    /// HTTP POST.
    Post,
    /// HTTP PUT.
    Put,
    /// HTTP PATCH.
    Patch,
    /// HTTP DELETE.
    Delete,
}

/// The protocol of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = LaterValues(&["prometheus", "redis", "postgres", "mongo", "kafka", "grpc", "nats", "mqtt"]))]
pub enum Protocol {
    /// HTTP.
    Http,
}

/// Credentials of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallAuth {
    /// The key of a Secret that holds a bearer token.
    pub secret_ref: CallSecret,
}

/// A key of a Secret. It cannot be a template, so that the author of a custom resource cannot choose which Secret is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallSecret {
    /// Name of the Secret.
    pub name: String,
    /// Namespace of the object. Default: the custom resource's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The key in the object's data.
    pub key: String,
}

/// The backoff for retries within a reconcile pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum RetryBackoff {
    /// The first delay only.
    Initial(Span),
    /// All fields.
    Full(Backoff),
}

/// Exponentially increasing delays between attempts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    /// The first delay. Default `500ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// The maximum delay. Default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// The factor by which the delay grows after each attempt. Default `2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Scalar>,
    /// The maximum number of attempts. Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Scalar>,
}
