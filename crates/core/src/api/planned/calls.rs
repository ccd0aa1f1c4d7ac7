//! Calls to the outside and reads of other custom resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::motif::SecretRef;
use crate::api::scalar::Text;

/// When a rule or a call of the admission acts.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fires {
    /// `false` is at admission only. Default `true`.
    reconcile: Option<bool>,
}

/// Further fields of a call.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallLater {
    /// Waits before the call, in tests of a Katalog.
    sleep: Option<Span>,
    /// When the call is made.
    fires: Option<Fires>,
    /// What is asked, in the protocol's own language.
    query: Option<Text>,
}

/// A read of another custom resource. It is at `.cross.<as>`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cross {
    /// The operator whose resource it is: its name in `spec.crds`.
    crd: Option<String>,
    /// Chooses the operator by labels, instead of `crd`.
    label_selector: Option<BTreeMap<String, String>>,
    /// Which resource it is.
    selector: Option<CrossSelector>,
    /// The key under `.cross`. Default: `crd`.
    #[serde(rename = "as")]
    as_: Option<String>,
    /// Where it is read, when not here.
    source: Option<CrossSource>,
}

/// Which resource is read.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrossSelector {
    /// Its name.
    name: Option<Text>,
    /// Its namespace. Default: the custom resource's.
    namespace: Option<Text>,
    /// Its labels; the first that has them. Then the name has no effect.
    match_labels: Option<BTreeMap<String, Text>>,
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
