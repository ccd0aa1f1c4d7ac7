//! The children of a block: one table of their lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::custom::Custom;
use crate::api::calls::ExternalCall;
use crate::api::gate::GateCondition;
use crate::api::later::Refused;

/// Calls a macro with the lists of a block: the description of the field, which begins with the plural of the kind; the
/// field, the type of an entry, which has the name of the kind, and the name of the list; the default name of an entry; the
/// description of an entry. The sample of a list is `docs/reference/samples/kinds/LIST.yaml`.
#[macro_export]
macro_rules! child_lists {
    ($use:ident) => {
        $use! {
            /// Deployments (apps/v1).
            deployments: Deployment, "deployments", Some("{{ .metadata.name }}-deployment"), "A Deployment. To write out a whole object, use `custom`.";
            /// `StatefulSets` (apps/v1).
            stateful_sets: StatefulSet, "statefulSets", Some("{{ .metadata.name }}"), "Pods with stable names and volumes of their own. Kubernetes refuses changes of `serviceName` and of `volumeClaimTemplates`; a condition then names the field.";
            /// `DaemonSets` (apps/v1).
            daemon_sets: DaemonSet, "daemonSets", Some("{{ .metadata.name }}-daemonset"), "A Pod on every node.";
            /// `ReplicaSets` (apps/v1).
            replica_sets: ReplicaSet, "replicaSets", Some("{{ .metadata.name }}-replicaset"), "Pods without a rollout.";
            /// Pods (v1).
            pods: Pod, "pods", Some("{{ .metadata.name }}-pod"), "A single Pod. A change that Kubernetes does not permit in place replaces the Pod.";
            /// Jobs (batch/v1). They are created once, regardless of `reconcile`.
            jobs: Job, "jobs", Some("{{ .metadata.name }}-job"), "Pods that run to completion. Each Job is created once.";
            /// `CronJobs` (batch/v1).
            cron_jobs: CronJob, "cronJobs", Some("{{ .metadata.name }}-cronjob"), "Jobs on a schedule.";
            /// Services (v1).
            services: Service, "services", Some("{{ .metadata.name }}-svc"), "A Service for the Pods of a workload of the same operatorBox.";
            /// Ingresses (networking.k8s.io/v1).
            ingresses: Ingress, "ingresses", Some("{{ .metadata.name }}-ingress"), "One host and one path that route to a Service.";
            /// `NetworkPolicies` (networking.k8s.io/v1).
            network_policies: NetworkPolicy, "networkPolicies", None, "The permitted connections of Pods.";
            /// `ConfigMaps` (v1).
            config_maps: ConfigMap, "configMaps", Some("{{ .metadata.name }}-config"), "Values may be templates; values that are not text are converted to text.";
            /// Secrets (v1).
            secrets: Secret, "secrets", Some("{{ .metadata.name }}-secret"), "Values are written as plain text and encoded when the Secret is written.";
            /// `ServiceAccounts` (v1).
            service_accounts: ServiceAccount, "serviceAccounts", Some("{{ .metadata.name }}-sa"), "A ServiceAccount. It has only the fields that all children have.";
            /// Roles (rbac.authorization.k8s.io/v1).
            roles: Role, "roles", Some("{{ .metadata.name }}-role"), "Permissions in a namespace. Orkestra needs the permissions that it grants: `ork generate rbac` prints them if they are literal.";
            /// `RoleBindings` (rbac.authorization.k8s.io/v1).
            role_bindings: RoleBinding, "roleBindings", Some("{{ .metadata.name }}-rolebinding"), "The subjects of a role.";
            /// `ClusterRoles` (rbac.authorization.k8s.io/v1).
            cluster_roles: ClusterRole, "clusterRoles", Some("{{ .metadata.name }}-cluster-role"), "Permissions in all namespaces, or on cluster-scoped objects.";
            /// `ClusterRoleBindings` (rbac.authorization.k8s.io/v1).
            cluster_role_bindings: ClusterRoleBinding, "clusterRoleBindings", Some("{{ .metadata.name }}-crb"), "The subjects of a cluster role.";
            /// `HorizontalPodAutoscalers` (autoscaling/v2).
            hpa: HorizontalPodAutoscaler, "hpa", Some("{{ .metadata.name }}-hpa"), "Changes the number of replicas by CPU use.";
            /// `PodDisruptionBudgets` (policy/v1).
            pdb: PodDisruptionBudget, "pdb", Some("{{ .metadata.name }}-pdb"), "The number of Pods that may be unavailable during disruptions.";
            /// `PersistentVolumeClaims` (v1).
            persistent_volume_claims: PersistentVolumeClaim, "persistentVolumeClaims", None, "A request for storage.";
            /// `PersistentVolumes` (v1).
            persistent_volumes: PersistentVolume, "persistentVolumes", None, "Pre-provisioned storage.";
            /// `StorageClasses` (storage.k8s.io/v1).
            storage_classes: StorageClass, "storageClasses", None, "A class of storage.";
            /// Namespaces (v1).
            namespaces: Namespace, "namespaces", Some("{{ .metadata.name }}-ns"), "A namespace.";
            /// `ResourceQuotas` (v1).
            resource_quotas: ResourceQuota, "resourceQuotas", None, "The total resources that a namespace may use.";
            /// `LimitRanges` (v1).
            limit_ranges: LimitRange, "limitRanges", None, "The resources that each object of a namespace may use.";
            /// `PriorityClasses` (scheduling.k8s.io/v1).
            priority_classes: PriorityClass, "priorityClasses", None, "Scheduling priority.";
        }
    };
}

/// A list of children in a block, and its kind.
#[derive(Debug)]
pub struct ChildList {
    /// The field of a block.
    pub list: &'static str,
    /// The kind in Kubernetes.
    pub kind: &'static str,
    /// The default name of an entry, a template; `None` if every entry must have one.
    pub name: Option<&'static str>,
    /// The description of the field: `` `ConfigMaps` (v1). ``
    pub doc: &'static str,
    /// The description of an entry.
    pub about: &'static str,
    /// A Katalog with an entry.
    pub sample: &'static str,
}

impl ChildList {
    /// Returns the plural of the kind: `ConfigMaps`.
    pub fn title(&self) -> &'static str {
        let word = self.doc.split_whitespace().next();
        word.unwrap_or_default().trim_matches('`')
    }
}

/// An entry of a list of children.
pub trait ListEntry {
    /// Returns its list.
    fn row(&self) -> &'static ChildList;

    /// Returns the fields common to all entries.
    fn common(&self) -> &Common;

    /// Returns its name, as declared or by default.
    fn name(&self) -> Option<&str> {
        self.common().meta.name.as_deref().or(self.row().name)
    }
}

macro_rules! lifecycle {
    ($(#[doc = $doc:literal] $field:ident: $kind:ident, $list:literal, $name:expr, $about:literal;)*) => {
        /// Children by kind. Within a kind, they are processed in the order of declaration.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        #[schemars(transform = Refused(NO_SHORTHAND, "declare the object under `custom`"))]
        pub struct Lifecycle {
            /// Conditions that must all hold. Otherwise the block is treated as if the conditions of none of its entries held.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub when: Vec<GateCondition>,
            /// Conditions of which at least one must hold. Otherwise the block is treated as if the conditions of none of its entries
            /// held. If `when` is also set, both apply.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub or: Vec<GateCondition>,
            /// A list of calls that are made in order before any child of the block. Each can read the responses of the previous ones.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub external: Vec<ExternalCall>,
            $(
                #[doc = $doc]
                #[serde(rename = $list, skip_serializing_if = "Vec::is_empty")]
                pub $field: Vec<super::$kind>,
            )*
            /// Objects of any kind, written out in full.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub custom: Vec<Custom>,
        }

        impl Lifecycle {
            /// The lists of children, without `custom`.
            pub const LISTS: &[ChildList] = &[$(super::$kind::LIST),*];
        }

        $(
            impl super::$kind {
                const LIST: ChildList = ChildList {
                    list: $list,
                    kind: stringify!($kind),
                    name: $name,
                    doc: $doc,
                    about: $about,
                    sample: include_str!(concat!("../../../../../docs/reference/samples/kinds/", $list, ".yaml")),
                };
            }

            impl ListEntry for super::$kind {
                fn row(&self) -> &'static ChildList {
                    &Self::LIST
                }

                fn common(&self) -> &Common {
                    &self.common
                }
            }
        )*
    };
}
child_lists!(lifecycle);

/// Kinds that the language names and that have no short form.
const NO_SHORTHAND: &[&str] = &[
    "podSecurityPolicies",
    "podTemplates",
    "priorityLevelConfigurations",
    "runtimeClasses",
    "serviceMonitors",
    "storageBackups",
    "storageLocations",
    "storagePools",
    "storageSnapshots",
    "storageVolumes",
];
