//! Kinds whose Pods, and Events, say why an object is not ready.

use super::GroupKind;

/// True if Pods behind objects of this kind say why they are not ready.
pub fn has_pods(kind: &GroupKind) -> bool {
    match &*kind.group {
        "apps" => ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"].contains(&&*kind.kind),
        "batch" => &*kind.kind == "Job",
        _ => false,
    }
}

/// True if Events about objects of this kind say why they are not ready.
pub fn has_events(kind: &GroupKind) -> bool {
    let is_of_core = kind.group.is_empty();
    has_pods(kind) || (is_of_core && ["Pod", "PersistentVolumeClaim"].contains(&&*kind.kind))
}
