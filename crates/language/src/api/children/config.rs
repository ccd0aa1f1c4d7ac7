//! `configMaps` and `secrets`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use crate::api::duration::Span;
use crate::api::later::Refused;
use crate::api::or_template::OrTemplate;
use crate::api::scalar::Text;

/// A `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["fromSecret"], "every reader of `ConfigMaps` could read the Secret: copy it to a Secret"))]
pub struct ConfigMap {
    /// Name, metadata and handling. Default name: `<cr>-config`.
    #[serde(flatten)]
    pub common: Common,
    /// The data, by key.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub data: OrTemplate<BTreeMap<String, Text>>,
    /// Name of a `ConfigMap` to copy. Keys in `data` take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_config_map: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// A Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Name, metadata and handling. Default name: `<cr>-secret`.
    #[serde(flatten)]
    pub common: Common,
    /// Type of the Secret. Default `Opaque`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The data, by key, in plain text. Values are base64-encoded when the Secret is written.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub data: OrTemplate<BTreeMap<String, Text>>,
    /// If `true`, creates the Secret with new random values if it does not exist, and leaves an existing Secret unchanged.
    /// Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
    /// The maximum age of a Secret that is created once; after that its values are replaced in place. Must be at least `1s`.
    /// Implies `once`. For a certificate, the age at which it is renewed. Default: never, a certificate after two thirds of its
    /// life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_after: Option<Span>,
    /// A certificate signed by its own certificate authority, instead of `data`: `tls.crt`, `tls.key` and `ca.crt`. It is
    /// reissued before it expires, and when its names or its validity period change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<SecretTls>,
    /// Name of a Secret to copy, including its type. Keys in `data` take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_secret: Option<Text>,
    /// Name of a `ConfigMap` whose data is copied into the Secret. Keys in `data` take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_config_map: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// A certificate signed by its own certificate authority.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretTls {
    /// Common name of the certificate. Default: the first of `dnsNames`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_name: Option<Text>,
    /// A list of hosts that the certificate is valid for: names, wildcards such as `*.example.org`, and addresses. Default: the
    /// common name.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub dns_names: OrTemplate<Vec<Text>>,
    /// The validity period of the certificate. Must be at least `1s`. Default: `rotateAfter`, else a year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<Span>,
}

/// The source and the target namespaces of a copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Copies {
    /// Namespace of the object to copy. Default: the custom resource's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_namespace: Option<Text>,
    /// A list of objects that may be copied from other namespaces, as `namespace/name`; `*` matches any text. Required if the
    /// source depends on the custom resource: otherwise the author of a custom resource could copy any object that the operator
    /// can read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_sources: Vec<String>,
    /// A list of namespaces in which the object is created, instead of `namespace`. An item that renders to empty text is
    /// skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_namespaces: Vec<Text>,
}
