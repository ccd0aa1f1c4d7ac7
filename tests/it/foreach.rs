//! `forEach`: a child for each element of a list or map.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition};

const CRDS: [&str; 1] = ["lifecycle/grove-crd.yaml"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_follow_the_elements_of_lists_and_maps() -> Result<()> {
    let scenario = Scenario::running("foreach", &CRDS, "lifecycle/foreach.yaml").await?;
    let (groves, maps) = (scenario.objects("groves"), scenario.objects("configmaps"));
    let grove = json!({
        "apiVersion": format!("{}/v1alpha1", scenario.group), "kind": "Grove",
        "metadata": { "name": "elms" },
        "spec": {
            "regions": ["eu", "us", "asia"],
            "pumps": { "deep": { "on": true, "speed": 7 }, "flat": { "on": false, "speed": 4 } },
        },
    });
    groves.create(&grove).await?;
    groves.until_ready("elms").await?;
    for region in ["eu", "us", "asia"] {
        let map = maps.fetch(&format!("elms-{region}")).await?;
        assert_eq!(map["data"]["region"], region);
    }
    assert_eq!(maps.fetch("elms-pump-deep").await?["data"]["speed"], "7");
    assert_eq!(maps.get("elms-pump-flat").await?, None);

    // Another order of the elements causes no write but that of the status, for the new generation.
    let mark = Scenario::mark()?;
    groves
        .patch(
            "elms",
            &json!({ "spec": { "regions": ["asia", "eu", "us"] } }),
        )
        .await?;
    groves.until_ready("elms").await?;
    scenario.until_idle().await?;
    let mut writes = scenario.writes_since(mark)?;
    writes.retain(|write| write.resource == "configmaps");
    assert_eq!(writes.len(), 0, "{writes:?}");

    let change =
        json!({ "spec": { "regions": ["eu"], "pumps": { "deep": null, "flat": { "on": true } } } });
    groves.patch("elms", &change).await?;
    for gone in ["elms-us", "elms-asia", "elms-pump-deep"] {
        maps.until_gone(gone, LIMIT).await?;
    }
    maps.until_equal("elms-pump-flat", "/data/speed", json!("4"), LIMIT)
        .await?;
    maps.fetch("elms-eu").await?;

    // Duplicate names are reported, and the existing child stays.
    groves
        .patch("elms", &json!({ "spec": { "regions": ["eu", "eu"] } }))
        .await?;
    let reported = |grove: &Value| {
        condition(grove, "Ready").is_some_and(|ready| ready["reason"] == "DuplicateChild")
    };
    groves
        .until("elms", "reports two elements of one name", LIMIT, reported)
        .await?;
    maps.fetch("elms-eu").await?;
    Ok(())
}
