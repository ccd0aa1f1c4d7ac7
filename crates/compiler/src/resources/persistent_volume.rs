//! `persistentVolumes`.

use super::{Child, Metadata, Shorthand, persistent_volume_claim::access_modes};
use crate::scope::Fields;
use orkestra_language::{api::children::PersistentVolume, diagnostics::Code};

const RECLAIM_POLICIES: [&str; 3] = ["Retain", "Delete", "Recycle"];

impl Shorthand for PersistentVolume {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let PersistentVolume {
            common: _,
            capacity,
            storage_class_name,
            access_modes,
            reclaim_policy,
            host_path,
            csi_driver,
            csi_volume_handle,
        } = self;
        let at = &child.at;
        let mut storage = Fields::default();
        storage.put("storage", at.required("capacity", capacity));
        let mut spec = Fields::default();
        spec.put("capacity", storage.into_tree());
        spec.put("accessModes", self::access_modes(at, access_modes));
        spec.put(
            "storageClassName",
            at.text_field("storageClassName", storage_class_name.as_ref()),
        );
        match reclaim_policy {
            Some(word) => {
                let word = at.word_field("reclaimPolicy", Some(word), &RECLAIM_POLICIES);
                spec.put("persistentVolumeReclaimPolicy", word);
            }
            None => spec.put_text("persistentVolumeReclaimPolicy", "Retain"),
        }
        if host_path.is_some() == (csi_driver.is_some() || csi_volume_handle.is_some()) {
            at.error(
                Code::Exclusive,
                "either `hostPath` or `csiDriver` with `csiVolumeHandle` is needed",
            );
        } else if csi_driver.is_some() != csi_volume_handle.is_some() {
            at.error(
                Code::Missing,
                "`csiDriver` and `csiVolumeHandle` need each other",
            );
        }
        let mut folder = Fields::default();
        folder.put("path", at.text_field("hostPath", host_path.as_ref()));
        spec.put("hostPath", folder.into_optional());
        let mut csi = Fields::default();
        csi.put("driver", at.text_field("csiDriver", csi_driver.as_ref()));
        csi.put(
            "volumeHandle",
            at.text_field("csiVolumeHandle", csi_volume_handle.as_ref()),
        );
        spec.put("csi", csi.into_optional());
        spec.into_root("spec")
    }
}
