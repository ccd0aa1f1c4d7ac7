//! A provisioner that binds each claim to a volume, as most clusters have one. The control plane has none.

use std::pin::pin;

use anyhow::Result;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{
    Client,
    api::{Api, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// Binds every claim in the namespace `default` to a volume, until the future is dropped.
pub(crate) async fn provide(client: Client) -> Result<()> {
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let changes = watcher(claims.clone(), watcher::Config::default()).default_backoff();
    let mut changes = pin!(changes.applied_objects());
    while let Some(claim) = changes.next().await {
        // The stream continues after an error, with a new list of all claims.
        let Ok(claim) = claim else { continue };
        let bound = claim
            .spec
            .as_ref()
            .is_some_and(|spec| spec.volume_name.is_some());
        if !bound {
            bind(&client, &claims, &claim).await?;
        }
    }
    Ok(())
}

/// Creates a volume for the claim and binds the claim to it, as a provisioner and the volume controller do.
pub(crate) async fn bind(
    client: &Client,
    claims: &Api<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
) -> Result<()> {
    let Some((name, uid)) = claim
        .metadata
        .name
        .as_deref()
        .zip(claim.metadata.uid.as_deref())
    else {
        return Ok(());
    };
    let volume = format!("volume-{uid}");
    let wanted: PersistentVolume = serde_json::from_value(json!({
        "metadata": { "name": volume },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": "1Ti" },
            "hostPath": { "path": "/volumes" },
            "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.metadata.namespace, "name": name, "uid": uid },
        },
    }))?;
    let made = Api::all(client.clone())
        .create(&PostParams::default(), &wanted)
        .await;
    match made {
        // The volume was created for an earlier event of the claim.
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
        made => made.map(drop)?,
    }
    let parameters = PatchParams::default();
    let bound = json!({
        "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
        "spec": { "volumeName": volume },
    });
    claims
        .patch(name, &parameters, &Patch::Merge(&bound))
        .await?;
    let status = json!({ "status": { "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Ti" } } });
    claims
        .patch_status(name, &parameters, &Patch::Merge(&status))
        .await?;
    Ok(())
}
