//! Built-in kinds by the names that users type: the kind in any case, its plural, and kubectl's short names.

use super::resource;
use crate::plan::ResourceType;

/// A kind that an entry of a Katalog may name without its group: short names, group, version, kind.
type ShortNameRow = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
);

/// The kinds, with their stable version.
///
/// Source: language reference, earliest shapes; short names of `kubectl api-resources`, Kubernetes 1.34.
const NAMED: &[ShortNameRow] = &[
    (&["po"], "", "v1", "Pod"),
    (&["svc"], "", "v1", "Service"),
    (&["cm"], "", "v1", "ConfigMap"),
    (&[], "", "v1", "Secret"),
    (&["sa"], "", "v1", "ServiceAccount"),
    (&["pvc"], "", "v1", "PersistentVolumeClaim"),
    (&["ev"], "", "v1", "Event"),
    (&["quota"], "", "v1", "ResourceQuota"),
    (&["limits"], "", "v1", "LimitRange"),
    (&[], "", "v1", "PodTemplate"),
    (&["deploy"], "apps", "v1", "Deployment"),
    (&["sts"], "apps", "v1", "StatefulSet"),
    (&["ds"], "apps", "v1", "DaemonSet"),
    (&["rs"], "apps", "v1", "ReplicaSet"),
    (&[], "batch", "v1", "Job"),
    (&["cj"], "batch", "v1", "CronJob"),
    (&["ing"], "networking.k8s.io", "v1", "Ingress"),
    (&["netpol"], "networking.k8s.io", "v1", "NetworkPolicy"),
    (&["hpa"], "autoscaling", "v2", "HorizontalPodAutoscaler"),
    (&["pdb"], "policy", "v1", "PodDisruptionBudget"),
    (&[], "rbac.authorization.k8s.io", "v1", "Role"),
    (&[], "rbac.authorization.k8s.io", "v1", "RoleBinding"),
    (&[], "discovery.k8s.io", "v1", "EndpointSlice"),
    (&[], "coordination.k8s.io", "v1", "Lease"),
    (&["ns"], "", "v1", "Namespace"),
    (&["pv"], "", "v1", "PersistentVolume"),
    (&["no"], "", "v1", "Node"),
    (&[], "rbac.authorization.k8s.io", "v1", "ClusterRole"),
    (&[], "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    (&[], "networking.k8s.io", "v1", "IngressClass"),
    (&["sc"], "storage.k8s.io", "v1", "StorageClass"),
    (&[], "storage.k8s.io", "v1", "VolumeAttachment"),
    (&["pc"], "scheduling.k8s.io", "v1", "PriorityClass"),
    (
        &["crd", "crds"],
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ),
    (&[], "apiregistration.k8s.io", "v1", "APIService"),
    (
        &[],
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
    ),
    (
        &[],
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    ),
];

/// Returns the built-in kind that `word` names: the kind in any case, its plural or its short name.
pub fn named(word: &str) -> Option<ResourceType> {
    let word = word.trim();
    NAMED.iter().find_map(|(short, group, version, kind)| {
        let found = resource(group, version, kind);
        let is_plural = |plural: &str| plural.eq_ignore_ascii_case(word);
        let is_it = kind.eq_ignore_ascii_case(word)
            || short.iter().any(|short| short.eq_ignore_ascii_case(word))
            || found.plural.as_deref().is_some_and(is_plural);
        is_it.then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_any_name_that_kubectl_takes() {
        for (word, kind) in [
            ("hpa", "HorizontalPodAutoscaler.autoscaling"),
            ("PVC", "PersistentVolumeClaim"),
            ("configmap", "ConfigMap"),
            ("ConfigMaps", "ConfigMap"),
            ("ingress", "Ingress.networking.k8s.io"),
            ("apiservice", "APIService.apiregistration.k8s.io"),
        ] {
            let found = named(word).map(|found| found.group_kind().to_string());
            assert_eq!(found.as_deref(), Some(kind), "{word}");
        }
        assert_eq!(named("Website"), None);
    }

    #[test]
    fn every_kind_is_in_the_table_of_kinds_and_every_name_means_one() {
        let mut names: Vec<&str> = Vec::new();
        for (short, group, version, kind) in NAMED {
            assert!(resource(group, version, kind).plural.is_some(), "{kind}");
            names.extend(short.iter().chain([kind]));
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
