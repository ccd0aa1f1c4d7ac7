//! Claims to a kind: of several Katalogs, or of entries for several versions of a CRD, only one reconciles.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, input, until_next_second};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_katalogs_with_one_kind_the_older_runs_it_and_the_younger_takes_over() -> Result<()>
{
    let mut scenario = Scenario::new("claims").await?;
    let [elder, younger] =
        ["elder", "younger"].map(|name| waters::filled("claims/katalog.yaml", "NAME", name));
    let (elder, younger) = (elder?, younger?);
    scenario.grant(&elder).await?;
    scenario.grant(&younger).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    let (katalogs, maps) = (scenario.objects("katalogs"), scenario.objects("configmaps"));
    scenario.apply(&elder)?;
    scenario.katalog_is("elder", "True", "Running").await?;
    // A creation timestamp counts whole seconds.
    until_next_second().await?;
    scenario.apply(&younger)?;
    let refused = scenario.katalog_is("younger", "False", "Conflict").await?;
    let row = waters::row(&refused, "pond").cloned().unwrap_or_default();
    assert_eq!(row["reason"], "Conflict", "{row}");
    assert!(
        waters::text(&row, "/message").contains("elder"),
        "the message does not name the Katalog that has the kind: {row}"
    );
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    maps.until_equal("north-pond", "/data/by", json!("elder"), LIMIT)
        .await?;
    scenario.objects("ponds").until_ready("north").await?;

    // The decision is the same after a restart.
    scenario.kill9()?;
    scenario.start().await?;
    scenario.katalog_is("elder", "True", "Running").await?;
    scenario.katalog_is("younger", "False", "Conflict").await?;
    maps.patch("north-pond", &json!({ "data": { "by": "somebody" } }))
        .await?;
    maps.until_equal("north-pond", "/data/by", json!("elder"), LIMIT)
        .await?;

    let before = maps.fetch("north-pond").await?["metadata"]["uid"].clone();
    katalogs.delete("elder").await?;
    scenario.katalog_is("younger", "True", "Running").await?;
    katalogs.until_gone("elder", LIMIT).await?;
    let after = maps
        .until_equal("north-pond", "/data/by", json!("younger"), LIMIT)
        .await?;
    assert_eq!(
        after["metadata"]["uid"], before,
        "the child of the elder Katalog was replaced"
    );
    scenario.objects("ponds").until_ready("north").await?;
    scenario.objects("ponds").delete("north").await?;
    scenario.objects("ponds").until_gone("north", LIMIT).await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn of_two_versions_of_a_crd_one_reconciles_and_the_other_says_which() -> Result<()>
{
    let mut scenario = Scenario::new("versions").await?;
    let katalog = input("claims/versions.yaml")?;
    scenario.grant(&katalog).await?;
    scenario
        .install(&input("claims/versions.crd.yaml")?)
        .await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    let maps = scenario.objects("configmaps");
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    maps.until_equal("north-new", "/data/by", json!("v1"), LIMIT)
        .await?;
    old_pond_yields_to_pond(&scenario).await?;
    // Each operator has its own informer.
    for operator in ["old-pond", "pond"] {
        let known = async || {
            Ok((scenario
                .metric("orkestra_resource_count", &[("crd", operator)])
                .await?
                > 0.5)
                .then_some(()))
        };
        testbed::eventually(&format!("{operator} knows the resource"), LIMIT, known).await?;
    }
    // A change in the version that yields reaches the operator that reconciles, and no other child is created.
    let old = Objects::at(
        &scenario.client,
        &format!(
            "/apis/{}/v1alpha1/namespaces/{}/ponds",
            scenario.group, scenario.namespace
        ),
    );
    old.patch("north", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    scenario.until_handled(&old, "north").await?;
    assert_eq!(
        waters::names(&waters::managed(maps.list().await?)),
        ["north-new"]
    );

    // Once the entry that reconciles is removed, the other one reconciles.
    let patch = json!({ "spec": { "crds": { "pond": null } } });
    scenario.objects("katalogs").patch("waters", &patch).await?;
    maps.until_equal("north-old", "/data/by", json!("v1alpha1"), LIMIT)
        .await?;
    maps.until_gone("north-new", LIMIT).await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    scenario.check_running()
}

/// Waits until the Katalog reports that its entry `old-pond` yields to `pond`, and checks that `pond` does not yield.
async fn old_pond_yields_to_pond(scenario: &Scenario) -> Result<()> {
    let yields = |katalog: &Value| {
        let row = waters::row(katalog, "old-pond")
            .cloned()
            .unwrap_or_default();
        row["reason"] == "Yields" && waters::text(&row, "/message").contains("entry pond ")
    };
    let reported = scenario
        .objects("katalogs")
        .until("waters", "reports that old-pond yields", LIMIT, yields)
        .await?;
    assert_ne!(
        waters::row(&reported, "pond").map(|row| row["reason"].clone()),
        Some(json!("Yields"))
    );
    Ok(())
}
