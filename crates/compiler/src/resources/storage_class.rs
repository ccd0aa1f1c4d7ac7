//! `storageClasses`.

use super::{Child, Metadata, Shorthand};
use crate::scope::Fields;
use orkestra_language::api::children::StorageClass;
use orkestra_plan::Coerce;

const RECLAIM_POLICIES: [&str; 2] = ["Delete", "Retain"];
const BINDING_MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];

impl Shorthand for StorageClass {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let StorageClass {
            common: _,
            provisioner,
            parameters,
            reclaim_policy,
            volume_binding_mode,
            allow_volume_expansion,
            mount_options,
        } = self;
        let at = &child.at;
        let mut root = Fields::default();
        root.put("provisioner", at.required("provisioner", provisioner));
        root.put(
            "parameters",
            at.field("parameters")
                .map_of_texts(parameters, Coerce::Text),
        );
        root.put(
            "reclaimPolicy",
            at.word_field("reclaimPolicy", reclaim_policy.as_ref(), &RECLAIM_POLICIES),
        );
        root.put(
            "volumeBindingMode",
            at.word_field(
                "volumeBindingMode",
                volume_binding_mode.as_ref(),
                &BINDING_MODES,
            ),
        );
        root.put(
            "allowVolumeExpansion",
            at.scalar_field(
                "allowVolumeExpansion",
                allow_volume_expansion.as_ref(),
                Coerce::Bool,
            ),
        );
        root.put(
            "mountOptions",
            at.field("mountOptions").words(mount_options),
        );
        root
    }
}
