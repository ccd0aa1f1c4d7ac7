//! `kubectl replace --force` on a Katalog: the Katalog is deleted and immediately created again. Its operators release their
//! instances and children and adopt them again, including children that only labels and annotations connect with their owner.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::deletion::{FINALIZER, Far, finalizers};
use crate::orphans::uid;
use crate::scenario::{LIMIT, input};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_elsewhere_stay_owned_when_their_katalog_is_replaced_by_force() -> Result<()> {
    let far = Far::new("replaced").await?;
    let (scenario, orchards) = (&far.scenario, far.scenario.objects("orchards"));
    let before = [
        orchards.fetch("north").await?,
        far.signs.fetch("north-sign").await?,
        far.classes.fetch(&far.class).await?,
    ];
    let old = scenario.objects("katalogs").fetch("far").await?;
    let text = scenario.text(&input("garden/far.yaml")?);
    scenario.kubectl_with(&["replace", "--force", "-f", "-"], Some(&text))?;
    let new = scenario.katalog_is("far", "True", "Running").await?;
    ensure!(uid(&new) != uid(&old), "the Katalog was not replaced");

    let north = orchards
        .until("north", "has its finalizer again", LIMIT, |orchard| {
            finalizers(orchard) == [FINALIZER]
        })
        .await?;
    let after = [
        north.clone(),
        far.sign_is_of(&north).await?,
        far.class_is_of(&north).await?,
    ];
    for (before, after) in before.iter().zip(&after) {
        ensure!(uid(before) == uid(after), "it was recreated: {after}");
    }
    // Drift correction still works for them.
    let edit = json!({ "data": { "fruit": "stone" } });
    far.signs.patch("north-sign", &edit).await?;
    far.signs
        .until_equal("north-sign", "/data/fruit", json!("quince"), LIMIT)
        .await?;
    let pear = json!({ "spec": { "fruit": "pear" } });
    orchards.patch("north", &pear).await?;
    far.signs
        .until_equal("north-sign", "/data/fruit", json!("pear"), LIMIT)
        .await?;
    orchards.until_ready("north").await?;
    let warnings = waters::warnings(scenario, "north").await?;
    let log = scenario.log();
    ensure!(
        warnings.is_empty() && !log.contains("NameTaken"),
        "{warnings:?}"
    );

    orchards.delete("north").await?;
    far.is_gone_but_for_the_bystander().await
}
