//! What is known of Kubernetes' own kinds without asking a cluster.

mod names;
mod table;

use super::{GroupKind, NameRule, ResourceType};
use crate::{
    api::names::ANNOTATION_CONFIG_HASH,
    diagnostics::nearest,
    value::{Key, Path},
};
pub use names::named;
use table::KINDS;

/// Groups whose kinds are questions to the API server, not objects that it stores.
const QUESTIONS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Kinds of the built-in groups that can be sent but neither listed nor watched.
const ACTIONS: [(&str, &str); 3] = [
    ("", "Binding"),
    ("policy", "Eviction"),
    ("autoscaling", "Scale"),
];

/// Plural and scope (whether namespaced) of a built-in kind, in whatever version.
pub fn built_in(kind: &GroupKind) -> Option<(&'static str, bool)> {
    let (_, kinds) = KINDS.iter().find(|(group, _)| *group == &*kind.group)?;
    kinds
        .iter()
        .find(|(name, ..)| *name == &*kind.kind)
        .map(|(_, plural, namespaced)| (*plural, *namespaced))
}

/// Whether a group belongs to Kubernetes itself: the core group and those of the table.
pub(crate) fn is_built_in_group(group: &str) -> bool {
    KINDS.iter().any(|(known, _)| *known == group) || QUESTIONS.contains(&group)
}

/// The built-in kind that is meant by one that does not exist: a kind of this name in another group, or one in the same
/// group with a similar name.
pub(crate) fn meant(kind: &GroupKind) -> Option<GroupKind> {
    let all = || {
        KINDS.iter().flat_map(|(group, kinds)| {
            kinds.iter().map(|(name, ..)| GroupKind {
                group: Key::from(*group),
                kind: Key::from(*name),
            })
        })
    };
    let same_name = all().find(|known| known.kind.eq_ignore_ascii_case(&kind.kind));
    same_name.or_else(|| {
        let names: Vec<GroupKind> = all().filter(|known| known.group == kind.group).collect();
        let near = nearest(&kind.kind, names.iter().map(|known| &*known.kind))?;
        names.iter().find(|known| &*known.kind == near).cloned()
    })
}

/// Whether objects of this kind cannot be kept: they are no stored objects.
pub(crate) fn is_transient(kind: &GroupKind) -> bool {
    QUESTIONS.contains(&&*kind.group) || ACTIONS.contains(&(&*kind.group, &*kind.kind))
}

/// A built-in kind at a version.
pub(crate) fn resource(group: &str, version: &str, kind: &str) -> ResourceType {
    let group_kind = GroupKind {
        group: Key::from(group),
        kind: Key::from(kind),
    };
    let known = built_in(&group_kind);
    ResourceType {
        group: group_kind.group,
        version: Key::from(version),
        kind: group_kind.kind,
        plural: known.map(|(plural, _)| Key::from(plural)),
        namespaced: known.map(|(_, namespaced)| namespaced),
    }
}

/// Where a kind stands in the order of creation: what others need comes first.
///
/// Source: language reference, lifecycle blocks.
pub(crate) fn rank(kind: &GroupKind) -> u8 {
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") | ("apiextensions.k8s.io", _) => 0,
        ("", "ServiceAccount") => 1,
        ("rbac.authorization.k8s.io", _) => 2,
        ("", "Secret") => 3,
        ("", "ConfigMap") => 4,
        // What says how pods and volumes are made is there before they are.
        ("storage.k8s.io" | "scheduling.k8s.io", _)
        | ("", "LimitRange" | "ResourceQuota")
        | ("networking.k8s.io", "NetworkPolicy") => 5,
        ("", "PersistentVolume") => 6,
        ("", "PersistentVolumeClaim") => 7,
        ("", "Service") => 8,
        ("apps" | "batch", _) | ("", "Pod") => 9,
        ("networking.k8s.io", _) => 10,
        ("autoscaling", _) => 11,
        ("policy", _) => 12,
        _ => 13,
    }
}

/// When children are written: those of one wave side by side, after all those of the waves before.
///
/// Only what Kubernetes itself needs in order is in waves of its own: within [`Wave::Base`] it takes an object that
/// names another one before that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wave {
    /// Namespaces and definitions: others cannot be made without them.
    Ground,
    /// What others are judged by when they are made: accounts, the roles of bindings, limits, classes.
    Rules,
    /// What pods use: configuration, volumes, Services, policies; and bindings.
    Base,
    /// What makes pods, and everything else.
    Rest,
    /// What goes.
    Last,
}

impl Wave {
    /// When a child of that kind is made or changed.
    pub fn of(kind: &GroupKind) -> Self {
        match (rank(kind), &*kind.kind) {
            (0, _) => Self::Ground,
            (1, _) | (2, "Role" | "ClusterRole") => Self::Rules,
            // A policy judges nobody: it is there before the pods.
            (5, kind) if kind != "NetworkPolicy" => Self::Rules,
            (2..=8, _) => Self::Base,
            _ => Self::Rest,
        }
    }
}

/// Which names a kind allows.
///
/// Source: Kubernetes, `ValidateName` of each kind's registry strategy; kinds of CRDs take subdomains.
pub(crate) fn name_rule(kind: &GroupKind) -> NameRule {
    match (&*kind.group, &*kind.kind) {
        ("", "Service") => NameRule::Label1035,
        ("", "Namespace") => NameRule::Label1123,
        ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

/// The plural that English suggests for a kind: what most CRDs have.
pub(crate) fn guess_plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    if ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| lower.ends_with(end))
    {
        return lower + "es";
    }
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => lower + "s",
    }
}

/// A kind as templates write it: `ConfigMap` is `configMap`, `HTTPRoute` is `httpRoute`, `PVC` is `pvc`.
pub(crate) fn lower_camel(kind: &str) -> String {
    let capitals = kind.chars().take_while(char::is_ascii_uppercase).count();
    // The last capital of several starts the next word.
    let lowered = if capitals > 1 && capitals < kind.len() {
        capitals - 1
    } else {
        capitals
    };
    kind.char_indices()
        .map(|(at, c)| {
            if at < lowered {
                c.to_ascii_lowercase()
            } else {
                c
            }
        })
        .collect()
}

/// A plural as templates write it: `configMap` and `configmaps` make `configMaps`, `networkPolicy` makes `networkPolicies`.
pub(crate) fn camel_plural(singular: &str, plural: &str) -> String {
    let same = singular
        .chars()
        .zip(plural.chars())
        .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
        .count();
    singular
        .chars()
        .take(same)
        .chain(plural.chars().skip(same))
        .collect()
}

/// The path to the pod template of a kind of workload.
pub(crate) fn pod_template(kind: &str) -> &'static [&'static str] {
    if kind == "CronJob" {
        &["spec", "jobTemplate", "spec", "template"]
    } else {
        &["spec", "template"]
    }
}

/// The path, below a pod template, to the annotation with the hash of the configuration that the pods use.
pub(crate) const CONFIG_HASH: [&str; 3] = ["metadata", "annotations", ANNOTATION_CONFIG_HASH];

/// The path to [`CONFIG_HASH`] in a kind of workload.
pub(crate) fn config_hash(kind: &str) -> Path {
    Path::of_fields(pod_template(kind).iter().copied().chain(CONFIG_HASH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_know_their_plural_and_scope() {
        assert_eq!(
            built_in(&GroupKind::parse("Deployment.apps")),
            Some(("deployments", true))
        );
        assert_eq!(
            built_in(&GroupKind::parse("Namespace")),
            Some(("namespaces", false))
        );
        assert_eq!(built_in(&GroupKind::parse("Deployment.example.org")), None);
    }

    #[test]
    fn a_wave_holds_what_kubernetes_takes_in_any_order() {
        let wave = |kind: &str| Wave::of(&GroupKind::parse(kind));
        let in_order = [
            ("Namespace", "ServiceAccount"),
            ("ServiceAccount", "Pod"),
            (
                "Role.rbac.authorization.k8s.io",
                "RoleBinding.rbac.authorization.k8s.io",
            ),
            ("RoleBinding.rbac.authorization.k8s.io", "Job.batch"),
            ("LimitRange", "PersistentVolumeClaim"),
            ("StorageClass.storage.k8s.io", "PersistentVolumeClaim"),
            ("PriorityClass.scheduling.k8s.io", "Deployment.apps"),
            ("PersistentVolumeClaim", "StatefulSet.apps"),
            ("Secret", "Deployment.apps"),
            ("Service", "Deployment.apps"),
        ];
        for (first, second) in in_order {
            assert!(wave(first) < wave(second), "{first}, {second}");
        }
        for other in [
            "ConfigMap",
            "Service",
            "PersistentVolumeClaim",
            "NetworkPolicy.networking.k8s.io",
        ] {
            assert_eq!(wave("Secret"), wave(other));
        }
        assert_eq!(wave("Deployment.apps"), wave("Pond.water.example"));
        assert!(wave("Pond.water.example") < Wave::Last);
    }

    #[test]
    fn plurals_follow_english() {
        for (kind, plural) in [
            ("Website", "websites"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Box", "boxes"),
        ] {
            assert_eq!(guess_plural(kind), plural);
        }
        for (_, kinds) in KINDS {
            for (kind, plural, _) in *kinds {
                assert!(
                    *kind == "Endpoints" || guess_plural(kind) == *plural,
                    "{kind}"
                );
            }
        }
    }

    #[test]
    fn kinds_are_spelled_in_lower_camel_case() {
        for (kind, spelled) in [
            ("ConfigMap", "configMap"),
            ("HTTPRoute", "httpRoute"),
            ("PVC", "pvc"),
            ("Job", "job"),
            ("APIService", "apiService"),
        ] {
            assert_eq!(lower_camel(kind), spelled);
        }
    }

    #[test]
    fn plurals_keep_the_capitals_of_their_kind() {
        assert_eq!(camel_plural("configMap", "configmaps"), "configMaps");
        assert_eq!(
            camel_plural("networkPolicy", "networkpolicies"),
            "networkPolicies"
        );
    }

    #[test]
    fn what_others_need_is_made_first() {
        let order = [
            "Namespace",
            "ServiceAccount",
            "Role.rbac.authorization.k8s.io",
            "Secret",
            "ConfigMap",
            "StorageClass.storage.k8s.io",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Service",
            "Deployment.apps",
            "Ingress.networking.k8s.io",
            "HorizontalPodAutoscaler.autoscaling",
            "PodDisruptionBudget.policy",
            "Website.example.org",
        ];
        let ranks: Vec<u8> = order
            .iter()
            .map(|kind| rank(&GroupKind::parse(kind)))
            .collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    }
}
