//! Custom resources whose CRD cannot hold the status that the controller writes.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

/// A CRD with a status field of at most eight characters, and a Katalog that copies a field of the resource into it.
const SHORT: [&str; 2] = [
    r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "ponds.GROUP" },
    "spec": {
        "group": "GROUP", "scope": "Namespaced",
        "names": { "kind": "Pond", "listKind": "PondList", "plural": "ponds", "singular": "pond" },
        "versions": [{
            "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "status": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": { "colour": { "type": "string", "maxLength": 8 } }
                }
            } } }
        }]
    }
}"#,
    r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": {
            "status": { "fields": [{ "path": "colour", "value": "{{ .spec.colour }}" }] },
            "onReconcile": { "configMaps": [{ "name": "{{ .metadata.name }}", "data": { "a": "b" } }] }
        }
    } } }
}"#,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_its_schema_refuses_is_the_resources_own_trouble() -> Result<()> {
    let [crd, katalog] = SHORT;
    let mut scenario = Scenario::new("short").await?;
    scenario.grant(katalog).await?;
    scenario.install(crd).await?;
    scenario.start().await?;
    scenario.apply(katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::pond(&scenario, "fine", &json!({ "colour": "green" })).await?;
    scenario.objects("ponds").until_ready("fine").await?;
    waters::pond(&scenario, "long", &json!({ "colour": "aquamarine" })).await?;
    eventually("an Event reports the reason", LIMIT, async || {
        let reported = waters::warnings(&scenario, "long").await?;
        let is_reported = reported.iter().any(|event| {
            let message = waters::text(event, "/message");
            event["reason"] == "Invalid" && message.contains("the status is not written")
        });
        Ok(is_reported.then_some(()))
    })
    .await?;
    waters::until_counted(&scenario).await?;
    let katalog = scenario.katalog_is("waters", "True", "Running").await?;
    let row = waters::row(&katalog, "pond");
    ensure!(
        row.is_some_and(|row| row["state"] == "Running" && row["reason"].is_null()),
        "{katalog}"
    );
    // A value that fits is written.
    let change = json!({ "spec": { "colour": "blue" } });
    scenario.objects("ponds").patch("long", &change).await?;
    scenario.objects("ponds").until_ready("long").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_the_crd_cannot_hold_is_no_write_loop_and_the_katalog_says_so() -> Result<()>
{
    let mut scenario = Scenario::new("status").await?;
    let katalog = input("status/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&input("status/crds.yaml")?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let kinds = [("Pond", "pond"), ("Lake", "lake"), ("Well", "well")];
    for (kind, one) in kinds {
        a_resource_gets_its_child(&scenario, kind, one).await?;
    }
    what_a_status_can_hold_is_there(&scenario).await?;
    what_a_status_cannot_hold_is_named(&scenario).await?;
    waters::ensure_no_writes(&scenario).await?;

    for (_, one) in kinds {
        a_change_costs_its_child_and_its_status(&scenario, one).await?;
    }
    scenario.check_running()
}

/// Creates a resource of a kind, and waits until it has its child.
async fn a_resource_gets_its_child(scenario: &Scenario, kind: &str, one: &str) -> Result<()> {
    let resource = waters::resource(scenario, kind, "north", &json!({ "colour": "green" }));
    scenario
        .objects(&format!("{one}s"))
        .create(&resource)
        .await?;
    scenario
        .objects("configmaps")
        .until_equal(
            &format!("north-{one}"),
            "/data/colour",
            json!("green"),
            LIMIT,
        )
        .await?;
    Ok(())
}

/// Checks that the Pond and the Lake have the part of the status that their CRD can hold.
async fn what_a_status_can_hold_is_there(scenario: &Scenario) -> Result<()> {
    let pond = scenario
        .objects("ponds")
        .until_equal("north", "/status/colour", json!("green"), LIMIT)
        .await?;
    let ready = condition(&pond, "Ready").map(|ready| ready["status"].clone());
    assert_eq!(ready, Some(json!("True")), "{}", pond["status"]);
    assert_eq!(
        pond.pointer("/status/observedGeneration"),
        None,
        "without a status subresource, every write changes the generation"
    );
    let lake = scenario
        .objects("lakes")
        .until_equal("north", "/status/colour", json!("green"), LIMIT)
        .await?;
    assert_eq!(lake["status"], json!({ "colour": "green" }));
    Ok(())
}

/// Waits until the Katalog names for each operator the status field that its CRD cannot hold.
async fn what_a_status_cannot_hold_is_named(scenario: &Scenario) -> Result<()> {
    for (operator, words) in [
        ("lake", "status.conditions"),
        ("pond", "status.observedGeneration"),
        ("well", "status.colour"),
    ] {
        let katalogs = scenario.objects("katalogs");
        eventually(
            &format!("the row of {operator} names {words}"),
            LIMIT,
            async || {
                let katalog = katalogs.fetch("waters").await?;
                let row = waters::row(&katalog, operator).cloned().unwrap_or_default();
                let reported = row["reason"] == "StatusNotWritable"
                    && waters::text(&row, "/message").contains(words);
                anyhow::ensure!(reported, "the row is {row}");
                Ok(Some(()))
            },
        )
        .await?;
    }
    Ok(())
}

/// Changes a resource, and checks that only its child and its status are written, each once; a Well has no writable status.
async fn a_change_costs_its_child_and_its_status(scenario: &Scenario, one: &str) -> Result<()> {
    let mark = Scenario::mark()?;
    scenario
        .objects(&format!("{one}s"))
        .patch("north", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    scenario
        .objects("configmaps")
        .until_equal(
            &format!("north-{one}"),
            "/data/colour",
            json!("brown"),
            LIMIT,
        )
        .await?;
    waters::until_counted(scenario).await?;
    let mut writes = scenario.writes_since(mark)?;
    writes.retain(|write| write.resource != "katalogs");
    let wanted = if one == "well" { 1 } else { 2 };
    assert_eq!(
        writes.len(),
        wanted,
        "unexpected writes after a change of the {one}:\n{}",
        waters::lines(&writes)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_status_is_to_be_written_everything_else_is_done_and_what_others_write_stays()
-> Result<()> {
    let katalog = input("status/silent.yaml")?;
    let crds = ["kinds/crds.yaml"];
    let mut scenario = Scenario::with_katalog("silent", &crds, &katalog).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    let mark = Scenario::mark()?;
    let green = json!({ "colour": "green" });
    waters::pond(&scenario, "north", &green).await?;
    maps.until_equal("north-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    // A pass that fails writes no status either.
    let foreign =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "taken-pond" } });
    maps.create(&foreign).await?;
    waters::pond(&scenario, "taken", &green).await?;
    eventually("an Event reports NameTaken", LIMIT, async || {
        let reported = waters::warnings(&scenario, "taken").await?;
        Ok(reported
            .iter()
            .any(|event| event["reason"] == "NameTaken")
            .then_some(()))
    })
    .await?;
    let by_others = json!({ "status": { "phase": "Theirs" } }).to_string();
    let ponds_of = format!("ponds.{}", scenario.group);
    let args = ["patch", &ponds_of, "north", "--subresource=status"];
    scenario.kubectl(&[&args[..], &["--type=merge", "--patch", &by_others]].concat())?;
    ponds
        .patch("north", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    maps.until_equal("north-pond", "/data/colour", json!("brown"), LIMIT)
        .await?;
    let north = ponds.fetch("north").await?;
    assert_eq!(north["status"], json!({ "phase": "Theirs" }));
    let finalizers = json!(["orkestra.orkspace.io/cleanup"]);
    assert_eq!(north["metadata"]["finalizers"], finalizers);
    waters::until_counted(&scenario).await?;
    let mut writes = scenario.writes_since(mark)?;
    writes.retain(|write| write.resource == "ponds" && write.subresource == "status");
    assert_eq!(waters::lines(&writes), "");

    // With `ignoreStatusPatch: false` the status is written, and fields of others stay. Before, the permission was missing.
    let change = katalog.replace("ignoreStatusPatch: true", "ignoreStatusPatch: false");
    scenario.grant(&change).await?;
    scenario.apply(&change)?;
    let reported = ponds.until_ready("north").await?;
    assert_eq!(reported["status"]["phase"], "Theirs");
    Ok(())
}

/// A Katalog whose children and status show the state of their operator.
const INTROSPECTION: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "resync": "0s",
        "operatorBox": {
            "status": { "fields": [{ "path": "operator", "value": "{{ .health.state }}" }] },
            "onReconcile": { "configMaps": [{ "name": "{{ .metadata.name }}", "data": {
                "workers": "{{ .metrics.workers }}", "inCluster": "{{ .ork.inCluster }}", "version": "{{ .ork.version }}"
            } }] }
        }
    } } }
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_show_the_state_of_their_operator_and_its_figures_cause_no_pass() -> Result<()> {
    let scenario =
        Scenario::with_katalog("introspection", &["kinds/crds.yaml"], INTROSPECTION).await?;
    waters::pond(&scenario, "a", &json!({})).await?;
    let ponds = scenario.objects("ponds");
    // The operator is healthy after its first pass: only the change of its state can trigger the pass that reports it.
    ponds
        .until("a", "reports a healthy operator", LIMIT, |pond| {
            pond["status"]["operator"] == "healthy"
        })
        .await?;
    let map = scenario.objects("configmaps").fetch("a").await?;
    ensure!(
        map["data"]["inCluster"] == "false" && map["data"]["version"] == env!("CARGO_PKG_VERSION"),
        "{map}"
    );
    let workers: u32 = map["data"]["workers"]
        .as_str()
        .unwrap_or_default()
        .parse()?;
    ensure!(workers > 0, "{map}");
    scenario.until_settled().await?;
    Ok(())
}
