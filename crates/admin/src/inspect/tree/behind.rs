//! The objects that a controller of Kubernetes creates for a workload: Pods, and the Jobs of a `CronJob`.

use std::collections::BTreeSet;

use orkestra_cluster::requests::Served;
use orkestra_engine::reconcile::{
    behind::{selector, trouble},
    record::controller,
};
use orkestra_object::{
    GroupKind, Identity,
    value::{Node, Path, Projection},
};

use super::{CHILDREN, Parent, TreeNode, Walk};
use crate::inspect::{HealthStatus, reader::Wanted};

/// What is behind a kind.
enum Behind {
    /// Pods that it controls.
    Pods,
    /// Pods that its `ReplicaSets` control.
    PodsOfReplicaSets,
    /// Jobs that it controls.
    Jobs,
}

impl Behind {
    /// Source: Kubernetes, "Workload Management".
    fn of(kind: &GroupKind) -> Option<Self> {
        match (&*kind.group, &*kind.kind) {
            ("apps", "Deployment") => Some(Self::PodsOfReplicaSets),
            ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                Some(Self::Pods)
            }
            ("batch", "CronJob") => Some(Self::Jobs),
            _ => None,
        }
    }
}

impl Walk<'_> {
    /// Returns what is behind a workload; nothing for other kinds.
    pub(super) async fn behind(&mut self, parent: &Parent<'_>, level: usize) -> Vec<TreeNode> {
        let Some(behind) = Behind::of(&parent.kind.group_kind()) else {
            return Vec::new();
        };
        let labels = selector(parent.view);
        let own = BTreeSet::from([parent.uid.to_owned()]);
        let mut nodes = Vec::new();
        match behind {
            Behind::Pods => {
                for pod in self
                    .controlled("Pod", parent, labels.as_deref(), &own)
                    .await
                {
                    nodes.extend(self.pod(&pod));
                }
            }
            Behind::PodsOfReplicaSets => {
                let sets = self
                    .controlled("ReplicaSet.apps", parent, labels.as_deref(), &own)
                    .await;
                let sets = sets.iter().filter_map(|set| set.meta_text("uid"));
                let sets: BTreeSet<String> = sets.map(str::to_owned).collect();
                if !sets.is_empty() {
                    for pod in self
                        .controlled("Pod", parent, labels.as_deref(), &sets)
                        .await
                    {
                        nodes.extend(self.pod(&pod));
                    }
                }
            }
            Behind::Jobs => {
                let Some(kind) = self.reader.kinds.of(&GroupKind::parse("Job.batch")) else {
                    return nodes;
                };
                for job in self.controlled("Job.batch", parent, None, &own).await {
                    nodes.extend(self.child(kind, &job, level).await);
                }
            }
        }
        nodes
    }

    /// Returns the objects of a kind in the namespace of the parent that one of `owners` controls, sorted by name.
    async fn controlled(
        &mut self,
        kind: &str,
        parent: &Parent<'_>,
        labels: Option<&str>,
        owners: &BTreeSet<String>,
    ) -> Vec<Node> {
        let Some(kind) = self.reader.kinds.of(&GroupKind::parse(kind)) else {
            return Vec::new();
        };
        let is_owned = |object: &Node| controller(object).is_some_and(|uid| owners.contains(uid));
        let projection = projection();
        let wanted = Wanted {
            kind,
            selector: labels,
            fields: None,
            projection: &projection,
            keep: &is_owned,
            most: CHILDREN,
        };
        let (found, missing) = self.reader.list_in(wanted, parent.namespace).await;
        self.missing.extend(missing);
        let mut items = found.items;
        items.sort_by(|a, b| a.meta_text("name").cmp(&b.meta_text("name")));
        items
    }

    fn pod(&mut self, pod: &Node) -> Option<TreeNode> {
        let kind: &Served = self.reader.kinds.of(&GroupKind::parse("Pod"))?;
        let mut node = TreeNode::of(kind, pod);
        if !self.admits(node.object.uid.as_deref()?) {
            return None;
        }
        if matches!(
            node.health.status,
            HealthStatus::InProgress | HealthStatus::Failed
        ) {
            node.health.message = trouble(pod).or(node.health.message);
        }
        Some(node)
    }
}

/// The fields that are read: those of identity and health, and those that say why a Pod is not ready.
fn projection() -> Projection {
    let metadata = [
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "ownerReferences",
    ];
    let metadata = Identity::FIELDS.iter().chain(&metadata);
    let mut paths: Vec<Path> = metadata
        .map(|field| Path::of_fields(["metadata", field]))
        .collect();
    paths.push(Path::of_fields(["spec", "selector"]));
    paths.push(Path::of_fields(["status"]));
    Projection::new(&paths)
}
