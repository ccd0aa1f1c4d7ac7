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

/// The compilations of the newest revision, however they ended.
async fn compilations(scenario: &Scenario) -> Result<String> {
    let name = "orkestra_katalog_compilations_total";
    let count = scenario.metric(name, &[("revision", "newest")]).await?;
    Ok(count.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_is_compiled_once_for_each_change() -> Result<()> {
    let (katalog, motif) = (input("motif/katalog.yaml")?, input("motif/reeds.yaml")?);
    let mut scenario = Scenario::new("once").await?;
    scenario.grant(&format!("{katalog}---\n{motif}")).await?;
    scenario.install(&input("garden/pond-crd.yaml")?).await?;
    scenario.apply(&motif)?;
    scenario.apply(&katalog)?;
    scenario.start().await?;
    scenario.katalog_is("marsh", "True", "Running").await?;
    scenario.apply(&input("garden/pond.yaml")?)?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("east-reeds", "/data/hides", json!("carp"), LIMIT)
        .await?;
    is_at_work(&scenario, "carp").await?;
    let count = compilations(&scenario).await?;
    ensure!(count == "1", "compiled {count} times at the start");

    // A change of its metadata changes nothing that is compiled.
    let katalogs = scenario.objects("katalogs");
    let label = json!({ "metadata": { "labels": { "wet": "yes" } }, "spec": { "crds": { "pond": { "workers": 3 } } } });
    let first = katalogs.fetch("marsh").await?["status"]["revision"].clone();
    katalogs
        .patch(
            "marsh",
            &json!({ "metadata": { "labels": { "wet": "no" } } }),
        )
        .await?;
    katalogs.patch("marsh", &label).await?;
    let second = katalogs
        .until("marsh", "runs another revision", LIMIT, |katalog| {
            katalog["status"]["revision"] != first
        })
        .await?;
    scenario.katalog_is("marsh", "True", "Running").await?;
    let count = compilations(&scenario).await?;
    ensure!(count == "2", "compiled {count} times after its change");

    scenario.apply(&motif.replace("hides: \"", "hides: \"a "))?;
    maps.until_equal("east-reeds", "/data/hides", json!("a carp"), LIMIT)
        .await?;
    let second = second["status"]["revision"].clone();
    katalogs
        .until("marsh", "runs a third revision", LIMIT, |katalog| {
            katalog["status"]["revision"] != second
        })
        .await?;
    scenario.katalog_is("marsh", "True", "Running").await?;
    is_at_work(&scenario, "a carp").await?;
    let count = compilations(&scenario).await?;
    ensure!(
        count == "3",
        "compiled {count} times after its Motif's change"
    );
    Ok(())
}
