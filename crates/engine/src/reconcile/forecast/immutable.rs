//! Fields that the API server does not change in an existing object.
//!
//! Source: Kubernetes, validation of updates of each kind (`ValidateDeploymentUpdate` and its like).

use orkestra_object::value::Node;
use orkestra_plan::GroupKind;

use crate::reconcile::immutable::is_at;

/// Immutable fields by kind, each with the fields below it that may change nevertheless.
const FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "ClusterRoleBinding.rbac.authorization.k8s.io",
        "roleRef",
        &[],
    ),
    ("DaemonSet.apps", "spec.selector", &[]),
    ("Deployment.apps", "spec.selector", &[]),
    ("Job.batch", "spec.completionMode", &[]),
    ("Job.batch", "spec.selector", &[]),
    ("Job.batch", "spec.template", &[]),
    (
        "PersistentVolumeClaim",
        "spec",
        &["resources", "volumeAttributesClassName"],
    ),
    ("PriorityClass.scheduling.k8s.io", "value", &[]),
    ("ReplicaSet.apps", "spec.selector", &[]),
    ("RoleBinding.rbac.authorization.k8s.io", "roleRef", &[]),
    ("RuntimeClass.node.k8s.io", "handler", &[]),
    ("Secret", "type", &[]),
    (
        "StatefulSet.apps",
        "spec",
        &[
            "minReadySeconds",
            "ordinals",
            "persistentVolumeClaimRetentionPolicy",
            "replicas",
            "revisionHistoryLimit",
            "template",
            "updateStrategy",
        ],
    ),
    ("StorageClass.storage.k8s.io", "parameters", &[]),
    ("StorageClass.storage.k8s.io", "provisioner", &[]),
    ("StorageClass.storage.k8s.io", "reclaimPolicy", &[]),
    ("StorageClass.storage.k8s.io", "volumeBindingMode", &[]),
];

/// True if the API server refuses a change of the field at `path` of a live object of that kind.
pub(crate) fn is_fixed(kind: &GroupKind, path: &str, live: &Node) -> bool {
    let kind = kind.to_string();
    let is_data = ["data", "binaryData", "stringData"]
        .iter()
        .any(|field| is_at(path, field));
    if ["Secret", "ConfigMap"].contains(&&*kind) && is_data {
        return live.get("immutable").and_then(Node::as_bool) == Some(true);
    }
    let mut of_kind = FIELDS.iter().filter(|(of, ..)| *of == kind);
    of_kind.any(|(_, field, free)| {
        let below = path.strip_prefix(field).unwrap_or_default();
        let is_free = |name: &&str| is_at(below.trim_start_matches('.'), name);
        is_at(path, field) && !free.iter().any(is_free)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(kind: &str, path: &str) -> bool {
        is_fixed(&GroupKind::parse(kind), path, &Node::default())
    }

    #[test]
    fn fields_below_an_immutable_one_are_immutable_unless_they_may_change() {
        assert!(fixed("StatefulSet.apps", "spec.serviceName"));
        assert!(fixed("StatefulSet.apps", "spec.volumeClaimTemplates[0]"));
        assert!(!fixed(
            "StatefulSet.apps",
            "spec.template.spec.containers[name=a].image"
        ));
        assert!(!fixed("StatefulSet.apps", "spec.replicas"));
        assert!(fixed("Deployment.apps", "spec.selector.matchLabels.app"));
        assert!(!fixed("Deployment.apps", "spec.selectors"));
        assert!(!fixed(
            "PersistentVolumeClaim",
            "spec.resources.requests.storage"
        ));
        assert!(fixed("Secret", "type") && !fixed("Secret", "data.a"));
    }
}
