//! Motifs in the cluster: a Katalog imports them by name, and follows their creation, change and deletion.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::scenario::{LIMIT, Scenario, condition, input};

/// Checks that the operator runs: it repairs drift of the child.
async fn is_at_work(scenario: &Scenario, hides: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    maps.patch("east-reeds", &json!({ "data": { "hides": "plastic" } }))
        .await?;
    maps.until_equal("east-reeds", "/data/hides", json!(hides), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_motif_is_taken_up_as_it_comes_and_changes_and_what_runs_outlives_it() -> Result<()> {
    let (katalog, motif) = (input("motif/katalog.yaml")?, input("motif/reeds.yaml")?);
    let mut scenario = Scenario::new("motif").await?;
    scenario.grant(&format!("{katalog}---\n{motif}")).await?;
    scenario.start().await?;
    scenario.install(&input("garden/pond-crd.yaml")?).await?;
    scenario.apply(&input("garden/pond.yaml")?)?;
    scenario.apply(&katalog)?;
    let reported = scenario
        .katalog_is("marsh", "False", "MotifNotFound")
        .await?;
    let ready = condition(&reported, "Ready").unwrap_or_default();
    let message = ready["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("spec.crds.pond.imports[0].motif") && message.contains("`reeds`"),
        "{message}"
    );

    scenario.apply(&motif)?;
    scenario.katalog_is("marsh", "True", "Running").await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("east-reeds", "/data/hides", json!("carp"), LIMIT)
        .await?;
    maps.until_equal("east-reeds", "/data/height", json!("3"), LIMIT)
        .await?;
    let first = scenario.objects("katalogs").fetch("marsh").await?["status"]["revision"].clone();

    let changed = motif.replace("hides: \"", "hides: \"a ");
    ensure!(changed != motif, "the Motif has no such text");
    scenario.apply(&changed)?;
    maps.until_equal("east-reeds", "/data/hides", json!("a carp"), LIMIT)
        .await?;
    scenario
        .objects("katalogs")
        .until("marsh", "runs another revision", LIMIT, |katalog| {
            let revision = &katalog["status"]["revision"];
            revision.is_string() && *revision != first
        })
        .await?;

    scenario.kubectl(&["delete", "motifs.orkestra.orkspace.io", "reeds"])?;
    scenario
        .katalog_is("marsh", "False", "MotifNotFound")
        .await?;
    is_at_work(&scenario, "a carp").await?;
    // After a restart, the operator uses the Motif in the stored revision.
    scenario.kill9()?;
    scenario.start().await?;
    scenario
        .katalog_is("marsh", "False", "MotifNotFound")
        .await?;
    is_at_work(&scenario, "a carp").await?;

    scenario.apply(&motif)?;
    maps.until_equal("east-reeds", "/data/hides", json!("carp"), LIMIT)
        .await?;
    scenario.katalog_is("marsh", "True", "Running").await?;
    Ok(())
}
