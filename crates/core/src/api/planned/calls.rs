//! Calls to the outside and reads of other custom resources.

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::motif::SecretRef;
use crate::api::scalar::Text;

/// Further fields of a call.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallLater {
    /// Waits before the call.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "a delay settles nothing: ask for what is awaited with `when`, or try again with `retryBackoff`"))]
    sleep: Option<Span>,
    /// What is asked, in the protocol's own language.
    #[schemars(extend("x-orkestra-support" = "refused", "x-orkestra-reason" = "calls speak HTTP: put what is asked into `url` or `body`"))]
    query: Option<Text>,
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
