//! `PersistentVolumeClaim`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, TEXT, joined, text_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const PHASE: &str = "status.phase";
const MODES: &str = "spec.accessModes";
const VOLUME: &str = "_pv";

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "pvcBound",
        doc: "True if a volume claim is bound.",
        example: ("{{ pvcBound .children.pvc }}", "true"),
        reads: &[PHASE],
        run: NoteBody::Eager(|call| Ok((call.object()?.text(PHASE) == "Bound").into())),
        ..CHECK
    },
    BuiltInNote {
        name: "pvcPhase",
        doc: "The phase of a volume claim.",
        example: ("{{ pvcPhase .children.pvc }}", "Bound"),
        reads: &[PHASE],
        ..TEXT
    },
    BuiltInNote {
        name: "pvcCapacity",
        doc: "The storage that a volume claim requests.",
        example: ("{{ pvcCapacity .children.pvc }}", "10Gi"),
        reads: &["spec.resources.requests.storage"],
        ..TEXT
    },
    BuiltInNote {
        name: "pvcStorageClass",
        doc: "The storage class of a volume claim.",
        example: ("{{ pvcStorageClass .children.pvc }}", "fast"),
        reads: &["spec.storageClassName"],
        ..TEXT
    },
    BuiltInNote {
        name: "pvcAccessModes",
        doc: "The access modes of a volume claim.",
        example: ("{{ pvcAccessModes .children.pvc }}", "ReadWriteOnce"),
        reads: &[MODES],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let modes = object.list(MODES, call.budget)?.iter();
            joined(modes.filter_map(Node::as_str), call.budget)
        }),
        ..PLAIN
    },
    BuiltInNote {
        name: "pvcProvisioner",
        doc: "The provisioner of a claim's volume, if it is enriched with `pv`.",
        example: ("{{ pvcProvisioner .children.pvc }}", "disks.garden.example"),
        reads: &[VOLUME],
        result: NoteType::Text,
        run: NoteBody::Eager(provisioner),
        ..PLAIN
    },
    BuiltInNote {
        name: "pvcVolumeMode",
        doc: "The mode of a claim's volume: `Filesystem` or `Block`.",
        example: ("{{ pvcVolumeMode .children.pvc }}", "Block"),
        reads: &["_pv.volumeMode", "_pv.spec.volumeMode", "spec.volumeMode"],
        ..TEXT
    },
    BuiltInNote {
        name: "pvcStorageClassProvisioner",
        doc: "The provisioner of a claim's storage class, if it is enriched with `storageclass`.",
        example: (
            "{{ pvcStorageClassProvisioner .children.pvc }}",
            "disks.garden.example",
        ),
        reads: &["_storageClass.provisioner"],
        ..TEXT
    },
    BuiltInNote {
        name: "pvcStorageClassReclaimPolicy",
        doc: "The reclaim policy of a claim's storage class, if it is enriched with `storageclass`.",
        example: ("{{ pvcStorageClassReclaimPolicy .children.pvc }}", "Retain"),
        reads: &["_storageClass.reclaimPolicy"],
        ..TEXT
    },
];

/// The provisioner as enriched, or from a `PersistentVolume`: the annotation or the driver.
fn provisioner<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let volume = object.at(VOLUME);
    let annotations = volume.meta("annotations");
    let driver = volume.get("spec").and_then(|spec| spec.get("csi"));
    let reported = [
        text_of(volume, "provisioner"),
        annotations.map_or("", |a| text_of(a, "pv.kubernetes.io/provisioned-by")),
        driver.map_or("", |csi| text_of(csi, "driver")),
    ];
    joined(
        reported.into_iter().find(|text| !text.is_empty()),
        call.budget,
    )
}
