//! Conversion between versions: the sample of the language on the genuine API server.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::scenario::{LIMIT, Objects};

const CRD: &str = "gateway/crons.yaml";

const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: crons }
spec:
  security: { conversion: { enabled: true } }
  crds:
    cron:
      apiTypes: { group: GROUP, version: v2, kind: Cron, plural: crons }
      conversion:
        storageVersion: v2
        paths:
          - from: v1
            to: v2
            spec:
              schedule: '{{ cronToMap .spec.schedule }}'
          - from: v2
            to: v1
            spec:
              schedule: '{{ cronFromMap .spec.schedule }}'
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { minute: '{{ .spec.schedule.minute }}' } }]
";

fn crons(gate: &Gate, version: &str) -> Objects {
    let (group, namespace) = (&gate.scenario.group, &gate.scenario.namespace);
    Objects::at(
        &gate.scenario.client,
        &format!("/apis/{group}/{version}/namespaces/{namespace}/crons"),
    )
}

fn crd(gate: &Gate) -> (Objects, String) {
    let crds = Objects::of_cluster(&gate.scenario.client, "customresourcedefinitions");
    (crds, format!("crons.{}", gate.scenario.group))
}

async fn until_converted(gate: &Gate) -> Result<()> {
    let (crds, name) = crd(gate);
    crds.until_equal(&name, "/spec/conversion/strategy", json!("Webhook"), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn the_sample_of_conversion_serves_both_versions_and_goes_with_its_entry()
-> Result<()> {
    let mut gate = Gate::start("gateconv", &[CRD], KATALOG).await?;
    gate.run(KATALOG).await?;
    until_converted(&gate).await?;
    let (old, new) = (crons(&gate, "v1"), crons(&gate, "v2"));
    let cron = |spec: Value| json!({ "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron", "metadata": { "name": "daily" }, "spec": spec });
    let written = cron(json!({ "schedule": "5 4 * * 1", "keep": "me" }));
    eventually("a resource is written in v1", LIMIT, async || {
        Ok(old.create(&written).await.ok())
    })
    .await?;
    let as_new = new.fetch("daily").await?;
    ensure!(
        as_new["spec"]["schedule"]["minute"] == "5" && as_new["spec"]["keep"] == "me",
        "{as_new}"
    );
    let as_old = old.fetch("daily").await?;
    ensure!(as_old["spec"] == written["spec"], "{as_old}");
    // The operator reads v2.
    let made = gate.scenario.objects("configmaps");
    made.until_equal("daily", "/data/minute", json!("5"), LIMIT)
        .await?;

    // Who strips the bundle gets it back at once.
    let (crds, name) = crd(&gate);
    let bundle = "/spec/conversion/webhook/clientConfig/caBundle";
    let before = crds.fetch(&name).await?;
    let authority = before.pointer(bundle).cloned().context("no bundle")?;
    crds.patch(&name, &json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": null } } } } })).await?;
    crds.until_equal(&name, bundle, authority, LIMIT).await?;
    eventually("both versions are served again", LIMIT, async || {
        Ok(old.fetch("daily").await.ok())
    })
    .await?;

    // Nothing else converts while the process is away; when it is back, both are served.
    gate.scenario.kill9()?;
    ensure!(old.fetch("daily").await.is_err());
    gate.scenario.start().await?;
    eventually("both versions are served", LIMIT, async || {
        Ok(old.fetch("daily").await.ok())
    })
    .await?;

    // Without the declaration, the definition converts no more.
    let plain: Vec<&str> = KATALOG.split("      conversion:\n").collect();
    let (_, rest) = plain[1]
        .split_once("      operatorBox:")
        .context("no box")?;
    gate.run(&format!("{}      operatorBox:{rest}", plain[0]))
        .await?;
    crds.until_equal(&name, "/spec/conversion/strategy", json!("None"), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_objects_migrate_to_the_storage_version() -> Result<()> {
    let gate = Gate::start("gatemigr", &[CRD], KATALOG).await?;
    gate.run(KATALOG).await?;
    until_converted(&gate).await?;
    let (crds, name) = crd(&gate);
    let versions = crds.fetch(&name).await?["spec"]["versions"].clone();
    // As if v1 had been the storage version before: the API server keeps a version in the list until it is pruned.
    let mut before = versions.clone();
    before[0]["storage"] = json!(true);
    before[1]["storage"] = json!(false);
    let patched = json!({ "spec": { "versions": before } });
    crds.patch(&name, &patched).await?;
    let old = crons(&gate, "v1");
    for serial in 0..5 {
        let cron = json!({
            "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
            "metadata": { "name": format!("c{serial}") }, "spec": { "schedule": "0 0 * * *" },
        });
        eventually("a resource is written", LIMIT, async || {
            Ok(old.create(&cron).await.ok())
        })
        .await?;
    }
    crds.patch(&name, &json!({ "spec": { "versions": versions } }))
        .await?;
    let is_both = |crd: &Value| {
        crd["status"]["storedVersions"]
            .as_array()
            .is_some_and(|all| all.len() == 2)
    };
    crds.until(&name, "has two stored versions", LIMIT, is_both)
        .await?;
    let kubeconfig = gate.scenario.cluster.admin();
    let admin = kubeconfig.kubeconfig_path().to_string_lossy().into_owned();
    let said = gate
        .scenario
        .ork(&["migrate", "storage", "cron", "--kubeconfig", &admin]);
    // Other scenarios may have the same kind: then its full name is needed.
    let said = match said {
        Ok(said) => said,
        Err(_) => gate
            .scenario
            .ork(&["migrate", "storage", &name, "--kubeconfig", &admin])?,
    };
    ensure!(said.contains("5 objects"), "{said}");
    let stored = crds.fetch(&name).await?["status"]["storedVersions"].clone();
    ensure!(stored == json!(["v2"]), "{stored}");
    // A second one, after the last object, has nothing to do.
    let from = format!("--from={}/c9", gate.scenario.namespace);
    let said = gate
        .scenario
        .ork(&["migrate", "storage", &name, &from, "--kubeconfig", &admin])?;
    ensure!(said.contains("0 objects"), "{said}");
    Ok(())
}
