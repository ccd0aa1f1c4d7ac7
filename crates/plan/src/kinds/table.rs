//! The table of built-in kinds: the only place with facts about a kind.
//!
//! Source: Kubernetes API reference, version 1.34, including kinds that are disabled by default. The bundled schemas contain only
//! the enabled kinds; a test compares them.

use crate::NameRule;

/// A group of Kubernetes.
pub(crate) struct BuiltInGroup {
    pub(crate) name: &'static str,
    /// The facts about kinds of the group that the table does not have.
    pub(crate) facts: Facts,
    pub(crate) kinds: &'static [KindRow],
}

impl BuiltInGroup {
    pub(crate) fn find(&self, kind: &str) -> Option<&KindRow> {
        self.kinds.iter().find(|known| known.kind == kind)
    }
}

/// A built-in kind.
pub(crate) struct KindRow {
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) facts: Facts,
}

/// The facts about a kind that have a default.
pub(crate) struct Facts {
    /// The stable version, for kinds that an entry of a Katalog may name without their group and kinds that have a list in
    /// a block.
    ///
    /// Source: language reference, earliest shapes.
    pub(crate) version: Option<&'static str>,
    /// Short names. Source: `kubectl api-resources`, Kubernetes 1.34.
    pub(crate) short: &'static [&'static str],
    /// The rank in the order of creation: 0 for namespaces and definitions, 1 accounts, 2 permissions, 3 Secrets, 4
    /// `ConfigMaps`, 5 what affects how pods and volumes are created, 6 and 7 volumes, 8 Services, 9 workloads, 10 networks,
    /// 11 autoscalers, 12 disruption budgets, 13 others.
    ///
    /// Source: language reference, lifecycle blocks.
    pub(crate) rank: u8,
    /// The rule for names. Source: Kubernetes, `ValidateName` of each kind's registry strategy; kinds of CRDs take
    /// subdomains.
    pub(crate) names: NameRule,
    /// True if it has the subresource `scale`.
    pub(crate) scalable: bool,
}

/// A kind without facts of its own, such as one of a CRD.
pub(crate) const PLAIN: Facts = ranked(13);

const fn ranked(rank: u8) -> Facts {
    Facts {
        version: None,
        short: &[],
        rank,
        names: NameRule::Subdomain,
        scalable: false,
    }
}

const NAMESPACED: bool = true;
const CLUSTER: bool = false;

/// Defines the groups, each with the facts that its kinds have by default, and in it each kind: kind, plural, scope, and the
/// facts that differ.
macro_rules! kinds {
    ($($group:literal => $default:expr, [$($kind:literal, $plural:literal, $scope:ident $(, $fact:ident: $value:expr)*;)*])*) => {
        &[$(BuiltInGroup {
            name: $group,
            facts: $default,
            kinds: &[$(KindRow {
                kind: $kind,
                plural: $plural,
                namespaced: $scope,
                facts: Facts { $($fact: $value,)* ..$default },
            }),*],
        }),*]
    };
}

/// Built-in kinds by group. Only kinds that can be listed, watched and patched.
pub(crate) const KINDS: &[BuiltInGroup] = kinds! {
    "" => PLAIN, [
        "ConfigMap", "configmaps", NAMESPACED, version: Some("v1"), short: &["cm"], rank: 4;
        "Endpoints", "endpoints", NAMESPACED;
        "Event", "events", NAMESPACED, version: Some("v1"), short: &["ev"];
        "LimitRange", "limitranges", NAMESPACED, version: Some("v1"), short: &["limits"], rank: 5;
        "Namespace", "namespaces", CLUSTER, version: Some("v1"), short: &["ns"], rank: 0, names: NameRule::Label1123;
        "Node", "nodes", CLUSTER, version: Some("v1"), short: &["no"];
        "PersistentVolume", "persistentvolumes", CLUSTER, version: Some("v1"), short: &["pv"], rank: 6;
        "PersistentVolumeClaim", "persistentvolumeclaims", NAMESPACED, version: Some("v1"), short: &["pvc"], rank: 7;
        "Pod", "pods", NAMESPACED, version: Some("v1"), short: &["po"], rank: 9;
        "PodTemplate", "podtemplates", NAMESPACED, version: Some("v1");
        "ReplicationController", "replicationcontrollers", NAMESPACED, scalable: true;
        "ResourceQuota", "resourcequotas", NAMESPACED, version: Some("v1"), short: &["quota"], rank: 5;
        "Secret", "secrets", NAMESPACED, version: Some("v1"), rank: 3;
        "Service", "services", NAMESPACED, version: Some("v1"), short: &["svc"], rank: 8, names: NameRule::Label1035;
        "ServiceAccount", "serviceaccounts", NAMESPACED, version: Some("v1"), short: &["sa"], rank: 1;
    ]
    "admissionregistration.k8s.io" => PLAIN, [
        "MutatingAdmissionPolicy", "mutatingadmissionpolicies", CLUSTER;
        "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", CLUSTER;
        "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", CLUSTER, version: Some("v1");
        "ValidatingAdmissionPolicy", "validatingadmissionpolicies", CLUSTER;
        "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", CLUSTER;
        "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", CLUSTER, version: Some("v1");
    ]
    "apiextensions.k8s.io" => ranked(0), [
        "CustomResourceDefinition", "customresourcedefinitions", CLUSTER, version: Some("v1"), short: &["crd", "crds"];
    ]
    "apiregistration.k8s.io" => PLAIN, [
        "APIService", "apiservices", CLUSTER, version: Some("v1");
    ]
    "apps" => ranked(9), [
        "ControllerRevision", "controllerrevisions", NAMESPACED;
        "DaemonSet", "daemonsets", NAMESPACED, version: Some("v1"), short: &["ds"];
        "Deployment", "deployments", NAMESPACED, version: Some("v1"), short: &["deploy"], scalable: true;
        "ReplicaSet", "replicasets", NAMESPACED, version: Some("v1"), short: &["rs"], scalable: true;
        "StatefulSet", "statefulsets", NAMESPACED, version: Some("v1"), short: &["sts"], scalable: true;
    ]
    "autoscaling" => ranked(11), [
        "HorizontalPodAutoscaler", "horizontalpodautoscalers", NAMESPACED, version: Some("v2"), short: &["hpa"];
    ]
    "batch" => ranked(9), [
        "CronJob", "cronjobs", NAMESPACED, version: Some("v1"), short: &["cj"], names: NameRule::CronJob;
        "Job", "jobs", NAMESPACED, version: Some("v1"), names: NameRule::Job;
    ]
    "certificates.k8s.io" => PLAIN, [
        "CertificateSigningRequest", "certificatesigningrequests", CLUSTER;
        "ClusterTrustBundle", "clustertrustbundles", CLUSTER;
    ]
    "coordination.k8s.io" => PLAIN, [
        "Lease", "leases", NAMESPACED, version: Some("v1");
        "LeaseCandidate", "leasecandidates", NAMESPACED;
    ]
    "discovery.k8s.io" => PLAIN, [
        "EndpointSlice", "endpointslices", NAMESPACED, version: Some("v1");
    ]
    "events.k8s.io" => PLAIN, [
        "Event", "events", NAMESPACED;
    ]
    "flowcontrol.apiserver.k8s.io" => PLAIN, [
        "FlowSchema", "flowschemas", CLUSTER;
        "PriorityLevelConfiguration", "prioritylevelconfigurations", CLUSTER;
    ]
    "networking.k8s.io" => ranked(10), [
        "IPAddress", "ipaddresses", CLUSTER;
        "Ingress", "ingresses", NAMESPACED, version: Some("v1"), short: &["ing"];
        "IngressClass", "ingressclasses", CLUSTER, version: Some("v1");
        "NetworkPolicy", "networkpolicies", NAMESPACED, version: Some("v1"), short: &["netpol"], rank: 5;
        "ServiceCIDR", "servicecidrs", CLUSTER;
    ]
    "node.k8s.io" => PLAIN, [
        "RuntimeClass", "runtimeclasses", CLUSTER;
    ]
    "policy" => ranked(12), [
        "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED, version: Some("v1"), short: &["pdb"];
    ]
    "rbac.authorization.k8s.io" => Facts { names: NameRule::PathSegment, ..ranked(2) }, [
        "ClusterRole", "clusterroles", CLUSTER, version: Some("v1");
        "ClusterRoleBinding", "clusterrolebindings", CLUSTER, version: Some("v1");
        "Role", "roles", NAMESPACED, version: Some("v1");
        "RoleBinding", "rolebindings", NAMESPACED, version: Some("v1");
    ]
    "resource.k8s.io" => PLAIN, [
        "DeviceClass", "deviceclasses", CLUSTER;
        "ResourceClaim", "resourceclaims", NAMESPACED;
        "ResourceClaimTemplate", "resourceclaimtemplates", NAMESPACED;
        "ResourceSlice", "resourceslices", CLUSTER;
    ]
    "scheduling.k8s.io" => ranked(5), [
        "PriorityClass", "priorityclasses", CLUSTER, version: Some("v1"), short: &["pc"];
    ]
    "storage.k8s.io" => ranked(5), [
        "CSIDriver", "csidrivers", CLUSTER;
        "CSINode", "csinodes", CLUSTER;
        "CSIStorageCapacity", "csistoragecapacities", NAMESPACED;
        "StorageClass", "storageclasses", CLUSTER, version: Some("v1"), short: &["sc"];
        "VolumeAttachment", "volumeattachments", CLUSTER, version: Some("v1");
        "VolumeAttributesClass", "volumeattributesclasses", CLUSTER;
    ]
};
