//! `ork support-bundle` on a real control plane: the contents of the bundle, secrets that it must not contain, and reports of
//! missing permissions.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{Scenario, printed};
use crate::waters;

/// Text that a bundle must never contain.
const MARKER: &str = "hunter2-marker";

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": { "onReconcile": {
            "configMaps": [{ "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }],
            "secrets": [{ "name": "{{ .metadata.name }}-key", "data": { "password": "hunter2-marker" } }]
        } }
    } } }
}"#;

/// Returns the files of an archive by their path below its folder.
fn unpacked(archive: &Path) -> Result<BTreeMap<String, String>> {
    let folder = tempfile::tempdir()?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(folder.path());
    printed(&tar.output()?, "tar")?;
    let root = folder.path().join("bundle");
    let mut files = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root)?.display().to_string();
                files.insert(name, fs::read_to_string(&path)?);
            }
        }
    }
    Ok(files)
}

fn json_of(files: &BTreeMap<String, String>, path: &str) -> Result<Value> {
    let text = files
        .get(path)
        .with_context(|| format!("{path} is not among {:?}", files.keys()))?;
    Ok(serde_json::from_str(text)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_describes_the_installation_without_a_secret_and_names_missing_permissions()
-> Result<()> {
    let scenario = Scenario::with_katalog("bundle", &["kinds/crds.yaml"], KATALOG).await?;
    waters::pond(&scenario, "deep", &json!({ "depth": MARKER })).await?;
    scenario.objects("ponds").until_ready("deep").await?;
    let archive = scenario.path("bundle.tar.gz");
    let path = archive.to_str().context("the path is not text")?;
    let space = scenario.namespace.as_str();
    let args = [
        "support-bundle",
        "--output",
        path,
        "--namespace",
        space,
        "--runtime",
        &scenario.listen,
    ];
    let admin = scenario.cluster.admin();
    printed(&scenario.command_as(&admin).args(args).output()?, "ork")?;

    let files = unpacked(&archive)?;
    no_file_has_the_secret(&files)?;
    let versions = json_of(&files, "versions.json")?;
    ensure!(
        versions["ork"] == env!("CARGO_PKG_VERSION")
            && versions["kubernetes"]["gitVersion"].is_string(),
        "{versions}"
    );
    the_katalog_and_its_kind_are_described(&files, &scenario)?;
    events_are_those_of_the_controller(&files)?;
    ensure!(files["runtime/metrics.txt"].contains("orkestra_reconcile_total"));
    ensure!(files.contains_key("runtime/katalog.json"));
    ensure!(
        files.keys().any(|path| path.starts_with("leases/")),
        "{:?}",
        files.keys()
    );
    let summary = json_of(&files, "summary.json")?;
    let listed = summary["files"].as_array().map_or(0, Vec::len);
    assert_eq!(listed, files.len() - 1, "{summary}");

    // An existing file is not overwritten.
    let again = scenario.command_as(&admin).args(args).output()?;
    assert_eq!(again.status.code(), Some(1));
    Ok(())
}

/// Checks that no file contains the secret, as text or in base64, or managed fields.
fn no_file_has_the_secret(files: &BTreeMap<String, String>) -> Result<()> {
    for (path, text) in files {
        ensure!(!text.contains(MARKER), "{path} contains the secret");
        ensure!(
            !text.contains("aHVudGVyMi1tYXJrZXI"),
            "{path} contains the secret in base64"
        );
        ensure!(!text.contains("managedFields"), "{path} has managed fields");
    }
    Ok(())
}

/// Checks that the bundle contains the whole Katalog, its resources without their specs, and its CRD without schemas.
fn the_katalog_and_its_kind_are_described(
    files: &BTreeMap<String, String>,
    scenario: &Scenario,
) -> Result<()> {
    let space = scenario.namespace.as_str();
    let katalog = json_of(files, &format!("katalogs/{space}_waters.json"))?;
    ensure!(
        katalog["status"]["operators"][0]["state"] == "Running",
        "{katalog}"
    );
    ensure!(
        katalog.to_string().contains("{{ .spec.depth }}"),
        "{katalog}"
    );
    let ponds = json_of(files, &format!("instances/ponds.{}.json", scenario.group))?;
    ensure!(
        ponds[0]["status"]["conditions"][0]["type"] == "Ready",
        "{ponds}"
    );
    ensure!(ponds[0].get("spec").is_none(), "{ponds}");
    let crd = json_of(files, &format!("crds/ponds.{}.json", scenario.group))?;
    ensure!(crd["spec"]["versions"][0]["name"] == "v1alpha1", "{crd}");
    ensure!(crd["spec"]["versions"][0].get("schema").is_none(), "{crd}");
    Ok(())
}

/// Checks that the bundle contains only Events of the controller, and that one of them is about the pond.
fn events_are_those_of_the_controller(files: &BTreeMap<String, String>) -> Result<()> {
    let events = json_of(files, "events.json")?;
    let about = events.as_array().into_iter().flatten();
    ensure!(
        about
            .clone()
            .any(|event| event["regarding"]["name"] == "deep"),
        "{events}"
    );
    ensure!(
        about
            .clone()
            .all(|event| event["reportingController"] == "orkestra"),
        "{events}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permissions_a_bundle_says_which_are_missing_and_is_bounded() -> Result<()> {
    let scenario = Scenario::new("bundle-none").await?;
    let archive = scenario.path("bundle.tar.gz");
    let path = archive.to_str().context("the path is not text")?;
    scenario.ork(&["support-bundle", "--output", path, "--max-size", "1"])?;
    let files = unpacked(&archive)?;
    let summary = json_of(&files, "summary.json")?;
    let missing = summary["missing"].as_array().context("no list")?;
    for part in ["list katalogs", "list events", "list pods", "list leases"] {
        let note = missing
            .iter()
            .find(|note| waters::text(note, "/what").starts_with(part));
        let why = note.map(|note| waters::text(note, "/why"));
        let why = why.with_context(|| format!("{part}: {summary}"))?;
        ensure!(
            why.contains("missing permission") && why.contains("forbidden"),
            "{why}"
        );
    }
    Ok(())
}
