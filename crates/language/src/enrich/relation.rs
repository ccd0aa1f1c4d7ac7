//! The objects that are watched for additions.

use super::view;
use crate::api::{keys::GroupKind, names};
use orkestra_object::value::Node;

/// Objects that are watched as the source of additions: a kind and a selection of its objects. Each has one watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Pods of workloads whose selector has Orkestra's label.
    Pods,
    /// Pods of Jobs.
    JobPods,
    /// `ReplicaSets` of such workloads.
    ReplicaSets,
    /// Endpoint slices of Orkestra's Services, whose labels are copied to their slices.
    EndpointSlices,
    /// Warning Events about anything.
    Warnings,
    /// Claims of such workloads, which have the labels of the selector.
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

/// The kind and selection of a relation.
#[derive(Debug)]
pub struct Objects {
    /// The kind.
    pub kind: GroupKind,
    /// The version that is read.
    pub version: &'static str,
    /// The label selector.
    pub labels: Option<&'static str>,
    /// The field selector.
    pub fields: Option<&'static str>,
}

/// The label of Pods of Jobs, since Kubernetes 1.27. Source: Kubernetes, "Labels, Annotations and Taints".
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The label that names the Service of a slice. Source: Kubernetes, "`EndpointSlices`".
const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl Relation {
    /// Returns the kind and selection.
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

    /// True if its objects are found by name, otherwise by their owner.
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

/// Returns the key of the owner of an object of that kind, in the form that the [`EnrichSource`](super::EnrichSource) of
/// the addition uses, and the view that is stored.
pub fn read(kind: &GroupKind, object: &Node) -> (Option<String>, Node) {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    match &*kind.kind {
        // Pods of Jobs are identified by uid, because their labels are the user's own.
        "Pod" => {
            let of = match object.label(JOB_NAME) {
                Some(_) => view::controller(object),
                None => object.label(names::LABEL_WORKLOAD),
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
            let workload = object.label(names::LABEL_WORKLOAD);
            (owned(workload), view::claim(object))
        }
        "PersistentVolume" => (None, view::volume(object)),
        "StorageClass" => (None, view::storage_class(object)),
        "Node" => (None, view::node(object)),
        "Job" => (owned(view::controller(object)), view::job(object)),
        _ => (None, Node::Null),
    }
}

/// Returns `namespace/name` of the Service that a slice belongs to.
fn service(object: &Node) -> Option<String> {
    let namespace = object.meta_text("namespace")?;
    let name = object.label(SERVICE_NAME)?;
    Some(format!("{namespace}/{name}"))
}
