//! Volumes and storage classes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use crate::api::or_template::OrTemplate;
use crate::api::scalar::{Scalar, Text};

/// A `PersistentVolumeClaim`. The name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaim {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// The requested size, as a quantity. The only field that can be changed later; it can only grow.
    pub storage: Text,
    /// Name of the storage class. Default: the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<Text>,
    /// A list of access modes. Default `[ReadWriteOnce]`.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub access_modes: OrTemplate<Vec<Text>>,
    /// The volume mode: `Filesystem` or `Block`. Default `Filesystem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<Text>,
    /// Name of the `PersistentVolume` to bind to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<Text>,
}

/// A `PersistentVolume`. The name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolume {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// The capacity of the volume, as a quantity.
    pub capacity: Text,
    /// Name of the storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<Text>,
    /// A list of access modes. Default `[ReadWriteOnce]`.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub access_modes: OrTemplate<Vec<Text>>,
    /// The reclaim policy for the volume after it is released: `Retain`, `Delete` or `Recycle`. Default `Retain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<Text>,
    /// Path of a directory on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<Text>,
    /// Name of the CSI driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi_driver: Option<Text>,
    /// The volume handle by which the CSI driver identifies the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi_volume_handle: Option<Text>,
}

/// A `StorageClass`. The name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// Name of the provisioner.
    pub provisioner: Text,
    /// Parameters of the provisioner.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub parameters: OrTemplate<BTreeMap<String, Text>>,
    /// The reclaim policy for volumes after they are released: `Delete` or `Retain`. Default `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<Text>,
    /// Specifies when volumes are provisioned and bound: `Immediate` or `WaitForFirstConsumer`. Default `Immediate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_binding_mode: Option<Text>,
    /// If `true`, volumes can be expanded. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_volume_expansion: Option<Scalar>,
    /// Options of the mount.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub mount_options: OrTemplate<Vec<Text>>,
}
