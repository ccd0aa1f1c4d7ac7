//! Upgrades by `ork install` and `kubectl apply` while custom resources change.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::churn::Churn;
use super::site::{Site, definitions};
use crate::scenario::printed;

const OVERLAY: &str = "config/overlays/default";

/// Changes manifests as if version 0.0.1 had printed them: its annotations on CRDs, no additional printer columns, and its image.
fn earlier(manifests: &str) -> Result<String> {
    let mut stream = String::new();
    for mut object in serde_saphyr::from_multiple::<Value>(manifests)? {
        if object["kind"] == "CustomResourceDefinition" {
            object["metadata"]["annotations"] = json!({
                "orkestra.orkspace.io/version": "0.0.1",
                "orkestra.orkspace.io/schema": "earlier",
            });
            if let Some(version) = object["spec"]["versions"][0].as_object_mut() {
                version.remove("additionalPrinterColumns");
            }
        }
        if object["kind"] == "Deployment" {
            object["spec"]["template"]["spec"]["containers"][0]["image"] =
                json!("registry.invalid/orkestra:0.0.1");
        }
        writeln!(stream, "---\n{object}")?;
    }
    Ok(stream)
}

/// Checks that `ork version --cluster` reports CRDs of version 0.0.1.
fn is_earlier(site: &Site) -> Result<()> {
    let older = site.refused(&["version", "--cluster"])?;
    ensure!(
        older.contains("is older: it was written by version 0.0.1"),
        "{older}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_by_ork_install_loses_no_change_and_rewrites_no_child() -> Result<()> {
    let mut site = Site::start()?;
    site.ork(&["install", "--set", "crds.install=false"])?;
    let crds = earlier(&site.ork(&["crds"])?)?;
    let apply = [
        "apply",
        "--server-side",
        "--field-manager=ork-install",
        "-f",
        "-",
    ];
    site.kubectl(&apply, Some(&crds))?;
    is_earlier(&site)?;
    let churn = Churn::begin(&mut site).await?;
    churn.round().await?;
    let mut install = Site::command(&site.cluster.admin(), &["install"]);
    let said = tokio::task::spawn_blocking(move || install.output()).await??;
    let said = printed(&said, "ork")?;
    for name in definitions() {
        ensure!(
            said.contains(&format!("CustomResourceDefinition {name} configured")),
            "{said}"
        );
    }
    let took = churn.hand_over(&mut site).await?;
    site.ork(&["version", "--cluster"])?;
    churn.end(&site).await?;
    println!("drift was corrected after {took:#}");
    site.stop()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_by_kubectl_apply_loses_no_change_and_rewrites_no_child() -> Result<()> {
    let mut site = Site::start()?;
    let manifests = earlier(&site.kubectl(&["kustomize", OVERLAY], None)?)?;
    site.kubectl(&["apply", "-f", "-"], Some(&manifests))?;
    is_earlier(&site)?;
    let churn = Churn::begin(&mut site).await?;
    churn.round().await?;
    let mut apply = site.kubectl_command(&["apply", "-k", OVERLAY])?;
    let said = tokio::task::spawn_blocking(move || apply.output()).await??;
    let said = printed(&said, "kubectl")?;
    ensure!(
        said.contains("deployment.apps/orkestra configured"),
        "{said}"
    );
    let took = churn.hand_over(&mut site).await?;
    site.ork(&["version", "--cluster"])?;
    churn.end(&site).await?;
    println!("drift was corrected after {took:#}");
    site.stop()
}
