//! The examples and the Katalog of `ork init`, applied to a cluster as custom resources, without their other files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::ObjectMeta;
use serde_json::Value;
use tempfile::TempDir;

use super::folders;
use crate::scenario::{LIMIT, Scenario, condition};

/// The examples that run only from files, with the reason in their Katalog's `Ready` condition.
const FROM_FILES_ONLY: [(&str, &str); 3] = [
    ("15-includes", "InvalidRevision"),
    ("20-motif", "MotifNotFound"),
    ("36-katalog-with-sources", "InvalidRevision"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_and_a_new_katalog_run_as_custom_resources() -> Result<()> {
    let new = TempDir::new()?;
    let made = Command::new(env!("CARGO_BIN_EXE_ork"))
        .args(["init", "frog-pond", "--dir"])
        .arg(new.path().join("frog-pond"))
        .output()?;
    ensure!(made.status.success(), "{made:?}");
    let mut all = folders()?;
    all.push(new.path().join("frog-pond"));

    // A separate cluster, because the examples share one API group.
    let mut scenario = Scenario::on_its_own("examples").await?;
    let documents = documents(&all)?;
    // The permissions of the examples are tested where they run from files.
    let admin = ClusterRole {
        metadata: ObjectMeta {
            name: Some("cluster-admin".to_owned()),
            ..ObjectMeta::default()
        },
        ..ClusterRole::default()
    };
    scenario.bind_to(&admin, scenario.identity.user()).await?;
    scenario.start().await?;
    for wanted in ["CustomResourceDefinition", "Motif", "Katalog"] {
        for document in documents.values().flatten() {
            if document["kind"] == wanted {
                scenario.apply(&serde_json::to_string(document)?)?;
            }
        }
    }
    let katalogs = scenario.objects("katalogs");
    for (folder, documents) in &documents {
        let reason = FROM_FILES_ONLY
            .iter()
            .find(|(name, _)| name == folder)
            .map_or("Running", |(_, reason)| reason);
        for katalog in documents.iter().filter(|one| one["kind"] == "Katalog") {
            let name = katalog["metadata"]["name"].as_str().context("no name")?;
            let is = |katalog: &Value| {
                condition(katalog, "Ready").is_some_and(|ready| ready["reason"] == reason)
            };
            katalogs
                .until(name, &format!("is {reason}"), LIMIT, is)
                .await
                .with_context(|| folder.clone())?;
        }
    }
    scenario.terminate()
}

/// Returns the Katalogs, Motifs and CRDs of each folder, by its name.
fn documents(folders: &[PathBuf]) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut all = BTreeMap::new();
    for folder in folders {
        let name = folder.file_name().and_then(|name| name.to_str());
        let mut documents = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                let found = read(&fs::read_to_string(&path)?);
                documents.extend(found.with_context(|| path.display().to_string())?);
            }
        }
        if documents.iter().any(declares_schema) {
            documents.extend(read(&generated_crds(folder)?)?);
        }
        all.insert(
            name.context("a folder without a name")?.to_owned(),
            documents,
        );
    }
    Ok(all)
}

fn read(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let ours = ["Katalog", "Motif", "CustomResourceDefinition"];
    let is_ours = |one: &Value| ours.iter().any(|kind| one["kind"] == *kind);
    Ok(documents.into_iter().filter(is_ours).collect())
}

/// Reports whether a Katalog has an entry whose CRD is generated.
fn declares_schema(document: &Value) -> bool {
    let entries = document["spec"]["crds"].as_object();
    entries.is_some_and(|entries| entries.values().any(|entry| entry["schema"].is_object()))
}

/// Returns the CRDs that `ork generate crd` prints for the Katalog of a folder.
fn generated_crds(folder: &Path) -> Result<String> {
    let made = Command::new(env!("CARGO_BIN_EXE_ork"))
        .args(["generate", "crd", "-f"])
        .arg(folder.join("katalog.yaml"))
        .output()?;
    ensure!(made.status.success(), "{made:?}");
    Ok(String::from_utf8(made.stdout)?)
}
