//! The lifecycle of a CRD with an operator: the CRD is missing, installed, terminating, missing, and installed again.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::ControlPlane;

use crate::scenario::{LIMIT, Objects, Scenario, input};

const ORCHARDS: &str = "garden/orchard-crd.yaml";

/// Returns the number of metric series of the orchard's operator.
async fn orchard_series(scenario: &Scenario) -> Result<usize> {
    let metrics = scenario.http("/metrics").await?;
    Ok(metrics
        .lines()
        .filter(|line| line.contains(r#"crd="orchard""#))
        .count())
}

async fn a_life(scenario: &Scenario) -> Result<()> {
    let (orchards, maps) = (scenario.objects("orchards"), scenario.objects("configmaps"));
    scenario.install(&input(ORCHARDS)?).await?;
    ControlPlane::shared().relearn_kinds()?;
    scenario.operator_is("garden", "orchard", "Running").await?;
    for name in ["north", "held"] {
        scenario.apply(&input("garden/orchard.yaml")?.replace("north", name))?;
        orchards.until_ready(name).await?;
    }
    let mut finalizers = orchards.fetch("held").await?["metadata"]["finalizers"].clone();
    let of_others = finalizers
        .as_array_mut()
        .map(|all| all.push(json!("example.org/held")));
    ensure!(of_others.is_some(), "the orchard has no finalizer");
    orchards
        .patch("held", &json!({ "metadata": { "finalizers": finalizers } }))
        .await?;

    let name = format!("orchards.{}", scenario.group);
    let _collector = scenario.cluster.keep_collector();
    scenario.kubectl(&["delete", "crd", &name, "--wait=false"])?;
    scenario
        .operator_is("garden", "orchard", "Deleting")
        .await?;
    orchards.until_gone("north", LIMIT).await?;
    maps.until_gone("north-basket", LIMIT).await?;
    // Orkestra's finalizer is removed; another controller's finalizer still holds this one.
    let wanted = json!(["example.org/held"]);
    orchards
        .until_equal("held", "/metadata/finalizers", wanted, LIMIT)
        .await?;
    orchards
        .patch("held", &json!({ "metadata": { "finalizers": null } }))
        .await?;
    Objects::of_cluster(&scenario.client, "customresourcedefinitions")
        .until_gone(&name, LIMIT)
        .await?;
    maps.until_gone("held-basket", LIMIT).await?;
    let katalog = scenario.operator_is("garden", "orchard", "Waiting").await?;
    ensure!(
        katalog["status"]["operators"]
            .to_string()
            .contains("CrdMissing"),
        "{katalog}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_crd_may_come_and_go_and_come_back() -> Result<()> {
    let mut scenario = Scenario::new("life").await?;
    let katalog = input("garden/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&input("garden/pond-crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    scenario.operator_is("garden", "orchard", "Waiting").await?;
    scenario.operator_is("garden", "pond", "Running").await?;
    scenario.apply(&input("garden/pond.yaml")?)?;
    scenario.objects("ponds").until_ready("east").await?;
    let reported = json!({ "instances": 1, "ready": 1 });
    scenario
        .operator_reports("garden", "pond", &reported)
        .await?;
    scenario.katalog_is("garden", "False", "Waiting").await?;
    // Wait for the passes that the first events of the pond's children cause.
    scenario.until_settled().await?;
    let passes = scenario.until_idle().await?.passes("pond")?;
    let process = scenario.pid();

    a_life(&scenario).await?;
    let series = orchard_series(&scenario).await?;
    let records = scenario
        .metric("orkestra_cache_records", &[("crd", "orchard")])
        .await?;
    // The deletion of a child of another group's Pond with the same name causes no pass.
    a_child_of_a_neighbour_comes_and_goes(&scenario).await?;
    a_life(&scenario).await?;

    // The second life of the CRD left no more series and records than the first, and neither caused a pass of the pond.
    assert_eq!(orchard_series(&scenario).await?, series);
    ensure_nothing_is_left(&scenario, records).await?;
    let now = scenario.passes("pond").await?;
    assert!(
        (now - passes).abs() < 0.5,
        "the pond was reconciled, {passes} times before and {now} times in all: {:#?}",
        scenario
            .series("orkestra_passes_total", &[("crd", "pond")])
            .await?
    );
    assert_eq!(scenario.pid(), process);
    scenario.check_running()
}

/// Creates and deletes a `ConfigMap` that is marked as the child of a Pond of another group.
async fn a_child_of_a_neighbour_comes_and_goes(scenario: &Scenario) -> Result<()> {
    let owner = format!("Pond.neighbour.example/{}/east/1-2-3", scenario.namespace);
    let metadata = json!({
        "name": "neighbours",
        "labels": { "orkestra.orkspace.io/managed": "true" },
        "annotations": { "orkestra.orkspace.io/owner": owner },
    });
    let maps = scenario.objects("configmaps");
    maps.create(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }))
        .await?;
    maps.delete("neighbours").await
}

/// Checks that the orchard's operator has as many records as before, no resources and no queued keys, and that nothing panicked.
async fn ensure_nothing_is_left(scenario: &Scenario, records: f64) -> Result<()> {
    assert!(
        (scenario
            .metric("orkestra_cache_records", &[("crd", "orchard")])
            .await?
            - records)
            .abs()
            < 0.5
    );
    assert!(
        scenario
            .metric("orkestra_resource_count", &[("crd", "orchard")])
            .await?
            .abs()
            < 0.5
    );
    assert!(
        scenario
            .metric("orkestra_queue_depth", &[("crd", "orchard")])
            .await?
            .abs()
            < 0.5
    );
    assert!(scenario.metric("orkestra_panics_total", &[]).await?.abs() < 0.5);
    Ok(())
}
