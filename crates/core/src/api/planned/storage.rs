//! Volumes and storage classes.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::children::Common;
use crate::api::scalar::{Scalar, Text};

/// A `PersistentVolumeClaim`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PersistentVolumeClaim {
    #[serde(flatten)]
    common: Common,
    /// How much is asked for, as a quantity.
    storage: Text,
    /// The storage class. Default: the cluster's.
    storage_class_name: Option<Text>,
    /// How it may be mounted. Default `[ReadWriteOnce]`.
    access_modes: Option<Vec<Text>>,
    /// `Filesystem` or `Block`. Default `Filesystem`.
    volume_mode: Option<Text>,
    /// The volume to bind to.
    volume_name: Option<Text>,
}

/// A `PersistentVolume`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PersistentVolume {
    #[serde(flatten)]
    common: Common,
    /// How much it holds, as a quantity.
    capacity: Text,
    /// The storage class.
    storage_class_name: Option<Text>,
    /// How it may be mounted. Default `[ReadWriteOnce]`.
    access_modes: Option<Vec<Text>>,
    /// What happens to it once it is released. Default `Retain`.
    reclaim_policy: Option<Text>,
    /// A folder of the node.
    host_path: Option<Text>,
    /// The driver, for a volume of a storage system.
    csi_driver: Option<Text>,
    /// What the driver calls the volume.
    csi_volume_handle: Option<Text>,
}

/// A `StorageClass`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StorageClass {
    #[serde(flatten)]
    common: Common,
    /// Who makes the volumes.
    provisioner: Text,
    /// Parameters of the provisioner.
    parameters: Option<BTreeMap<String, Text>>,
    /// What happens to volumes once they are released. Default `Delete`.
    reclaim_policy: Option<Text>,
    /// When volumes are made: `Immediate` or `WaitForFirstConsumer`. Default `Immediate`.
    volume_binding_mode: Option<Text>,
    /// Whether volumes may grow. Default `false`.
    allow_volume_expansion: Option<Scalar>,
    /// Options of the mount.
    mount_options: Option<Vec<Text>>,
}
