//! Marks that a user of a kind wrote on a custom resource of their own: they silence nobody, and hold nothing.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::deletion::{CRDS, FINALIZER, finalizers};
use crate::neighbours::{Neighbours, ORCHARDS};
use crate::scenario::{LIMIT, Scenario, input};

const INVENTORY: &str = "orkestra.orkspace.io/inventory";

/// An inventory that names a kind that the operator may not read, kinds that nobody serves, and things that it never made.
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
    // Later, while it is looked after.
    orchards.patch("north", &forge()).await?;
    neighbours.ensure_followed().await?;
    orchards
        .until("north", "has its own inventory again", LIMIT, is_corrected)
        .await?;
    scenario.apply(&input("garden/orchard.yaml")?.replace("north", "south"))?;
    orchards.until_ready("south").await?;
    let requests = scenario.requests_since(mark)?;
    let foreign = |resource: &str| !["orchards", "configmaps", "katalogs"].contains(&resource);
    let asked: Vec<&str> = requests
        .iter()
        .map(|request| request.resource.as_str())
        .filter(|resource| foreign(resource))
        .collect();
    ensure!(asked.is_empty(), "it asked for {asked:?}");
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
        "a label of theirs is gone"
    );
    assert_eq!(finalizers(&north), ["example.org/theirs"]);
    Ok(())
}
