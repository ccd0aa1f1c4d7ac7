//! Forged marks: an inventory or child that a user forges stops no operator, blocks no deletion and degrades no operator.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{eventually, namespace};

use crate::deletion::{CRDS, FINALIZER, finalizers};
use crate::neighbours::{Neighbours, ORCHARDS};
use crate::rights::Case;
use crate::scenario::{LIMIT, Scenario, condition, input};

const INVENTORY: &str = "orkestra.orkspace.io/inventory";

/// Returns an inventory with a kind that the operator may not read, unserved kinds, and objects that it did not create.
fn forged() -> String {
    let invented: Vec<String> = (0..3000)
        .map(|n| format!("Kind{n}.invented.example"))
        .collect();
    format!(
        "Secret,Never.example.org,!Secret=shop/db,~Job.batch=shop/drain,@app,+example.org/theirs,{}",
        invented.join(",")
    )
}

fn inventory(object: &Value) -> &str {
    object["metadata"]["annotations"][INVENTORY]
        .as_str()
        .unwrap_or_default()
}

fn forge() -> Value {
    json!({ "metadata": { "annotations": { INVENTORY: forged() } } })
}

async fn with_katalog(prefix: &str) -> Result<Scenario> {
    Scenario::running(prefix, &CRDS, "garden/katalog.yaml").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_inventory_is_reported_ignored_and_corrected() -> Result<()> {
    let scenario = with_katalog("forged").await?;
    let mut neighbours = Neighbours::settle(&scenario, ORCHARDS).await?;
    let orchards = scenario.objects("orchards");
    let mark = Scenario::mark()?;
    let mut north: Value = serde_saphyr::from_str(&scenario.text(&input("garden/orchard.yaml")?))?;
    north["metadata"]["annotations"] = json!({ INVENTORY: forged() });
    orchards.create(&north).await?;
    neighbours.ensure_followed().await?;
    let is_corrected = |orchard: &Value| inventory(orchard) == "ConfigMap";
    orchards
        .until("north", "has its own inventory", LIMIT, is_corrected)
        .await?;
    orchards.until_ready("north").await?;
    let notes = eventually("an event reports it", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let reported = events
            .into_iter()
            .filter(|event| event["reason"] == "InventoryIgnored");
        let notes: Vec<Value> = reported.map(|event| event["note"].clone()).collect();
        let notes: Vec<Value> = match notes.as_slice() {
            [] => return Ok(None),
            _ => notes,
        };
        Ok(Some(notes))
    })
    .await?;
    ensure!(notes.len() == 1, "it is reported more than once: {notes:?}");
    // Forge it again, on an orchard that is already reconciled.
    orchards.patch("north", &forge()).await?;
    neighbours.ensure_followed().await?;
    orchards
        .until("north", "has its own inventory again", LIMIT, is_corrected)
        .await?;
    scenario.apply(&input("garden/orchard.yaml")?.replace("north", "south"))?;
    orchards.until_ready("south").await?;
    scenario.until_idle().await?;
    let requests = scenario.requests_since(mark)?;
    let foreign = |resource: &str| !["orchards", "configmaps", "katalogs"].contains(&resource);
    let asked: Vec<&str> = requests
        .iter()
        .map(|request| request.resource.as_str())
        .filter(|resource| foreign(resource))
        .collect();
    ensure!(asked.is_empty(), "it requested {asked:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_with_a_forged_inventory_can_be_deleted() -> Result<()> {
    let mut scenario = with_katalog("forgeddel").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    let orchards = scenario.objects("orchards");
    orchards.until_ready("north").await?;
    scenario.kill9()?;
    orchards.patch("north", &forge()).await?;
    orchards.delete("north").await?;
    let north = orchards.fetch("north").await?;
    ensure!(inventory(&north).contains("Secret"), "it is not forged");
    scenario.start().await?;
    orchards.until_gone("north", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_is_released_though_a_resource_has_a_forged_inventory() -> Result<()> {
    let mut scenario = with_katalog("forgedkat").await?;
    let mut north: Value = serde_saphyr::from_str(&scenario.text(&input("garden/orchard.yaml")?))?;
    north["metadata"]["labels"] = json!({ "app": "theirs" });
    let orchards = scenario.objects("orchards");
    orchards.create(&north).await?;
    orchards.until_ready("north").await?;
    scenario.kill9()?;
    let mut forgery = forge();
    let held: Vec<Value> = vec![json!(FINALIZER), json!("example.org/theirs")];
    forgery["metadata"]["finalizers"] = json!(held);
    orchards.patch("north", &forgery).await?;
    let katalogs = scenario.objects("katalogs");
    katalogs.delete("garden").await?;
    katalogs.fetch("garden").await?;
    scenario.start().await?;
    katalogs.until_gone("garden", LIMIT).await?;
    let north = orchards.fetch("north").await?;
    let labels = north["metadata"]["labels"]
        .as_object()
        .context("no labels")?;
    assert_eq!(
        labels.get("app"),
        Some(&json!("theirs")),
        "the user's label is gone"
    );
    assert_eq!(finalizers(&north), ["example.org/theirs"]);
    Ok(())
}

/// Applies a `ConfigMap` with all marks of a child of the orchard, including the field manager, and with a finalizer.
fn forge_child(scenario: &Scenario, namespace: &str, orchard: &Value) -> Result<()> {
    let labels = json!({
        "orkestra.orkspace.io/managed": "true",
        "orkestra.orkspace.io/owner-uid": orchard["metadata"]["uid"],
    });
    let forged = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "forged", "namespace": namespace, "labels": labels,
            "annotations": { "orkestra.orkspace.io/child": "ConfigMap/forged" },
            "finalizers": ["example.org/hold"],
        },
        "data": { "fruit": "sloe" },
    });
    let manager = format!("--field-manager=orkestra/orchards.{}", scenario.group);
    let args = [
        "apply",
        "--server-side",
        &manager,
        "--namespace",
        namespace,
        "-f",
        "-",
    ];
    scenario
        .kubectl_with(&args, Some(&forged.to_string()))
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_in_a_namespace_where_no_children_are_permitted_is_ignored_and_reported()
-> Result<()> {
    let mut scenario = with_katalog("forgedchild").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    let orchards = scenario.objects("orchards");
    let north = orchards.until_ready("north").await?;
    let elsewhere = namespace(&scenario.client, "elsewhere").await?;
    forge_child(&scenario, &elsewhere, &north)?;
    orchards
        .patch("north", &json!({ "spec": { "fruit": "medlar" } }))
        .await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("north-basket", "/data/fruit", json!("medlar"), LIMIT)
        .await?;
    eventually("an event reports it", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let is_reported = |event: &Value| event["reason"] == "ChildIgnored";
        Ok(events.iter().any(is_reported).then_some(()))
    })
    .await?;
    let there = scenario.objects_in(&elsewhere, "configmaps");
    let is_left = async || -> Result<()> {
        let forged = there.fetch("forged").await?;
        ensure!(
            forged["metadata"].get("deletionTimestamp").is_none(),
            "{forged}"
        );
        Ok(())
    };
    is_left().await?;
    // The deletion of its orchard does not wait for it.
    orchards.delete("north").await?;
    orchards.until_gone("north", LIMIT).await?;
    is_left().await?;
    let free = json!({ "metadata": { "finalizers": null } });
    there.patch("forged", &free).await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_in_a_namespace_that_only_an_earlier_revision_permits_is_still_deleted()
-> Result<()> {
    let mut scenario = Scenario::new("earlier").await?;
    let elsewhere = namespace(&scenario.client, "elsewhere").await?;
    let katalog = input("garden/katalog.yaml")?;
    let ladder = "            - name: \"{{ .metadata.name }}-ladder\"\n";
    let there = format!("{ladder}              namespace: {elsewhere}\n");
    let earlier = katalog.replace(ladder, &there);
    ensure!(earlier != katalog, "{katalog}");
    scenario.grant(&earlier).await?;
    scenario.start().await?;
    for crd in CRDS {
        scenario.install(&input(crd)?).await?;
    }
    scenario.apply(&earlier)?;
    scenario.katalog_is("garden", "True", "Running").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    scenario.objects("orchards").until_ready("north").await?;
    let there = scenario.objects_in(&elsewhere, "configmaps");
    there.fetch("north-ladder").await?;
    // After a restart, only the status of the Katalog shows in which namespaces children may exist.
    scenario.kill9()?;
    scenario.apply(&katalog)?;
    scenario.start().await?;
    let own = scenario.objects("configmaps");
    own.until("north-ladder", "is created", LIMIT, |_| true)
        .await?;
    there.until_gone("north-ladder", LIMIT).await?;
    let garden = scenario.objects("katalogs").fetch("garden").await?;
    let operated = garden["status"]["operated"]
        .as_array()
        .context("no kinds")?;
    let orchard = operated.iter().find(|kind| kind["kind"] == "Orchard");
    let targets = orchard.map(|orchard| &orchard["childTargets"]);
    assert_eq!(targets, Some(&json!({ "ConfigMap": [elsewhere] })));
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_that_names_a_kind_of_an_earlier_revision_makes_no_operator_less_healthy()
-> Result<()> {
    let mut case = Case::new().await?;
    let scenario = &case.scenario;
    let declared = input("rights/katalog.yaml")?;
    let secrets = "          secrets:\n            - name: \"{{ .metadata.name }}-pond\"\n              data: { colour: \"{{ .spec.colour }}\" }\n";
    let without = declared.replace(secrets, "");
    ensure!(without != declared, "{declared}");
    scenario.apply(&without)?;
    scenario
        .objects("secrets")
        .until_gone("north-pond", LIMIT)
        .await?;
    for role in case.without(&[("", "secrets")])?.0 {
        scenario.put_role(&role).await?;
    }
    scenario
        .wait_for_right("list", "", "secrets", false)
        .await?;
    let forgery = json!({ "metadata": { "annotations": { INVENTORY: "Deployment.apps,Secret" } } });
    scenario.objects("ponds").patch("north", &forgery).await?;
    let row = |katalog: &Value| {
        let rows = katalog["status"]["operators"].as_array()?;
        rows.iter().find(|row| row["name"] == "pond").cloned()
    };
    let is_remarked = |katalog: &Value| {
        let row = row(katalog).unwrap_or_default();
        row["message"].as_str().is_some_and(|text| {
            text.starts_with("children of kind Secret, which only an earlier revision declares")
        })
    };
    let waters = scenario
        .objects("katalogs")
        .until("waters", "reports Secrets", LIMIT, is_remarked)
        .await?;
    let row = row(&waters).unwrap_or_default();
    assert_eq!(
        (&row["state"], &row["reason"]),
        (&json!("Running"), &Value::Null)
    );
    let ready = condition(&waters, "Ready").context("no condition")?;
    assert_eq!(ready["status"], "True", "{ready}");
    let page = scenario.http("/katalog/pond/health").await?;
    ensure!(
        page.starts_with("HTTP/1.1 200") && page.contains("\"state\":\"healthy\""),
        "{page}"
    );
    case.scenario.check_running()
}
