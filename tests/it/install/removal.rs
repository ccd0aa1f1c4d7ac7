//! Removal of an installation whose Katalogs and custom resources still exist.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::run_the_example;
use super::site::{NAMESPACE, Site, definitions};
use crate::scenario::{LIMIT, is_ready};

const WEBSITES: &str = "/apis/demo.orkestra.io/v1alpha1/namespaces/default/websites";
const CHILDREN: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Returns the UID of each child and its `managedFields`, except those of its status.
async fn children(site: &Site) -> Result<Vec<(Value, Vec<Value>)>> {
    let all = site.objects_at(CHILDREN).list().await?;
    let written = |child: Value| {
        let metadata = &child["metadata"];
        let managers = metadata["managedFields"].as_array().into_iter().flatten();
        let of_spec = managers.filter(|one| one.get("subresource").is_none());
        (metadata["uid"].clone(), of_spec.cloned().collect())
    };
    Ok(all.into_iter().map(written).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_live_custom_resources_ork_uninstall_leaves_them_and_a_new_installation_continues()
-> Result<()> {
    let mut site = Site::start()?;
    site.ork(&["install", "--wait", "--timeout", "2m"])?;
    run_the_example(&mut site).await?;
    let websites = site.objects_at(WEBSITES);
    let uid = websites.fetch("hello").await?["metadata"]["uid"].clone();
    let before = children(&site).await?;
    ensure!(!before.is_empty(), "the example has no child");

    site.stop()?;
    let removed = site.ork(&["uninstall", "--ignore-katalogs", "--timeout", "60s"])?;
    ensure!(
        removed.contains("Deployment orkestra-system/orkestra deleted"),
        "{removed}"
    );
    for name in definitions() {
        ensure!(!removed.contains(&name), "{removed}");
    }
    assert_eq!(websites.fetch("hello").await?["metadata"]["uid"], uid);
    ensure!(children(&site).await? == before, "a child changed");

    site.ork(&["install", "--wait", "--timeout", "2m"])?;
    site.launch().await?;
    // The new controller did not write children that are as declared, and applies a change of the custom resource.
    let scale = r#"{"spec":{"replicas":4}}"#;
    let patch = ["patch", "website/hello", "--type=merge", "-p", scale];
    ensure!(children(&site).await? == before, "a child was written");
    site.kubectl(&patch, None)?;
    site.objects_at(CHILDREN)
        .until("hello", "has four replicas", LIMIT, |child| {
            child["spec"]["replicas"] == 4
        })
        .await?;
    let website = websites.until("hello", "is ready", LIMIT, is_ready).await?;
    assert_eq!(website["metadata"]["uid"], uid);
    for object in ["website/hello", "katalog/hello-website"] {
        site.kubectl(&["delete", object, "--timeout=120s"], None)?;
    }
    site.stop()?;
    site.ork(&["uninstall", "--timeout", "60s"]).map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_live_custom_resources_kubectl_delete_is_completed_by_ork_release() -> Result<()> {
    let mut site = Site::start()?;
    let overlay = "config/overlays/default";
    site.kubectl(&["apply", "-k", overlay], None)?;
    run_the_example(&mut site).await?;
    let websites = site.objects_at(WEBSITES);
    let uid = websites.fetch("hello").await?["metadata"]["uid"].clone();
    let before = children(&site).await?;

    // The controller stops with its Deployment, so the Katalog keeps its finalizer, and the deletion of its CRD waits for it.
    site.stop()?;
    site.kubectl(&["delete", "-k", overlay, "--wait=false"], None)?;
    site.objects("deployments")
        .until_gone("orkestra", LIMIT)
        .await?;
    let katalogs = site.objects_at("/apis/orkestra.orkspace.io/v1/namespaces/default/katalogs");
    let is_deleted = |katalog: &Value| katalog["metadata"]["deletionTimestamp"].is_string();
    katalogs
        .until("hello-website", "is being deleted", LIMIT, is_deleted)
        .await?;
    site.ork(&["release", "hello-website", "--namespace", "default"])?;
    let all = site.cluster_objects("customresourcedefinitions");
    for name in definitions() {
        all.until_gone(&name, LIMIT).await.context(name)?;
    }
    site.cluster_objects("namespaces")
        .until_gone(NAMESPACE, LIMIT)
        .await?;
    let website = websites.fetch("hello").await?;
    assert_eq!(website["metadata"]["uid"], uid);
    ensure!(website["metadata"]["finalizers"].is_null(), "{website}");
    let left: Vec<Value> = children(&site)
        .await?
        .into_iter()
        .map(|one| one.0)
        .collect();
    let uids: Vec<Value> = before.into_iter().map(|one| one.0).collect();
    assert_eq!(left, uids);
    // The custom resource can be deleted without a controller.
    site.kubectl(&["delete", "website/hello", "--timeout=120s"], None)
        .map(drop)
}
