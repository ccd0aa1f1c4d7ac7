//! Calls to the outside and reads of other custom resources.

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::motif::SecretRef;
use crate::api::scalar::Text;

/// Further fields of a call.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallLater {
    /// The delay before the call.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "a delay guarantees nothing: wait for a condition with `when`, or retry with `retryBackoff`"))]
    sleep: Option<Span>,
    /// The query, in the protocol's own language.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "calls use HTTP: put the query into `url` or `body`"))]
    query: Option<Text>,
}

/// Further fields of an entry of `cross`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossLater {
    /// The location of the resource, if it is not in this cluster.
    source: Option<CrossSource>,
}

/// The location of another custom resource.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossSource {
    /// URL of another runtime.
    host: Option<Text>,
    /// The data to read. Default `cr`.
    protocol: Option<CrossProtocol>,
    /// URL of JSON to read, instead of `host`.
    endpoint: Option<Text>,
    /// The duration for which a response is cached. Default `30s`.
    cache_for: Option<Span>,
    /// Namespace of the resource. Default: the custom resource's.
    namespace: Option<Text>,
    /// Credentials. One of the two fields must be set.
    auth: Option<CrossAuth>,
}

/// The data to read from another runtime.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CrossProtocol {
    /// The custom resource.
    Cr,
    /// The health of its operator.
    Health,
    /// The metrics of its operator.
    Metrics,
    /// Information about its operator.
    Info,
    /// Its Events.
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
