//! Conversion between versions: the example of the documentation, on a real API server.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::{
    hostile::{deep, send},
    scenario::{LIMIT, Objects},
};

pub(crate) const CRD: &str = "gateway/crons.yaml";

pub(crate) const KATALOG: &str = "
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
              count: '{{ .spec.count }}'
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { minute: '{{ .spec.schedule.minute }}' } }]
";

pub(crate) fn crons(gate: &Gate, version: &str) -> Objects {
    let (group, namespace) = (&gate.scenario.group, &gate.scenario.namespace);
    Objects::at(
        &gate.scenario.client,
        &format!("/apis/{group}/{version}/namespaces/{namespace}/crons"),
    )
}

pub(crate) fn crd(gate: &Gate) -> (Objects, String) {
    let crds = Objects::of_cluster(&gate.scenario.client, "customresourcedefinitions");
    (crds, format!("crons.{}", gate.scenario.group))
}

/// Returns the Katalog without its `conversion` field.
fn without_conversion() -> Result<String> {
    let (before, rest) = KATALOG
        .split_once("      conversion:\n")
        .context("no conversion")?;
    let (_, rest) = rest.split_once("      operatorBox:").context("no box")?;
    Ok(format!("{before}      operatorBox:{rest}"))
}

pub(crate) async fn until_converted(gate: &Gate) -> Result<()> {
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

    objects_that_are_hard_to_convert_hide_no_other(&gate).await?;

    // A client removes the CA bundle: the gateway restores it at once.
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

    // Nothing else converts while the process is stopped; after its restart both versions are served.
    gate.scenario.kill9()?;
    ensure!(old.fetch("daily").await.is_err());
    gate.scenario.start().await?;
    eventually("both versions are served", LIMIT, async || {
        Ok(old.fetch("daily").await.ok())
    })
    .await?;

    // Without the `conversion` field of the entry, the CRD declares no conversion webhook.
    gate.run(&without_conversion()?).await?;
    crds.until_equal(&name, "/spec/conversion/strategy", json!("None"), LIMIT)
        .await?;
    Ok(())
}

/// Creates two objects in the storage version: one that is deeply nested, and one that cannot be converted to the other version.
/// Checks that a list in the other version contains all objects, and that only the content of the second one is incomplete there.
async fn objects_that_are_hard_to_convert_hide_no_other(gate: &Gate) -> Result<()> {
    let scenario = &gate.scenario;
    let (group, namespace) = (&scenario.group, &scenario.namespace);
    let path = |version: &str, name: &str| {
        format!("/apis/{group}/{version}/namespaces/{namespace}/crons{name}")
    };
    let cron = |name: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"{group}/v2","kind":"Cron","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
        )
    };
    let schedule =
        r#""schedule":{"minute":"1","hour":"2","dayOfMonth":"*","month":"*","dayOfWeek":"*"}"#;
    let (notes, broken) = (deep(9_000), r#"{"count":"many","keep":"me"}"#);
    for (name, spec) in [
        ("deep", format!(r#"{{{schedule},"notes":{notes}}}"#)),
        ("broken", broken.to_owned()),
    ] {
        let created = send(scenario, "POST", path("v2", ""), cron(name, &spec)).await?;
        ensure!(created, "{name} was not created");
    }
    let get = http::Request::get(path("v1", "")).body(Vec::new())?;
    let list = scenario.client.request_text(get).await?;
    for part in [
        r#""name":"daily""#,
        r#""schedule":"1 2 * * *""#,
        &notes,
        "orkestra.orkspace.io/conversion-failed",
    ] {
        ensure!(list.contains(part), "no {part:.60} in {list:.4000}");
    }

    ensure_both_are_usable(gate).await
}

/// Checks that the objects of [`objects_that_are_hard_to_convert_hide_no_other`] can be changed and deleted.
async fn ensure_both_are_usable(gate: &Gate) -> Result<()> {
    let scenario = &gate.scenario;
    let (group, namespace) = (&scenario.group, &scenario.namespace);
    let path = |version: &str, name: &str| {
        format!("/apis/{group}/{version}/namespaces/{namespace}/crons{name}")
    };
    // The deeply nested object can be changed in either version, the other one only in v2, where it is complete.
    let label = r#"{"metadata":{"labels":{"touched":"yes"}}}"#;
    for (version, name, accepted) in [
        ("v1", "/deep", true),
        ("v1", "/broken", false),
        ("v2", "/broken", true),
    ] {
        let request = http::Request::patch(path(version, name))
            .header("content-type", "application/merge-patch+json")
            .body(label.into())?;
        let patched = scenario.client.request_text(request).await;
        ensure!(
            patched.is_ok() == accepted,
            "{version}{name}: {patched:.300?}"
        );
        if let Err(error) = patched {
            ensure!(error.to_string().contains("change it in v2"), "{error}");
        }
    }
    let left = crons(gate, "v2").fetch("broken").await?;
    ensure!(
        left["spec"]["keep"] == "me" && !left.to_string().contains("conversion-failed"),
        "{left}"
    );
    for name in ["/deep", "/broken"] {
        let request = http::Request::delete(path("v2", name)).body(Vec::new())?;
        scenario.client.request_text(request).await?;
    }
    Ok(())
}

/// Returns the path of the administrator's kubeconfig.
fn admin(gate: &Gate) -> String {
    let kubeconfig = gate.scenario.cluster.admin();
    kubeconfig.kubeconfig_path().to_string_lossy().into_owned()
}

/// Makes v1 the storage version, creates objects, and restores v2. Then `status.storedVersions` has both versions: the API server
/// keeps a version in that list until a client removes it.
async fn store_in_both(gate: &Gate, names: &[&str]) -> Result<()> {
    let (crds, name) = crd(gate);
    let versions = crds.fetch(&name).await?["spec"]["versions"].clone();
    let mut before = versions.clone();
    before[0]["storage"] = json!(true);
    before[1]["storage"] = json!(false);
    let patched = json!({ "spec": { "versions": before } });
    crds.patch(&name, &patched).await?;
    let old = crons(gate, "v1");
    for name in names {
        let cron = json!({
            "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
            "metadata": { "name": name }, "spec": { "schedule": "0 0 * * *" },
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
    Ok(())
}

/// Checks that an object that is stored as v1 can be read in both versions.
async fn ensure_both_are_read(gate: &Gate, name: &str) -> Result<()> {
    let new = crons(gate, "v2").fetch(name).await?;
    ensure!(new["spec"]["schedule"]["minute"] == "0", "{new}");
    let old = crons(gate, "v1").fetch(name).await?;
    ensure!(old["spec"]["schedule"] == "0 0 * * *", "{old}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_is_kept_survives_a_restart_and_its_katalog() -> Result<()> {
    let mut gate = Gate::start("gatekept", &[CRD], KATALOG).await?;
    gate.run(KATALOG).await?;
    until_converted(&gate).await?;
    store_in_both(&gate, &["c0", "c1"]).await?;
    let (crds, name) = crd(&gate);
    let record = "/metadata/annotations/orkestra.orkspace.io~1served-conversion";
    let recorded = crds.fetch(&name).await?.pointer(record).cloned();
    let recorded = recorded.context("no conversion is recorded")?;

    // The Katalog is deleted and the only process is killed: only the annotation of the CRD still describes the conversion.
    let katalogs = gate.scenario.objects("katalogs");
    katalogs.delete("crons").await?;
    katalogs.until_gone("crons", LIMIT).await?;
    // Without an operator, no client rewrites these objects: they stay stored as v1.
    store_in_both(&gate, &["late", "later"]).await?;
    gate.scenario.kill9()?;
    for name in ["c0", "late"] {
        // Reads in the storage version need no webhook, and the API server changes that version a moment after the CRD.
        let (old, new) = (crons(&gate, "v1"), crons(&gate, "v2"));
        let fails = old.fetch(name).await.is_err() || new.fetch(name).await.is_err();
        ensure!(fails, "{name} was converted without a webhook");
    }
    gate.scenario.start().await?;
    for name in ["c0", "late"] {
        ensure_both_are_read(&gate, name).await?;
    }
    gate.until_configured().await?;
    for name in ["c1", "later"] {
        ensure_both_are_read(&gate, name).await?;
    }

    // A client removes the annotation: the gateway restores it.
    let removed = json!({ "metadata": { "annotations": { "orkestra.orkspace.io/served-conversion": null } } });
    crds.patch(&name, &removed).await?;
    crds.until_equal(&name, record, recorded, LIMIT).await?;
    ensure_both_are_read(&gate, "late").await?;

    // After another restart and a migration, no stored object needs the conversion.
    gate.scenario.terminate()?;
    gate.scenario.start().await?;
    let storage = ["migrate", "storage", &name, "--kubeconfig", &admin(&gate)];
    let said = gate.scenario.ork(&storage)?;
    ensure!(said.contains("4 objects"), "{said}");
    crds.until_equal(&name, "/spec/conversion/strategy", json!("None"), LIMIT)
        .await?;
    let left = crds.fetch(&name).await?;
    ensure!(left.pointer(record).is_none(), "{left}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_stored_objects_need_is_kept_until_they_are_migrated() -> Result<()> {
    let gate = Gate::start("gatemigr", &[CRD], KATALOG).await?;
    gate.run(KATALOG).await?;
    until_converted(&gate).await?;
    store_in_both(&gate, &["c0", "c1", "c2", "c3", "c4"]).await?;
    let (crds, name) = crd(&gate);
    // The entry loses its `conversion`: the author is warned, and the webhook stays. Otherwise v1 objects would be read as v2.
    let said = gate.accepted(&without_conversion()?)?;
    let remedy = format!("run `ork migrate storage {name}`");
    ensure!(said.contains(&remedy), "{said}");
    an_event_names_the_remedy(&gate, &name, &remedy).await?;
    let kept = crds.fetch(&name).await?;
    ensure!(
        kept["spec"]["conversion"]["strategy"] == "Webhook",
        "{kept}"
    );
    let read = crons(&gate, "v2").fetch("c0").await?;
    ensure!(read["spec"]["schedule"]["minute"] == "0", "{read}");
    let admin = admin(&gate);
    let said = gate
        .scenario
        .ork(&["migrate", "storage", "cron", "--kubeconfig", &admin]);
    // CRDs of other scenarios may have the same kind: then the command needs the full name.
    let said = match said {
        Ok(said) => said,
        Err(_) => gate
            .scenario
            .ork(&["migrate", "storage", &name, "--kubeconfig", &admin])?,
    };
    ensure!(said.contains("5 objects"), "{said}");
    let stored = crds.fetch(&name).await?["status"]["storedVersions"].clone();
    ensure!(stored == json!(["v2"]), "{stored}");
    // No stored object needs the conversion any more.
    crds.until_equal(&name, "/spec/conversion/strategy", json!("None"), LIMIT)
        .await?;
    // A second migration, which starts after the last object, finds no object.
    let from = format!("--from={}/c9", gate.scenario.namespace);
    let said = gate
        .scenario
        .ork(&["migrate", "storage", &name, &from, "--kubeconfig", &admin])?;
    ensure!(said.contains("0 objects"), "{said}");
    Ok(())
}

/// Waits until an Event reports that the conversion of a CRD is kept, and checks that it names the command to run.
async fn an_event_names_the_remedy(gate: &Gate, definition: &str, remedy: &str) -> Result<()> {
    let events = Objects::at(
        &gate.scenario.client,
        "/apis/events.k8s.io/v1/namespaces/default/events",
    );
    eventually("an Event reports it", LIMIT, async || {
        let found = events.list().await?;
        let is_it = |event: &&Value| {
            event["reason"] == "ConversionKept" && event["regarding"]["name"] == *definition
        };
        Ok(found
            .iter()
            .find(is_it)
            .map(|event| event["note"].to_string()))
    })
    .await
    .and_then(|note| {
        ensure!(note.contains(remedy), "{note}");
        Ok(())
    })
}
