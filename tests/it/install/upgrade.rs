//! An upgrade while custom resources change.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::site::{Site, definitions};
use crate::scenario::{LIMIT, input, printed};

const GROUP: &str = "waters.example.org";
const CHANGED: usize = 40;
const STILL: usize = 40;

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "waters", "namespace": "default" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "waters.example.org", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": { "onReconcile": { "configMaps": [
            { "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }
        ] } }
    } } }
}"#;

/// The CRDs of Orkestra as an earlier version wrote them: with its annotations and without their columns.
fn earlier(crds: &str) -> Result<String> {
    let mut stream = String::new();
    for mut definition in serde_saphyr::from_multiple::<Value>(crds)? {
        definition["metadata"]["annotations"] = json!({
            "orkestra.orkspace.io/version": "0.0.1",
            "orkestra.orkspace.io/schema": "earlier",
        });
        if let Some(version) = definition["spec"]["versions"][0].as_object_mut() {
            version.remove("additionalPrinterColumns");
        }
        writeln!(stream, "---\n{definition}")?;
    }
    Ok(stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_of_the_crds_loses_no_change_and_rewrites_no_child() -> Result<()> {
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
    let older = site.refused(&["version", "--cluster"])?;
    ensure!(
        older.contains("is older: it was written by version 0.0.1"),
        "{older}"
    );
    let katalog = site.file("katalog.yaml", KATALOG)?;
    let folder = site
        .cluster
        .folder()
        .to_str()
        .map(str::to_owned)
        .unwrap_or_default();
    site.grant(&folder)?;
    site.kubectl(
        &["apply", "-f", "-"],
        Some(&input("kinds/crds.yaml")?.replace("GROUP", GROUP)),
    )?;
    site.launch().await?;
    site.kubectl(&["apply", "-f", &katalog], None)?;
    site.kubectl(
        &[
            "wait",
            "--for=condition=Ready",
            "katalog/waters",
            "--timeout=60s",
        ],
        None,
    )?;
    let ponds = site.objects_at(&format!("/apis/{GROUP}/v1alpha1/namespaces/default/ponds"));
    let maps = site.objects_at("/api/v1/namespaces/default/configmaps");
    let changed: Vec<String> = (0..CHANGED)
        .map(|number| format!("changed-{number}"))
        .collect();
    let still: Vec<String> = (0..STILL).map(|number| format!("still-{number}")).collect();
    for name in changed.iter().chain(&still) {
        let pond = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Pond", "metadata": { "name": name }, "spec": { "depth": 0 } });
        ponds.create(&pond).await?;
    }
    for name in changed.iter().chain(&still) {
        maps.until_equal(name, "/data/depth", json!("0"), LIMIT)
            .await?;
    }

    let mark = site.cluster.mark()?;
    let mut install = Site::command(&site.cluster.admin(), &["install"]);
    let upgrade = tokio::task::spawn_blocking(move || install.output());
    let mut round = 0;
    // Changes before, during and after the upgrade.
    let mut rounds_after = 0;
    while rounds_after < 3 {
        round += 1;
        rounds_after += usize::from(upgrade.is_finished());
        for name in &changed {
            ponds
                .patch(name, &json!({ "spec": { "depth": round } }))
                .await?;
        }
    }
    let said = printed(&upgrade.await??, "ork")?;
    for name in definitions() {
        ensure!(
            said.contains(&format!("CustomResourceDefinition {name} configured")),
            "{said}"
        );
    }
    site.ork(&["version", "--cluster"])?;
    for name in &changed {
        maps.until_equal(name, "/data/depth", json!(round.to_string()), LIMIT)
            .await?;
    }
    for name in &still {
        assert_eq!(maps.fetch(name).await?["data"]["depth"], "0");
    }
    let writes = site
        .cluster
        .audit_since(mark)?
        .into_iter()
        .filter(|event| event.is_write() && still.contains(&event.name));
    let writes: Vec<_> = writes.collect();
    ensure!(writes.is_empty(), "{writes:?}");
    let katalogs = site.objects_at("/apis/orkestra.orkspace.io/v1/namespaces/default/katalogs");
    let ready = katalogs
        .until("waters", "is ready", LIMIT, crate::scenario::is_ready)
        .await?;
    ensure!(
        ready["status"]["observedGeneration"] == ready["metadata"]["generation"],
        "{ready}"
    );
    site.stop()
}
