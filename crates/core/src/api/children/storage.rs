//! Volumes and storage classes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use crate::api::scalar::{Scalar, Text};

/// A `PersistentVolumeClaim`. Its name is needed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaim {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// How much is asked for, as a quantity. Of all fields it alone can be changed later, upwards.
    pub storage: Text,
    /// The storage class. Default: the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<Text>,
    /// How it may be mounted. Default `[ReadWriteOnce]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<Text>,
    /// `Filesystem` or `Block`. Default `Filesystem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<Text>,
    /// The volume to bind to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<Text>,
}

/// A `PersistentVolume`. Its name is needed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolume {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// How much it holds, as a quantity.
    pub capacity: Text,
    /// The storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<Text>,
    /// How it may be mounted. Default `[ReadWriteOnce]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<Text>,
    /// What happens to it once it is released: `Retain`, `Delete` or `Recycle`. Default `Retain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<Text>,
    /// A folder of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<Text>,
    /// The driver, for a volume of a storage system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi_driver: Option<Text>,
    /// What the driver calls the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi_volume_handle: Option<Text>,
}

/// A `StorageClass`. Its name is needed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// Who makes the volumes.
    pub provisioner: Text,
    /// Parameters of the provisioner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Text>,
    /// What happens to volumes once they are released: `Delete` or `Retain`. Default `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<Text>,
    /// When volumes are made: `Immediate` or `WaitForFirstConsumer`. Default `Immediate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_binding_mode: Option<Text>,
    /// Whether volumes may grow. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_volume_expansion: Option<Scalar>,
    /// Options of the mount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<Text>,
}
