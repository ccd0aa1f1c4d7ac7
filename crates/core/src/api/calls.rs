//! Calls to the outside.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::gate::GateCondition;
use super::later::{Later, LaterValues};
use super::planned::CallLater;
use super::rules::Fires;
use super::scalar::{Scalar, Text};

/// A call to the outside, over HTTP. Its answer is at `.external.<name>`: `status`, `body`, `error` (empty when all went
/// well), `called` (`true` or `false`) and `json`, which is the body where that is JSON. The runtime makes no call that its
/// `--external-allow` does not permit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalCall {
    /// The key under `.external`.
    pub name: String,
    /// Where the call goes, `https://…` or `http://…`.
    pub url: Text,
    /// The HTTP method. Default `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The only status that counts as success. Default `0`: all but 4xx and 5xx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<Scalar>,
    /// `true` goes on when the call fails, with the reason in `.error`. Default `false`: the pass fails, and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continue_on_error: Option<bool>,
    /// How long a try may take, at most `30s`. Default `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What is sent; JSON unless `headers` say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// A bearer token. Where it is no template, `$VAR` is a variable of the runtime's environment that `--external-env`
    /// permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Text>,
    /// A bearer token from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<CallAuth>,
    /// All must hold, or the call is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold, or the call is left out. Beside `when` both count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// How long a good answer is used again, by all custom resources that call the same. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_for: Option<Span>,
    /// Tries a failed call again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<RetryBackoff>,
    /// When the call of a rule is made; other calls are made in passes alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<Fires>,
    /// What is spoken. Default `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<CallLater>,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Sends.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

/// What a call speaks.
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

/// A key of a Secret. It cannot be a template: a custom resource's author does not choose which Secret is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallSecret {
    /// The Secret's name.
    pub name: String,
    /// Its namespace. Default: the custom resource's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The key in its data.
    pub key: String,
}

/// How something that failed is tried again within a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum RetryBackoff {
    /// The first wait alone.
    Initial(Span),
    /// All of it.
    Full(Backoff),
}

/// Waits between tries, each longer than the one before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    /// The first wait. Default `500ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// The longest wait. Default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// How many times as long each wait is. Default `2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Scalar>,
    /// Tries in all. Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Scalar>,
}
