//! Random values in a child that is created once: they are generated once and kept through changes and restarts.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario};
use crate::waters;

/// Returns the data of a pond's Secret.
async fn drawn(scenario: &Scenario, pond: &str) -> Result<Value> {
    let secret = scenario
        .objects("secrets")
        .fetch(&format!("{pond}-key"))
        .await?;
    Ok(secret["data"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_drawn_once_and_outlives_changes_and_restarts() -> Result<()> {
    let mut scenario = Scenario::new("chance").await?;
    let katalog = crate::scenario::input("randomness/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for pond in ["north", "south"] {
        waters::pond(&scenario, pond, &json!({ "colour": "green" })).await?;
        ponds.until_ready(pond).await?;
        // Later passes read the generated value from the Secret.
        maps.until_equal(&format!("{pond}-pond"), "/data/length", json!("16"), LIMIT)
            .await?;
    }
    let (north, south) = (
        drawn(&scenario, "north").await?,
        drawn(&scenario, "south").await?,
    );
    assert_ne!(north["password"], south["password"]);
    assert_ne!(north["id"], south["id"]);

    let turn = async |scenario: &Scenario, colour: &str| -> Result<()> {
        let change = json!({ "spec": { "colour": colour } });
        ponds.patch("north", &change).await?;
        maps.until_equal("north-pond", "/data/colour", json!(colour), LIMIT)
            .await?;
        assert_eq!(drawn(scenario, "north").await?, north, "after {colour}");
        Ok(())
    };
    turn(&scenario, "brown").await?;
    scenario.kill9()?;
    scenario.start().await?;
    turn(&scenario, "blue").await?;
    assert_eq!(drawn(&scenario, "south").await?, south);
    waters::ensure_no_writes(&scenario).await
}
