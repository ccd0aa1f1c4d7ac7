//! The manifests in `config/`, as kubectl's own kustomize builds them.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::ControlPlane;

use super::site::{NAMESPACE, Site};
use crate::scenario::{LIMIT, printed};

const INVENTORY: &str = "orkestra-inventory";

/// Objects by kind, namespace and name. The policy of helm on CRDs is not part of kustomize's.
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
    for overlay in ["default", "ha", "no-webhooks", "single-namespace"] {
        let folder = format!("config/overlays/{overlay}");
        let built = cluster.kubectl(&cluster.admin(), &["kustomize", &folder], None)?;
        let values = format!("{folder}/values.yaml");
        let installed = Command::new(env!("CARGO_BIN_EXE_ork"))
            .args(["install", "--dry-run=client", "-f", &values])
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
    // It is no installation of `ork install`, and `ork uninstall` says so.
    let refused = site.refused(&["uninstall"])?;
    ensure!(refused.contains("kubectl delete -k"), "{refused}");
    site.kubectl(&["delete", "-k", overlay, "--timeout=90s"], None)?;
    site.cluster_objects("namespaces")
        .until_gone(NAMESPACE, LIMIT)
        .await?;
    ensure!(site.definition("katalogs").await?.is_none());
    Ok(())
}
