//! The table of all additions.

use super::{
    Addition,
    EnrichSource::{Field, Itself, Key, Uid, Workload},
    Relation::{
        Claims, ClaimsByName, EndpointSlices, JobPods, Jobs, Nodes, Pods, ReplicaSets,
        StorageClasses, Volumes, Warnings,
    },
    shape,
};
use crate::api::EnrichTarget;

const CLAIM: &[(&str, &str)] = &[("", "PersistentVolumeClaim")];
const SERVICE: &[(&str, &str)] = &[("", "Service")];
const AUTOSCALER: &[(&str, &str)] = &[("autoscaling", "HorizontalPodAutoscaler")];
const CRON_JOB: &[(&str, &str)] = &[("batch", "CronJob")];
const INGRESS: &[(&str, &str)] = &[("networking.k8s.io", "Ingress")];

/// All additions, in the order of the reference.
pub static ADDITIONS: &[Addition] = &[
    Addition {
        target: EnrichTarget::Pods,
        key: "_pods",
        on: &[
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("apps", "DaemonSet"),
            ("apps", "ReplicaSet"),
        ],
        source: Workload(Pods),
        shape: shape::list,
        doc: "its pods: a list of `name`, `ip`, `phase`, `ready`, `node`, `restartCount`, and `containers` with `name`, \
              `state` (`Running`, `Waiting`, `Terminated`), `reason` and `exitCode`",
    },
    Addition {
        target: EnrichTarget::Pods,
        key: "_pods",
        on: &[("batch", "Job")],
        source: Uid(JobPods),
        shape: shape::list,
        doc: "its pods, with the same fields as those of workloads",
    },
    Addition {
        target: EnrichTarget::Events,
        key: "_warnings",
        on: &[],
        source: Uid(Warnings),
        shape: shape::latest_first,
        doc: "warning Events about the object itself, the latest first: a list of `reason`, `message`, `count` and \
              `lastTimestamp`",
    },
    Addition {
        target: EnrichTarget::Owner,
        key: "_owner",
        on: &[("apps", "ReplicaSet")],
        source: Itself(&["metadata.ownerReferences"]),
        shape: shape::owner,
        doc: "its controller: `name`, `kind` and `uid`",
    },
    Addition {
        target: EnrichTarget::ReplicaSets,
        key: "_replicaSets",
        on: &[("apps", "Deployment")],
        source: Uid(ReplicaSets),
        shape: shape::list,
        doc: "its ReplicaSets, old ones too: a list of `name`, `revision`, `replicas`, `readyReplicas` and `images`",
    },
    Addition {
        target: EnrichTarget::Pvcs,
        key: "_pvcs",
        on: &[("apps", "StatefulSet")],
        source: Workload(Claims),
        shape: shape::list,
        doc: "the claims created from its templates: a list of `name`, `namespace`, `phase`, `capacity`, `storageClass` and \
              `volume`",
    },
    Addition {
        target: EnrichTarget::Pvc,
        key: "_pv",
        on: CLAIM,
        source: Field(Volumes, "spec.volumeName"),
        shape: shape::one,
        doc: "the volume that it is bound to: `name`, `phase`, `capacity`, `storageClass`, `reclaimPolicy`, `volumeMode` \
              and `provisioner`",
    },
    Addition {
        target: EnrichTarget::Pv,
        key: "_pvc",
        on: &[("", "PersistentVolume")],
        source: Field(ClaimsByName, "spec.claimRef"),
        shape: shape::one,
        doc: "the claim that is bound to it, or that it is reserved for: `name`, `namespace`, `phase`, `capacity`, `storageClass` and \
              `volume`",
    },
    Addition {
        target: EnrichTarget::StorageClass,
        key: "_storageClass",
        on: CLAIM,
        source: Field(StorageClasses, "spec.storageClassName"),
        shape: shape::one,
        doc: "its class: `name`, `provisioner`, `reclaimPolicy`, `volumeBindingMode` and `allowVolumeExpansion`",
    },
    Addition {
        target: EnrichTarget::BackingPods,
        key: "_backingPods",
        on: SERVICE,
        source: Key(EndpointSlices),
        shape: shape::backing_pods,
        doc: "the pods behind it: a list of `name`, `ip`, `ready` and `node`",
    },
    Addition {
        target: EnrichTarget::Endpoints,
        key: "_endpoints",
        on: SERVICE,
        source: Key(EndpointSlices),
        shape: shape::endpoints,
        doc: "its endpoints: a list of `ip`, `port` and `ready`, one item for each address and port",
    },
    Addition {
        target: EnrichTarget::Node,
        key: "_node",
        on: &[("", "Pod")],
        source: Field(Nodes, "spec.nodeName"),
        shape: shape::one,
        doc: "the node that it runs on: `name`, `zone`, `region` and `instanceType`",
    },
    Addition {
        target: EnrichTarget::Hpa,
        key: "_currentMetrics",
        on: AUTOSCALER,
        source: Itself(&["status.currentMetrics"]),
        shape: shape::current_metrics,
        doc: "its current metrics: a list of `type` and `name` with `averageUtilization`, `averageValue` or `value`",
    },
    Addition {
        target: EnrichTarget::Hpa,
        key: "_scaleTarget",
        on: AUTOSCALER,
        source: Itself(&["spec.scaleTargetRef"]),
        shape: shape::scale_target,
        doc: "its scale target: `apiVersion`, `kind` and `name`",
    },
    Addition {
        target: EnrichTarget::CronJob,
        key: "_activeJobs",
        on: CRON_JOB,
        source: Uid(Jobs),
        shape: shape::active_jobs,
        doc: "its unfinished Jobs, each with the fields of `_lastJob`",
    },
    Addition {
        target: EnrichTarget::CronJob,
        key: "_lastJob",
        on: CRON_JOB,
        source: Uid(Jobs),
        shape: shape::last_job,
        doc: "the Job that it created last: `name`, `phase` (`Active`, `Complete`, `Failed`), `active`, `succeeded`, `failed`, \
              `createdAt`, `startTime` and `completionTime`",
    },
    Addition {
        target: EnrichTarget::CronJob,
        key: "_lastSuccessfulJob",
        on: CRON_JOB,
        source: Uid(Jobs),
        shape: shape::last_successful_job,
        doc: "its last complete Job, with the fields of `_lastJob`",
    },
    Addition {
        target: EnrichTarget::Ingress,
        key: "_loadBalancerIPs",
        on: INGRESS,
        source: Itself(&["status.loadBalancer.ingress"]),
        shape: shape::load_balancers,
        doc: "the addresses of its load balancers, or their host names: a list of text",
    },
    Addition {
        target: EnrichTarget::Ingress,
        key: "_tlsSecrets",
        on: INGRESS,
        source: Itself(&["spec.tls"]),
        shape: shape::tls_secrets,
        doc: "the names of the Secrets with its certificates, each once, without their contents",
    },
];
