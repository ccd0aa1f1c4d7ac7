//! Several operators in one process: a change or removal of one does not affect the others.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Metrics, Scenario, input};

const CRDS: [&str; 2] = ["garden/orchard-crd.yaml", "garden/pond-crd.yaml"];
const FINALIZER: &str = "orkestra.orkspace.io/cleanup";
const MANAGED: &str = "orkestra.orkspace.io/managed";

/// Starts two operators, and creates an orchard and a pond. Returns when both are ready and counted.
async fn garden(prefix: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &CRDS, "garden/katalog.yaml").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    scenario.apply(&input("garden/pond.yaml")?)?;
    scenario.objects("orchards").until_ready("north").await?;
    scenario.objects("ponds").until_ready("east").await?;
    let reported = json!({ "instances": 1, "ready": 1 });
    for operator in ["orchard", "pond"] {
        scenario
            .operator_reports("garden", operator, &reported)
            .await?;
    }
    Ok(scenario)
}

/// Returns the Katalog with a text replaced by another.
fn edited(from: &str, to: &str) -> Result<String> {
    let katalog = input("garden/katalog.yaml")?;
    ensure!(katalog.contains(from), "the Katalog has no {from:?}");
    Ok(katalog.replace(from, to))
}

/// Returns the Katalog without the entry `pond`.
fn without_pond() -> Result<String> {
    let katalog = input("garden/katalog.yaml")?;
    let end = katalog.find("    pond:\n").unwrap_or(katalog.len());
    Ok(katalog[..end].to_owned())
}

fn has_finalizer(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

/// Returns the names and resource versions of the pond and its child.
async fn of_the_pond(scenario: &Scenario) -> Result<Vec<(String, String)>> {
    let mut all = scenario.objects("configmaps").versions().await?;
    all.retain(|(name, _)| name.starts_with("east"));
    all.extend(scenario.objects("ponds").versions().await?);
    ensure!(all.len() == 2, "a pond has one child: {all:?}");
    Ok(all)
}

/// Waits until the passes that the first events of the children cause have ended, and returns the metrics of that moment.
async fn rested(scenario: &Scenario) -> Result<Metrics> {
    scenario.until_settled().await?;
    scenario.until_idle().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_template_changes_the_children_of_its_entry_and_nothing_else() -> Result<()> {
    let mut scenario = garden("edit").await?;
    let pond = of_the_pond(&scenario).await?;
    let metrics = rested(&scenario).await?;
    let passes = metrics.passes("pond")?;
    ensure!(passes > 0.0, "the pond was never reconciled");
    let orchard_passes = metrics.passes("orchard")?;
    let maps = scenario.objects("configmaps");
    let ladder = maps.fetch("north-ladder").await?;
    let process = scenario.pid();

    let katalog = edited(
        r#"fruit: "{{ .spec.fruit }}""#,
        r#"fruit: "ripe {{ .spec.fruit }}""#,
    )?;
    scenario.apply(&katalog)?;
    let basket = maps
        .until_equal("north-basket", "/data/fruit", json!("ripe quince"), LIMIT)
        .await?;
    scenario.objects("orchards").until_ready("north").await?;
    scenario.katalog_is("garden", "True", "Running").await?;
    scenario.until_idle().await?;

    assert_eq!(of_the_pond(&scenario).await?, pond);
    assert!(
        (scenario.passes("pond").await? - passes).abs() < 0.5,
        "the pond was reconciled"
    );
    ensure!(
        scenario.passes("orchard").await? > orchard_passes,
        "the orchard was not reconciled"
    );
    assert_eq!(scenario.pid(), process);
    scenario.check_running()?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(
        version(&maps.fetch("north-ladder").await?),
        version(&ladder)
    );
    assert_eq!(
        version(&maps.fetch("north-basket").await?),
        version(&basket)
    );

    // Both operators still correct drift.
    for (map, at, value) in [
        ("north-basket", "/data/fruit", "ripe quince"),
        ("east-water", "/data/fish", "carp"),
    ] {
        maps.delete(map).await?;
        maps.until_equal(map, at, json!(value), LIMIT).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_removed_stops_that_operator_alone_and_releases_its_resources() -> Result<()> {
    let mut scenario = garden("removed").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    ensure!(
        has_finalizer(&ponds.fetch("east").await?),
        "the pond has no finalizer"
    );
    ensure!(
        !scenario
            .series("orkestra_reconcile_total", &[("crd", "pond")])
            .await?
            .is_empty(),
        "the pond has no metrics"
    );
    let passes = rested(&scenario).await?.passes("orchard")?;
    let process = scenario.pid();

    scenario.apply(&without_pond()?)?;
    is_released(&scenario).await?;
    let katalog = scenario.katalog_is("garden", "True", "Running").await?;
    assert_eq!(katalog["status"]["ready"], "1/1");
    assert_eq!(
        katalog["status"]["operated"].as_array().map(Vec::len),
        Some(1)
    );
    let metrics = scenario.http("/metrics").await?;
    ensure!(
        !metrics.contains(r#"crd="pond""#),
        "series of the pond are left"
    );
    ensure!(
        metrics.contains(r#"crd="orchard""#),
        "series of the orchard are gone"
    );
    assert!(
        (scenario.passes("orchard").await? - passes).abs() < 0.5,
        "the orchard was reconciled"
    );
    assert_eq!(scenario.pid(), process);
    scenario.check_running()?;

    // No operator reconciles the pond any more; the orchard is still reconciled, and its watch reports the deletions in order.
    maps.delete("east-water").await?;
    maps.delete("north-basket").await?;
    maps.until_equal("north-basket", "/data/fruit", json!("quince"), LIMIT)
        .await?;
    assert_eq!(maps.get("east-water").await?, None);
    ponds.delete("east").await?;
    ponds.until_gone("east", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_removed_while_the_controller_is_down_is_released_when_it_is_back() -> Result<()> {
    let mut scenario = garden("away").await?;
    scenario.terminate()?;
    scenario.apply(&without_pond()?)?;
    ensure!(
        has_finalizer(&scenario.objects("ponds").fetch("east").await?),
        "the pond was released without a controller"
    );
    scenario.start().await?;
    is_released(&scenario).await?;
    scenario.katalog_is("garden", "True", "Running").await?;
    assert_eq!(
        scenario
            .series("orkestra_reconcile_total", &[("crd", "pond")])
            .await?,
        [""; 0]
    );
    Ok(())
}

/// Waits until the pond has no finalizer and label of Orkestra, and checks that its child still exists and is owned by it.
async fn is_released(scenario: &Scenario) -> Result<()> {
    let ponds = scenario.objects("ponds");
    let pond = ponds
        .until("east", "is released", LIMIT, |pond| {
            !has_finalizer(pond) && pond["metadata"]["labels"].get(MANAGED).is_none()
        })
        .await?;
    let water = scenario.objects("configmaps").fetch("east-water").await?;
    assert_eq!(water["data"]["fish"], "carp");
    assert_eq!(
        water["metadata"]["ownerReferences"][0]["uid"],
        pond["metadata"]["uid"]
    );
    Ok(())
}
