//! The built-in kinds of Kubernetes, known without a cluster.

mod table;

use super::{GroupKind, NameRule, ResourceType};
use orkestra_language::{api::names::ANNOTATION_CONFIG_HASH, diagnostics::nearest};
use orkestra_object::value::{Key, Path};
use table::{BuiltInGroup, Facts, KINDS, KindRow, PLAIN};

/// Groups whose kinds are requests to the API server, not stored objects.
const QUESTIONS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Kinds of the built-in groups that can be created but neither listed nor watched.
const ACTIONS: [(&str, &str); 3] = [
    ("", "Binding"),
    ("policy", "Eviction"),
    ("autoscaling", "Scale"),
];

/// Returns plural and scope (whether namespaced) of a built-in kind, in any version.
pub fn built_in(kind: &GroupKind) -> Option<(&'static str, bool)> {
    let known = group(&kind.group)?.find(&kind.kind)?;
    Some((known.plural, known.namespaced))
}

fn group(name: &str) -> Option<&'static BuiltInGroup> {
    KINDS.iter().find(|group| group.name == name)
}

/// Returns the facts about any kind.
fn facts(kind: &GroupKind) -> &'static Facts {
    let Some(group) = group(&kind.group) else {
        return &PLAIN;
    };
    let known = group.find(&kind.kind);
    known.map_or(&group.facts, |known| &known.facts)
}

/// True if a group belongs to Kubernetes itself: the core group and those of the table.
pub fn is_built_in_group(group: &str) -> bool {
    self::group(group).is_some() || QUESTIONS.contains(&group)
}

/// True if an autoscaler may target objects of this kind. A custom kind may have the subresource `scale`.
pub fn may_be_scaled(kind: &GroupKind) -> bool {
    !is_built_in_group(&kind.group) || facts(kind).scalable
}

/// Suggests a built-in kind for one that does not exist: a kind with this name in another group, or one in the same group
/// with a similar name.
pub fn meant(kind: &GroupKind) -> Option<GroupKind> {
    let all = || {
        KINDS.iter().flat_map(|group| {
            group.kinds.iter().map(|known| GroupKind {
                group: Key::from(group.name),
                kind: Key::from(known.kind),
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

/// True if objects of this kind are not stored and cannot be kept.
pub fn is_transient(kind: &GroupKind) -> bool {
    QUESTIONS.contains(&&*kind.group) || ACTIONS.contains(&(&*kind.group, &*kind.kind))
}

/// Returns a built-in kind at a version.
pub fn resource(group: &str, version: &str, kind: &str) -> ResourceType {
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

/// Returns the built-in kind that `word` names: the kind in any case, its plural or its short name.
pub fn named(word: &str) -> Option<ResourceType> {
    let word = word.trim();
    let is_it = |known: &KindRow| {
        let names = [known.kind, known.plural].into_iter();
        names
            .chain(known.facts.short.iter().copied())
            .any(|name| name.eq_ignore_ascii_case(word))
    };
    KINDS.iter().find_map(|group| {
        let mut named = group.kinds.iter().filter(|known| is_it(known));
        named.find_map(|known| Some(resource(group.name, known.facts.version?, known.kind)))
    })
}

/// Returns the rank of a kind in the order of creation: dependencies come first.
pub fn rank(kind: &GroupKind) -> u8 {
    facts(kind).rank
}

/// The order in which children are written: those of one wave concurrently, after all those of earlier waves.
///
/// Only kinds that Kubernetes itself needs in order have their own wave: within [`WriteWave::Base`] it accepts an object that
/// names another one before that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteWave {
    /// Namespaces and definitions: others cannot be created without them.
    Ground,
    /// Objects that admission checks others against: accounts, the roles of bindings, limits, classes.
    Rules,
    /// Objects that pods use: configuration, volumes, Services, policies; and bindings.
    Base,
    /// Workloads, and everything else.
    Rest,
    /// Deletions.
    Last,
}

impl WriteWave {
    /// Returns the wave in which a child of that kind is created or changed.
    pub fn of(kind: &GroupKind) -> Self {
        match (rank(kind), &*kind.kind) {
            (0, _) => Self::Ground,
            (1, _) | (2, "Role" | "ClusterRole") => Self::Rules,
            // A NetworkPolicy is not checked at admission; it must exist before the pods.
            (5, kind) if kind != "NetworkPolicy" => Self::Rules,
            (2..=8, _) => Self::Base,
            _ => Self::Rest,
        }
    }
}

/// Returns the rule for names of a kind.
pub fn name_rule(kind: &GroupKind) -> NameRule {
    facts(kind).names
}

/// Guesses the English plural of a kind, which most CRDs use.
pub fn guess_plural(kind: &str) -> String {
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

/// Converts a kind to its name in templates: `ConfigMap` is `configMap`, `HTTPRoute` is `httpRoute`, `PVC` is `pvc`.
pub fn lower_camel(kind: &str) -> String {
    let capitals = kind.chars().take_while(char::is_ascii_uppercase).count();
    // The last of several capitals starts the next word.
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

/// Converts a plural to its name in templates: `configMap` and `configmaps` give `configMaps`, `networkPolicy` gives
/// `networkPolicies`.
pub fn camel_plural(singular: &str, plural: &str) -> String {
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

/// Returns the path to the pod template of a workload kind.
pub fn pod_template(kind: &str) -> &'static [&'static str] {
    if kind == "CronJob" {
        &["spec", "jobTemplate", "spec", "template"]
    } else {
        &["spec", "template"]
    }
}

/// The path, below a pod template, to the annotation with the hash of the configuration that the pods use.
pub(crate) const CONFIG_HASH: [&str; 3] = ["metadata", "annotations", ANNOTATION_CONFIG_HASH];

/// Returns the path to the hash of the configuration in a workload kind.
pub fn config_hash(kind: &str) -> Path {
    Path::of_fields(pod_template(kind).iter().copied().chain(CONFIG_HASH))
}

#[cfg(test)]
mod tests {
    use orkestra_language::enrich::ADDITIONS;

    use super::*;

    #[test]
    fn kinds_of_additions_are_built_in() {
        for addition in ADDITIONS {
            for (group, kind) in addition.on {
                let kind = GroupKind {
                    group: (*group).into(),
                    kind: (*kind).into(),
                };
                assert!(built_in(&kind).is_some(), "{kind}");
            }
            if let Some(relation) = addition.source.relation() {
                let kind = relation.objects().kind;
                assert!(built_in(&kind).is_some(), "{kind}");
            }
        }
    }

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
        let wave = |kind: &str| WriteWave::of(&GroupKind::parse(kind));
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
        assert!(wave("Pond.water.example") < WriteWave::Last);
    }

    #[test]
    fn plurals_follow_english() {
        for (kind, plural) in [
            ("Website", "websites"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Box", "boxes"),
            ("Branch", "branches"),
        ] {
            assert_eq!(guess_plural(kind), plural);
        }
        for known in KINDS.iter().flat_map(|group| group.kinds) {
            let KindRow { kind, plural, .. } = *known;
            assert!(
                kind == "Endpoints" || guess_plural(kind) == plural,
                "{kind}"
            );
        }
    }

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
    fn every_name_means_one_kind() {
        let mut names: Vec<&str> = Vec::new();
        for known in KINDS.iter().flat_map(|group| group.kinds) {
            assert!(known.facts.version.is_some() || known.facts.short.is_empty());
            if known.facts.version.is_some() {
                names.extend(known.facts.short.iter().copied());
                names.extend([known.kind, known.plural]);
            }
        }
        let all = names.len();
        assert!(all > 70, "{all}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
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
