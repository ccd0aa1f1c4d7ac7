//! `configMaps` and `secrets`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use crate::api::duration::Span;
use crate::api::later::Refused;
use crate::api::scalar::Text;

/// A `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["fromSecret"], "every reader of `ConfigMaps` could read the Secret: copy it to a Secret"))]
pub struct ConfigMap {
    /// Name, metadata and handling. Default name: `<cr>-config`.
    #[serde(flatten)]
    pub common: Common,
    /// The texts by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Text>,
    /// A `ConfigMap` to copy, by name. What `data` has wins.
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
    /// The Secret's type. Default `Opaque`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The texts by key, plain; they are encoded on the way to the cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Text>,
    /// `true` makes the Secret when it is missing, with fresh random values, and leaves it alone while it is there. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
    /// How old a Secret that is made once may become before it gets fresh values, in place; at least `1s`. It stands for `once`
    /// too. Of a certificate: when it is renewed. Default: never, a certificate after two thirds of its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_after: Option<Span>,
    /// A certificate that an authority of its own signs, instead of `data`: `tls.crt`, `tls.key` and `ca.crt`. It is made anew
    /// before it expires, and when what it is for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<SecretTls>,
    /// A Secret to copy, by name, with its type. What `data` has wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_secret: Option<Text>,
    /// A `ConfigMap` to copy, by name, its texts as the Secret's values. What `data` has wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_config_map: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// A certificate that an authority of its own signs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretTls {
    /// The certificate's common name. Default: the first of `dnsNames`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_name: Option<Text>,
    /// The hosts that it is for; names, wildcards such as `*.example.org`, and addresses. Default: the common name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<Text>,
    /// How long it is valid, at least `1s`. Default: `rotateAfter`, else a year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<Span>,
}

/// Where an object is copied from and to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Copies {
    /// The namespace of the object that is copied. Default: the custom resource's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_namespace: Option<Text>,
    /// What may be copied from other namespaces, as `namespace/name` with `*` for any text. It is needed where the custom
    /// resource has a say in which object that is: else whoever writes one could copy whatever the operators can read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_sources: Vec<String>,
    /// Namespaces that get an object each, instead of `namespace`. Where one renders to nothing there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_namespaces: Vec<Text>,
}
