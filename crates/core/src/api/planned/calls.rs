//! Calls to the outside and reads of other custom resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::gate::GateCondition;
use crate::api::motif::SecretRef;
use crate::api::scalar::{Scalar, Text};

/// A call to the outside. Its answer is at `.external.<name>`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExternalCall {
    /// The key under `.external`.
    name: String,
    /// Where the call goes.
    url: Text,
    /// The HTTP method. Default `GET`.
    method: Option<Method>,
    /// The only status that counts as success. Default: all but 4xx and 5xx.
    expected_status: Option<Scalar>,
    /// `true` goes on when the call fails, with the reason in `.error`. Default `false`.
    continue_on_error: Option<bool>,
    /// How long the call may take. Default `5s`.
    timeout: Option<Span>,
    /// What is sent; JSON unless `headers` say otherwise.
    body: Option<Text>,
    /// Headers.
    headers: Option<BTreeMap<String, Text>>,
    /// A bearer token; `$VAR` is read from the environment.
    token: Option<Text>,
    /// Credentials from a Secret.
    auth: Option<CallAuth>,
    /// All must hold, or the call is left out.
    when: Option<Vec<GateCondition>>,
    /// One must hold, or the call is left out. Beside `when` both count.
    or: Option<Vec<GateCondition>>,
    /// Waits before the call, in tests of a Katalog.
    sleep: Option<Span>,
    /// How long an answer is used again. Default: not at all.
    cache_for: Option<Span>,
    /// Tries a failed call again.
    retry_backoff: Option<RetryBackoff>,
    /// When the call is made.
    fires: Option<Fires>,
    /// What is spoken. Default `http`.
    protocol: Option<Protocol>,
    /// What is asked, in the protocol's own language.
    query: Option<Text>,
}

/// An HTTP method.
#[derive(JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// What a call speaks.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Http,
    Prometheus,
    Redis,
    Postgres,
    Mongo,
    Kafka,
    Grpc,
    Nats,
    Mqtt,
}

/// Credentials of a call.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallAuth {
    /// The key of a Secret.
    secret_ref: Option<SecretRef>,
}

/// When a rule or a call of the admission acts.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fires {
    /// `false` is at admission only. Default `true`.
    reconcile: Option<bool>,
}

/// How something that failed is tried again within a pass.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum RetryBackoff {
    /// The first wait alone.
    Initial(Span),
    /// All of it.
    Full(Backoff),
}

/// Waits between tries, each longer than the one before.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backoff {
    /// The first wait. Default `500ms`.
    initial: Option<Span>,
    /// The longest wait. Default `30s`.
    max: Option<Span>,
    /// How many times as long each wait is. Default `2.0`.
    multiplier: Option<Scalar>,
    /// Tries in all. Default `3`.
    max_attempts: Option<Scalar>,
}

/// Further fields of an entry of `cross`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossLater {
    /// Where it is read, when not here.
    source: Option<CrossSource>,
}

/// Where another custom resource is read.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossSource {
    /// URL of another runtime.
    host: Option<Text>,
    /// What is read there. Default `cr`.
    protocol: Option<CrossProtocol>,
    /// URL of JSON to read, instead of `host`.
    endpoint: Option<Text>,
    /// How long an answer is used again. Default `30s`.
    cache_for: Option<Span>,
    /// The namespace there. Default: the custom resource's.
    namespace: Option<Text>,
    /// Credentials; one of the two.
    auth: Option<CrossAuth>,
}

/// What is read of another runtime.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CrossProtocol {
    /// The custom resource.
    Cr,
    /// How its operator is.
    Health,
    /// Figures of its operator.
    Metrics,
    /// What its operator is.
    Info,
    /// Its events.
    Events,
}

/// Credentials for another runtime.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossAuth {
    /// A bearer token; `$VAR` is read from the environment.
    token: Option<String>,
    /// The key of a Secret.
    secret_ref: Option<SecretRef>,
}
