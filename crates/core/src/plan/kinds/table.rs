//! The table of built-in kinds.
//!
//! Source: Kubernetes API reference, version 1.34, with kinds that are off by default; the schemas shipped have only those
//! that are on, and a test compares them.

/// A built-in kind: kind, plural, whether it is namespaced.
type BuiltInRow = (&'static str, &'static str, bool);

/// Built-in kinds by group: kind, plural, whether it is namespaced. Only kinds that can be listed, watched and patched.
pub(super) const KINDS: &[(&str, &[BuiltInRow])] = &[
    (
        "",
        &[
            ("ConfigMap", "configmaps", true),
            ("Endpoints", "endpoints", true),
            ("Event", "events", true),
            ("LimitRange", "limitranges", true),
            ("Namespace", "namespaces", false),
            ("Node", "nodes", false),
            ("PersistentVolume", "persistentvolumes", false),
            ("PersistentVolumeClaim", "persistentvolumeclaims", true),
            ("Pod", "pods", true),
            ("PodTemplate", "podtemplates", true),
            ("ReplicationController", "replicationcontrollers", true),
            ("ResourceQuota", "resourcequotas", true),
            ("Secret", "secrets", true),
            ("Service", "services", true),
            ("ServiceAccount", "serviceaccounts", true),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            (
                "MutatingAdmissionPolicy",
                "mutatingadmissionpolicies",
                false,
            ),
            (
                "MutatingAdmissionPolicyBinding",
                "mutatingadmissionpolicybindings",
                false,
            ),
            (
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
                false,
            ),
            (
                "ValidatingAdmissionPolicy",
                "validatingadmissionpolicies",
                false,
            ),
            (
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
                false,
            ),
            (
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
                false,
            ),
        ],
    ),
    (
        "apiextensions.k8s.io",
        &[(
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        )],
    ),
    (
        "apiregistration.k8s.io",
        &[("APIService", "apiservices", false)],
    ),
    (
        "apps",
        &[
            ("ControllerRevision", "controllerrevisions", true),
            ("DaemonSet", "daemonsets", true),
            ("Deployment", "deployments", true),
            ("ReplicaSet", "replicasets", true),
            ("StatefulSet", "statefulsets", true),
        ],
    ),
    (
        "autoscaling",
        &[("HorizontalPodAutoscaler", "horizontalpodautoscalers", true)],
    ),
    (
        "batch",
        &[("CronJob", "cronjobs", true), ("Job", "jobs", true)],
    ),
    (
        "certificates.k8s.io",
        &[
            (
                "CertificateSigningRequest",
                "certificatesigningrequests",
                false,
            ),
            ("ClusterTrustBundle", "clustertrustbundles", false),
        ],
    ),
    (
        "coordination.k8s.io",
        &[
            ("Lease", "leases", true),
            ("LeaseCandidate", "leasecandidates", true),
        ],
    ),
    (
        "discovery.k8s.io",
        &[("EndpointSlice", "endpointslices", true)],
    ),
    ("events.k8s.io", &[("Event", "events", true)]),
    (
        "flowcontrol.apiserver.k8s.io",
        &[
            ("FlowSchema", "flowschemas", false),
            (
                "PriorityLevelConfiguration",
                "prioritylevelconfigurations",
                false,
            ),
        ],
    ),
    (
        "networking.k8s.io",
        &[
            ("IPAddress", "ipaddresses", false),
            ("Ingress", "ingresses", true),
            ("IngressClass", "ingressclasses", false),
            ("NetworkPolicy", "networkpolicies", true),
            ("ServiceCIDR", "servicecidrs", false),
        ],
    ),
    ("node.k8s.io", &[("RuntimeClass", "runtimeclasses", false)]),
    (
        "policy",
        &[("PodDisruptionBudget", "poddisruptionbudgets", true)],
    ),
    (
        "rbac.authorization.k8s.io",
        &[
            ("ClusterRole", "clusterroles", false),
            ("ClusterRoleBinding", "clusterrolebindings", false),
            ("Role", "roles", true),
            ("RoleBinding", "rolebindings", true),
        ],
    ),
    (
        "resource.k8s.io",
        &[
            ("DeviceClass", "deviceclasses", false),
            ("ResourceClaim", "resourceclaims", true),
            ("ResourceClaimTemplate", "resourceclaimtemplates", true),
            ("ResourceSlice", "resourceslices", false),
        ],
    ),
    (
        "scheduling.k8s.io",
        &[("PriorityClass", "priorityclasses", false)],
    ),
    (
        "storage.k8s.io",
        &[
            ("CSIDriver", "csidrivers", false),
            ("CSINode", "csinodes", false),
            ("CSIStorageCapacity", "csistoragecapacities", true),
            ("StorageClass", "storageclasses", false),
            ("VolumeAttachment", "volumeattachments", false),
            ("VolumeAttributesClass", "volumeattributesclasses", false),
        ],
    ),
];
