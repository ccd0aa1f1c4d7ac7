//! One fake node: `kube-scheduler` assigns pods to it; kwok reports them as running, or as completed if a Job owns them.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::ControlPlane;
use crate::guard::Guarded;
use crate::identity::{Identity, SYSTEM_MASTERS};
use crate::servers::Site;
use crate::wait::{block_on, eventually};

/// The name of the node.
const NODE: &str = "fake-node";

/// Starts the scheduler and kwok, and waits until the node accepts pods.
pub(crate) fn start(control_plane: &ControlPlane) -> Result<Vec<Guarded>> {
    let site = control_plane.site();
    let scheduler = control_plane.identity("system:kube-scheduler", &[SYSTEM_MASTERS])?;
    let kwok = control_plane.identity("kwok", &[SYSTEM_MASTERS])?;
    let servers = vec![
        site.scheduler(scheduler.kubeconfig_path())?,
        start_kwok(site, &kwok)?,
    ];
    let admin = control_plane.admin();
    block_on(|| add_node(&admin))?;
    Ok(servers)
}

fn start_kwok(site: &Site, identity: &Identity) -> Result<Guarded> {
    let mut args = vec![
        format!("--kubeconfig={}", identity.kubeconfig_path().display()),
        "--manage-all-nodes=true".to_owned(),
        // Renew the node's lease, as a kubelet does. Without renewal the node would be considered lost.
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    for stage in site.assets.stages()? {
        args.push(format!("--config={}", stage.display()));
    }
    site.spawn("kwok", &args)
}

async fn add_node(admin: &Identity) -> Result<()> {
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "1000" });
    let node: Node = serde_json::from_value(json!({
        "metadata": {
            "name": NODE,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": { "kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" },
        },
        "status": { "allocatable": room, "capacity": room },
    }))?;
    let nodes: Api<Node> = Api::all(admin.client()?);
    nodes.create(&PostParams::default(), &node).await?;
    eventually(
        "the fake node is ready",
        Duration::from_mins(1),
        async || {
            let node = nodes.get(NODE).await?;
            let ready = node
                .status
                .and_then(|status| status.conditions)
                .is_some_and(|all| {
                    all.iter()
                        .any(|one| one.type_ == "Ready" && one.status == "True")
                });
            let tainted = node
                .spec
                .and_then(|spec| spec.taints)
                .is_some_and(|taints| !taints.is_empty());
            Ok((ready && !tainted).then_some(()))
        },
    )
    .await
}
