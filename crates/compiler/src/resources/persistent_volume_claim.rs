//! `persistentVolumeClaims`.

use super::{Child, Metadata, Shorthand, literals};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{children::PersistentVolumeClaim, or_template::OrTemplate, scalar::Text},
    diagnostics::Code,
};
use orkestra_plan::ObjectTree;

/// The default access mode of a volume.
pub(crate) const SINGLE_WRITER: &str = "ReadWriteOnce";

const VOLUME_MODES: [&str; 2] = ["Filesystem", "Block"];

impl Shorthand for PersistentVolumeClaim {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let PersistentVolumeClaim {
            common: _,
            storage,
            storage_class_name,
            access_modes,
            volume_mode,
            volume_name,
        } = self;
        let at = &child.at;
        let mut spec = request(at, "storage", storage);
        spec.put("accessModes", self::access_modes(at, access_modes));
        spec.put(
            "storageClassName",
            at.text_field("storageClassName", storage_class_name.as_ref()),
        );
        spec.put(
            "volumeMode",
            at.word_field("volumeMode", volume_mode.as_ref(), &VOLUME_MODES),
        );
        spec.put(
            "volumeName",
            at.text_field("volumeName", volume_name.as_ref()),
        );
        spec.into_root("spec")
    }
}

/// Returns the spec of a claim that requests the storage in the field `name`.
pub(crate) fn request(at: &At<'_>, name: &str, storage: &Text) -> Fields {
    let mut requests = Fields::default();
    let place = at.field(name);
    if storage.trim().is_empty() {
        place.error(Code::Empty, "the value is empty");
    }
    requests.put("storage", literals::amount(&place, "storage", storage));
    let resources = requests.into_root("requests");
    resources.into_root("resources")
}

/// Returns the access modes of a volume.
pub(crate) fn access_modes(at: &At<'_>, modes: &OrTemplate<Vec<Text>>) -> Option<ObjectTree> {
    if modes.is_absent() {
        return Some(ObjectTree::texts(&[SINGLE_WRITER]));
    }
    at.field("accessModes").words(modes)
}
