//! What is watched for additions.

use super::view;
use crate::{
    api::{keys::GroupKind, names},
    value::Node,
};

/// Objects that are watched because additions are made of them: a kind, and which of its objects. One watch each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Pods of workloads that select theirs by our label.
    Pods,
    /// Pods of Jobs.
    JobPods,
    /// `ReplicaSets` of such workloads.
    ReplicaSets,
    /// Where Services of ours lead: their labels are copied to their slices.
    EndpointSlices,
    /// Warning Events about anything.
    Warnings,
    /// Claims of such workloads: they have the labels of the selector.
    Claims,
    /// All claims.
    ClaimsByName,
    /// All volumes.
    Volumes,
    /// All storage classes.
    StorageClasses,
    /// All nodes.
    Nodes,
    /// All Jobs.
    Jobs,
}

/// The kind and the objects of a relation.
#[derive(Debug)]
pub struct Objects {
    /// The kind.
    pub kind: GroupKind,
    /// The version that is read.
    pub version: &'static str,
    /// Which of them, by labels.
    pub labels: Option<&'static str>,
    /// Which of them, by fields.
    pub fields: Option<&'static str>,
}

/// The label that pods of Jobs have, since Kubernetes 1.27. Source: Kubernetes, "Labels, Annotations and Taints".
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The label that names the Service of a slice. Source: Kubernetes, "`EndpointSlices`".
const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl Relation {
    /// Which objects it is about.
    pub fn objects(self) -> Objects {
        let of = |group: &str, kind: &str| Objects {
            kind: GroupKind {
                group: group.into(),
                kind: kind.into(),
            },
            version: "v1",
            labels: None,
            fields: None,
        };
        let labelled = |label, objects| Objects {
            labels: Some(label),
            ..objects
        };
        match self {
            Self::Pods => labelled(names::LABEL_WORKLOAD, of("", "Pod")),
            Self::JobPods => labelled(JOB_NAME, of("", "Pod")),
            Self::ReplicaSets => labelled(names::LABEL_WORKLOAD, of("apps", "ReplicaSet")),
            Self::EndpointSlices => labelled(
                names::LABEL_MANAGED,
                of("discovery.k8s.io", "EndpointSlice"),
            ),
            Self::Warnings => Objects {
                fields: Some("type=Warning"),
                ..of("", "Event")
            },
            Self::Claims => labelled(names::LABEL_WORKLOAD, of("", "PersistentVolumeClaim")),
            Self::ClaimsByName => of("", "PersistentVolumeClaim"),
            Self::Volumes => of("", "PersistentVolume"),
            Self::StorageClasses => of("storage.k8s.io", "StorageClass"),
            Self::Nodes => of("", "Node"),
            Self::Jobs => of("batch", "Job"),
        }
    }

    /// Whether its objects are found by their names; else by what they belong to.
    pub fn is_by_name(self) -> bool {
        match self {
            Self::ClaimsByName | Self::Volumes | Self::StorageClasses | Self::Nodes => true,
            Self::Pods
            | Self::JobPods
            | Self::ReplicaSets
            | Self::EndpointSlices
            | Self::Warnings
            | Self::Claims
            | Self::Jobs => false,
        }
    }
}

/// What an object of that kind belongs to, as the [`Source`](super::Source) of what is made of it says, and what is kept
/// of it.
pub(crate) fn read(kind: &GroupKind, object: &Node) -> (Option<String>, Node) {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    match &*kind.kind {
        // Pods of Jobs are told by their uid: their labels are the user's own.
        "Pod" => {
            let of = match view::label(object, JOB_NAME) {
                Some(_) => view::controller(object),
                None => view::label(object, names::LABEL_WORKLOAD),
            };
            (owned(of), view::pod(object))
        }
        "ReplicaSet" => (owned(view::controller(object)), view::replica_set(object)),
        "EndpointSlice" => (service(object), view::slice(object)),
        "Event" => {
            let about = view::text(object, &["involvedObject", "uid"]);
            (owned(about), view::event(object))
        }
        "PersistentVolumeClaim" => {
            let workload = view::label(object, names::LABEL_WORKLOAD);
            (owned(workload), view::claim(object))
        }
        "PersistentVolume" => (None, view::volume(object)),
        "StorageClass" => (None, view::storage_class(object)),
        "Node" => (None, view::node(object)),
        "Job" => (owned(view::controller(object)), view::job(object)),
        _ => (None, Node::Null),
    }
}

/// `namespace/name` of the Service that a slice belongs to.
fn service(object: &Node) -> Option<String> {
    let namespace = view::text(object, &["metadata", "namespace"])?;
    let name = view::label(object, SERVICE_NAME)?;
    Some(format!("{namespace}/{name}"))
}
