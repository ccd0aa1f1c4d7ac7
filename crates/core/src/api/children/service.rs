//! `services`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use crate::api::later::Later;
use crate::api::planned::ServiceLater;
use crate::api::scalar::{Scalar, Text};

/// A Service with one port.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Name, metadata and handling. Default name: `<cr>-svc`.
    #[serde(flatten)]
    pub common: Common,
    /// `ClusterIP`, `NodePort` or `LoadBalancer`. Default `ClusterIP`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The port of the Service. Default: the selected workload's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// The port of the pods. Default: the Service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<Scalar>,
    /// `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// `true` gives the Service no address of its own. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// Labels of the pods. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, Text>>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<ServiceLater>,
}
