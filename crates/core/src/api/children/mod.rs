//! Children: the objects that an operator makes for a custom resource, one file a family.

mod common;
mod config;
mod custom;
mod env;
mod identity;
mod lifecycle;
mod network;
mod pod;
mod storage;
mod workload;

pub use common::{Common, Control, ForEach, Meta, OnFalse, OnImmutable};
pub use config::{ConfigMap, Copies, Secret, SecretTls};
pub use custom::{Custom, CustomMeta};
pub use env::{
    Env, EnvFrom, EnvFromObject, EnvFromSource, EnvSource, EnvValue, EnvVar, KeyRef, NameRef,
    ObjectNameRef,
};
pub use identity::{
    ClusterRole, ClusterRoleBinding, ClusterRoleRef, Limit, LimitRange, Limits, Namespace,
    PolicyRule, PriorityClass, Quota, ResourceQuota, Role, RoleBinding, RoleRef, ServiceAccount,
    Subject,
};
pub use lifecycle::{ChildList, Lifecycle};
pub(crate) use lifecycle::{ListEntry, child_lists};
pub use network::{
    Budget, BudgetBehavior, HorizontalPodAutoscaler, Ingress, IngressTls, NetworkPolicy,
    NetworkRules, PodDisruptionBudget, PodSelector, ScaleTarget, ScalingBehavior, Service,
    ServicePort,
};
pub use pod::{Capabilities, PodSecurity, Probe, Probes, Resources, SecurityContext};
pub use storage::{PersistentVolume, PersistentVolumeClaim, StorageClass};
pub use workload::{
    CronJob, DaemonSet, Deployment, Job, Pod, PodParts, ReplicaSet, Rolling, RollingUpdate,
    Serving, StatefulSet, VolumeClaimTemplate,
};
