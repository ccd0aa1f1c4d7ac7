//! The definitions of a scenario are removed from the shared control plane once it has ended: whatever goes through all kinds, such as
//! the deletion of a namespace, takes minutes if there are hundreds of them.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testbed::ControlPlane;
use tokio::sync::mpsc;

/// A kind with more objects than this stays.
const MANY: usize = 40;

/// Removes the definitions of an API group in the background, with their objects. What cannot be removed stays.
pub(crate) fn remove_later(group: &str) {
    static GROUPS: OnceLock<mpsc::UnboundedSender<String>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| {
        let (sender, groups) = mpsc::unbounded_channel();
        std::thread::spawn(move || remove_all(groups));
        sender
    });
    // The thread lives as long as the process.
    let _ = groups.send(group.to_owned());
}

fn remove_all(mut groups: mpsc::UnboundedReceiver<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(client) = ControlPlane::shared().admin().client() else {
            return;
        };
        while let Some(group) = groups.recv().await {
            if let Err(error) = remove(&client, &group).await {
                eprintln!("the definitions of {group} stay: {error:#}");
            }
        }
    });
}

async fn remove(client: &Client, group: &str) -> Result<()> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let names = crds.list_metadata(&ListParams::default()).await?;
    let names = names.items.into_iter().filter_map(|crd| crd.metadata.name);
    for name in names.filter(|name| name.ends_with(&format!(".{group}"))) {
        let crd = crds.get(&name).await?;
        let text = |pointer: &str| crd.data.pointer(pointer).and_then(Value::as_str);
        let version = text("/spec/versions/0/name").context("no version")?;
        let served = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: text("/spec/names/kind").context("no kind")?.to_owned(),
            plural: text("/spec/names/plural").context("no plural")?.to_owned(),
        };
        // The API server deletes the objects of a definition one definition after the other, and looks every five seconds whether they
        // are gone: a definition that has objects delays the deletions of other tests.
        if is_emptied(client, &served).await? {
            crds.delete(&name, &DeleteParams::background()).await?;
        }
    }
    Ok(())
}

/// Deletes the objects of a kind, whose operator has ended, with their finalizers, unless there are many. Returns whether none is left.
async fn is_emptied(client: &Client, served: &ApiResource) -> Result<bool> {
    let all = Api::<DynamicObject>::all_with(client.clone(), served);
    let objects = all.list_metadata(&ListParams::default()).await?.items;
    if objects.len() > MANY {
        return Ok(false);
    }
    for object in objects {
        let Some(name) = &object.metadata.name else {
            continue;
        };
        let api = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, served),
            None => all.clone(),
        };
        api.delete(name, &DeleteParams::background()).await?;
        if object.metadata.finalizers.is_some() {
            let none = json!({ "metadata": { "finalizers": null } });
            let patch = Patch::Merge(&none);
            api.patch_metadata(name, &PatchParams::default(), &patch)
                .await?;
        }
    }
    let left = all.list_metadata(&ListParams::default()).await?.items;
    Ok(left.is_empty())
}
