//! Copies of Secrets and `ConfigMaps`: they follow what they are of, go where they are wanted, and go away again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters;

/// A running scenario, with the namespace of the sources and another one.
async fn running(prefix: &str) -> Result<(Scenario, String, String)> {
    let mut scenario = Scenario::new(prefix).await?;
    let source = waters::second_namespace(&scenario.client).await?;
    let other = waters::second_namespace(&scenario.client).await?;
    let katalog = waters::filled("copies/katalog.yaml", "SOURCE", &source)?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    Ok((scenario, source, other))
}

fn registry(password: &str) -> Value {
    json!({ "metadata": { "name": "registry" }, "type": "kubernetes.io/basic-auth", "data": { "password": password, "username": "cm9vdA==" } })
}

/// The reason of the condition `Ready`.
fn reason(object: &Value) -> &str {
    condition(object, "Ready").map_or("", |ready| waters::text(ready, "/reason"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_waits_for_its_source_follows_it_and_is_cleaned_up() -> Result<()> {
    let (mut scenario, source, other) = running("copies").await?;
    let sources = scenario.objects_in(&source, "secrets");
    let (here, there) = (
        scenario.objects("secrets"),
        scenario.objects_in(&other, "secrets"),
    );
    let ponds = scenario.objects("ponds");
    scenario
        .objects_in(&source, "configmaps")
        .create(&json!({ "metadata": { "name": "pond-deep" }, "data": { "depth": "9", "owner": "infra" } }))
        .await?;
    waters::pond(
        &scenario,
        "north",
        &json!({ "also": other, "settings": "pond-deep" }),
    )
    .await?;
    ponds
        .until("north", "waits for its source", LIMIT, |pond| {
            reason(pond) == "SourceMissing"
        })
        .await?;
    ensure!(here.get("north-registry").await?.is_none());
    let settings = scenario
        .objects("configmaps")
        .fetch("north-settings")
        .await?;
    ensure!(
        settings["data"] == json!({ "depth": "9", "owner": "north" }),
        "{}",
        settings["data"]
    );

    sources.create(&registry("b25l")).await?;
    for place in [&here, &there] {
        let copy = place
            .until_equal("north-registry", "/data/password", json!("b25l"), LIMIT)
            .await?;
        ensure!(copy["type"] == "kubernetes.io/basic-auth");
    }
    ponds.until_ready("north").await?;

    // Resync is off, so nothing but the change itself brings the next one.
    let since = Instant::now();
    sources
        .patch("registry", &json!({ "data": { "password": "dHdv" } }))
        .await?;
    for place in [&here, &there] {
        place
            .until_equal("north-registry", "/data/password", json!("dHdv"), LIMIT)
            .await?;
    }
    println!("a change reached its copies in {:?}", since.elapsed());

    // Without its source it stays.
    sources.delete("registry").await?;
    ponds
        .until("north", "misses its source", LIMIT, |pond| {
            reason(pond) == "SourceMissing"
        })
        .await?;
    ensure!(there.fetch("north-registry").await?["data"]["password"] == "dHdv");
    sources.create(&registry("dHdv")).await?;
    ponds.until_ready("north").await?;

    scenario.kill9()?;
    scenario.start().await?;
    waters::until_counted().await;
    waters::ensure_no_writes(&scenario, Duration::from_secs(5)).await?;

    // A namespace leaves the list, and comes back; the pond goes.
    ponds
        .patch("north", &json!({ "spec": { "also": "" } }))
        .await?;
    there.until_gone("north-registry", LIMIT).await?;
    ensure!(here.get("north-registry").await?.is_some());
    ponds
        .patch("north", &json!({ "spec": { "also": other } }))
        .await?;
    there
        .until_equal("north-registry", "/data/password", json!("dHdv"), LIMIT)
        .await?;
    ponds.delete("north").await?;
    there.until_gone("north-registry", LIMIT).await?;
    ponds.until_gone("north", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_copies_nothing_that_is_not_allowed() -> Result<()> {
    let (scenario, source, _) = running("refused").await?;
    let sources = scenario.objects_in(&source, "configmaps");
    let secret = json!({ "metadata": { "name": "payroll" }, "data": { "salary": "much" } });
    sources.create(&secret).await?;
    scenario
        .objects_in(&source, "secrets")
        .create(&registry("b25l"))
        .await?;
    waters::pond(&scenario, "north", &json!({ "settings": "payroll" })).await?;
    let ponds = scenario.objects("ponds");
    let pond = ponds
        .until("north", "is refused its source", LIMIT, |pond| {
            reason(pond) == "SourceRefused"
        })
        .await?;
    let message = condition(&pond, "Ready").map_or("", |ready| waters::text(ready, "/message"));
    ensure!(message.contains("allowedSources"), "{message}");
    ensure!(
        scenario
            .objects("configmaps")
            .get("north-settings")
            .await?
            .is_none()
    );
    Ok(())
}
