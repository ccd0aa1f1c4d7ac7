//! The manifests in `config/`, as the kustomize in kubectl builds them.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::ControlPlane;

use super::EXAMPLE;
use super::site::{IMAGE, NAMESPACE, Site};
use crate::scenario::{LIMIT, is_ready, printed};

const OVERLAYS: [&str; 4] = ["default", "ha", "no-webhooks", "single-namespace"];
const INVENTORY: &str = "orkestra-inventory";

/// Returns objects by kind, namespace and name. Removes Helm's resource policy from CRDs, which the overlays do not have.
fn by_name(text: &str) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for mut object in serde_saphyr::from_multiple::<Value>(text)? {
        if object["kind"] == "CustomResourceDefinition" {
            object["metadata"]["annotations"]["helm.sh/resource-policy"].take();
        }
        let metadata = &object["metadata"];
        let name = format!(
            "{} {} {}",
            object["kind"], metadata["namespace"], metadata["name"]
        );
        if metadata["name"] != INVENTORY {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|_, value| !value.is_null());
            }
            ensure!(all.insert(name.clone(), object).is_none(), "{name} twice");
        }
    }
    Ok(all)
}

#[test]
fn every_overlay_is_the_chart_with_its_values() -> Result<()> {
    let cluster = ControlPlane::shared();
    for overlay in OVERLAYS {
        let folder = format!("config/overlays/{overlay}");
        let built = cluster.kubectl(&cluster.admin(), &["kustomize", &folder], None)?;
        let values = format!("{folder}/values.yaml");
        let installed = Command::new(env!("CARGO_BIN_EXE_ork"))
            .args(["install", "--dry-run=client", "-f", &values])
            .env("ORK_IMAGE", IMAGE)
            .output()?;
        let (built, installed) = (
            by_name(&printed(&built, "kubectl")?)?,
            by_name(&printed(&installed, "ork")?)?,
        );
        ensure!(
            built.keys().eq(installed.keys()),
            "{overlay}: {:?}\n{:?}",
            built.keys(),
            installed.keys()
        );
        for (name, object) in &built {
            ensure!(
                *object == installed[name],
                "{overlay}: {name}: {object}\n{}",
                installed[name]
            );
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_overlay_is_applied_by_kubectl_alone_and_deleted_again() -> Result<()> {
    let site = Site::start()?;
    let overlay = "config/overlays/default";
    site.kubectl(&["apply", "-k", overlay], None)?;
    let wait = [
        "rollout",
        "status",
        "deployment/orkestra",
        "--namespace",
        NAMESPACE,
        "--timeout=120s",
    ];
    site.kubectl(&wait, None)?;
    site.ork(&["version", "--cluster"])?;
    // `ork install` did not create these objects, so `ork uninstall` refuses and names the command to run.
    let refused = site.refused(&["uninstall"])?;
    ensure!(refused.contains("kubectl delete -k"), "{refused}");
    site.kubectl(&["delete", "-k", overlay, "--timeout=120s"], None)?;
    site.cluster_objects("namespaces")
        .until_gone(NAMESPACE, LIMIT)
        .await?;
    ensure!(site.definition("katalogs").await?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_overlay_runs_a_katalog_with_the_arguments_and_permissions_that_it_has() -> Result<()>
{
    let mut site = Site::start()?;
    let websites = site.objects_at("/apis/demo.orkestra.io/v1alpha1/namespaces/default/websites");
    let katalogs = |namespace: &str| {
        let group = "/apis/orkestra.orkspace.io/v1";
        site.objects_at(&format!("{group}/namespaces/{namespace}/katalogs"))
    };
    let (here, elsewhere) = (katalogs(NAMESPACE), katalogs("default"));
    site.kubectl(&["apply", "-f", &format!("{EXAMPLE}/crd.yaml")], None)?;
    for overlay in OVERLAYS {
        let overlay = format!("config/overlays/{overlay}");
        site.kubectl(&["apply", "-k", &overlay], None)?;
        let is_single = overlay.ends_with("single-namespace");
        let katalog = format!("{EXAMPLE}/katalog.yaml");
        grant_katalog_alone(&site, &katalog)?;
        site.launch_as_installed().await?;
        if is_single {
            site.kubectl(&["apply", "--namespace", "default", "-f", &katalog], None)?;
        }
        let apply = ["apply", "--namespace", NAMESPACE, "-f", &katalog];
        site.kubectl(&apply, None)?;
        here.until_ready("hello-website").await?;
        let website = format!("{EXAMPLE}/website.yaml");
        site.kubectl(&["apply", "-f", &website], None)?;
        websites.until("hello", "is ready", LIMIT, is_ready).await?;
        let delete = ["delete", "website/hello", "--timeout=120s"];
        site.kubectl(&delete, None)?;
        if is_single {
            let other = elsewhere.fetch("hello-website").await?;
            ensure!(other["status"]["conditions"].is_null(), "{other}");
            elsewhere.delete("hello-website").await?;
        }
        let place = ["--namespace", NAMESPACE, "--timeout=120s"];
        let katalog = [&["delete", "katalog/hello-website"][..], &place].concat();
        site.kubectl(&katalog, None)?;
        site.stop()?;
        site.kubectl(
            &[
                "delete",
                "clusterrole/katalog",
                "clusterrolebinding/katalog",
            ],
            None,
        )?;
        site.kubectl(&["delete", "-k", &overlay, "--timeout=120s"], None)?;
    }
    Ok(())
}

/// Grants the installed service account only the permissions of the Katalog: the overlay grants those of the controller.
fn grant_katalog_alone(site: &Site, katalog: &str) -> Result<()> {
    let rules = site.ork(&["generate", "rbac", "--output", "values", "-k", katalog])?;
    let rules: Value = serde_saphyr::from_str(&rules)?;
    let role = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "katalog" }, "rules": rules["katalogs"][0]["rules"],
    });
    site.kubectl(&["apply", "-f", "-"], Some(&role.to_string()))?;
    let account = format!("--serviceaccount={NAMESPACE}:orkestra");
    let bind = [
        "create",
        "clusterrolebinding",
        "katalog",
        "--clusterrole=katalog",
        &account,
    ];
    site.kubectl(&bind, None).map(drop)
}
