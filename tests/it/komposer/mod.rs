//! Komposers in the cluster: operators of several sources, approval of permissions, conflicts, and suspension.

mod authority;
mod large;
mod registry;
mod remote;

use anyhow::{Context as _, Result, ensure};
use orkestra_ground::tasks::Task;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

fn komposers(scenario: &Scenario) -> Objects {
    let path = format!(
        "/apis/orkestra.orkspace.io/v1/namespaces/{}/komposers",
        scenario.namespace
    );
    Objects::at(&scenario.client, &path)
}

/// Waits until the Komposer's current generation is observed and its condition `Ready` has the status and reason, with a message
/// that contains all of `parts`.
async fn is(
    scenario: &Scenario,
    name: &str,
    (status, reason): (&str, &str),
    parts: &[&str],
) -> Result<Value> {
    let what = format!("is Ready={status} for {reason}, with {parts:?}");
    komposers(scenario)
        .until(name, &what, LIMIT, |komposer| {
            let current =
                komposer["status"]["observedGeneration"] == komposer["metadata"]["generation"];
            let is_meant = |ready: &Value| {
                let message = ready["message"].as_str().unwrap_or_default();
                ready["status"] == status
                    && ready["reason"] == reason
                    && parts.iter().all(|part| message.contains(part))
            };
            current && condition(komposer, "Ready").is_some_and(is_meant)
        })
        .await
}

/// Returns a `ConfigMap` that contains a Katalog.
fn holder(scenario: &Scenario, katalog: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ponds" },
        "data": { "katalog.yaml": scenario.text(katalog), "notes.txt": "not a source" },
    })
}

async fn hold(scenario: &Scenario, katalog: &str) -> Result<()> {
    let data = holder(scenario, katalog)["data"].clone();
    scenario
        .objects("configmaps")
        .patch("ponds", &json!({ "data": data }))
        .await?;
    Ok(())
}

/// Waits until a child has a value.
async fn child(scenario: &Scenario, name: &str, field: &str, value: &str) -> Result<()> {
    let at = format!("/data/{field}");
    let maps = scenario.objects("configmaps");
    maps.until_equal(name, &at, json!(value), LIMIT).await?;
    Ok(())
}

/// Returns a scenario whose Komposer runs an operator from a `ConfigMap` and one from a suspended Katalog.
async fn running(prefix: &str) -> Result<Scenario> {
    let mut scenario = Scenario::new(prefix).await?;
    let [ponds, lakes, komposer] =
        ["ponds", "lakes", "waters"].map(|name| input(&format!("komposer/{name}.yaml")));
    let (ponds, lakes, komposer) = (ponds?, lakes?, komposer?);
    scenario.grant(&ponds).await?;
    scenario.grant(&lakes).await?;
    scenario.grant_confined(&komposer).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.accept_faults();
    scenario.start().await?;
    let maps = scenario.objects("configmaps");
    maps.create(&holder(&scenario, &ponds)).await?;
    scenario.apply(&lakes)?;
    scenario.apply(&komposer)?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;
    Ok(scenario)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_komposer_runs_operators_of_its_sources_and_a_change_of_one_touches_no_other()
-> Result<()> {
    let mut scenario = running("komposer").await?;
    let komposer = komposers(&scenario).fetch("waters").await?;
    ensure!(komposer["status"]["ready"] == "2/2", "{komposer}");
    both_sources_are_listed_with_their_digests(&komposer)?;
    // The suspended Katalog itself runs no operator and claims no kind.
    scenario.katalog_is("lakes", "False", "Suspended").await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    waters::lake(&scenario, "south", &json!({})).await?;
    child(&scenario, "north-pond", "colour", "green").await?;
    child(&scenario, "south-lake", "depth", "7").await?;
    scenario.objects("ponds").until_ready("north").await?;
    scenario.objects("lakes").until_ready("south").await?;
    scenario.restart_task(Task::Sources).await?;
    scenario.until_settled().await?;

    let ponds = input("komposer/ponds.yaml")?;
    a_change_of_one_source_touches_its_operator_alone(&scenario, &ponds).await?;

    // An invalid change of the source: the last valid version keeps running.
    hold(&scenario, &ponds.replace("configMaps:", "configMapz:")).await?;
    let parts = ["configmap/ponds/katalog.yaml:", "configMapz"];
    is(&scenario, "waters", ("False", "InvalidRevision"), &parts).await?;
    let maps = scenario.objects("configmaps");
    maps.patch("north-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    child(&scenario, "north-pond", "colour", "blue").await?;

    what_ran_runs_on_without_its_source(&mut scenario, &ponds).await?;

    its_deletion_lets_go_of(&scenario, &[("ponds", "north"), ("lakes", "south")]).await?;
    scenario.check_running()
}

/// Checks that the Komposer's status lists both sources, each with a digest.
fn both_sources_are_listed_with_their_digests(komposer: &Value) -> Result<()> {
    let rows = komposer["status"]["sources"]
        .as_array()
        .context("no sources")?;
    let ids: Vec<_> = rows.iter().map(|row| row["source"].clone()).collect();
    ensure!(
        ids == [json!("configmap/ponds"), json!("katalogs?for=waters")],
        "{rows:?}"
    );
    ensure!(
        rows.iter()
            .all(|row| waters::text(row, "/digest").starts_with("sha256:")),
        "{rows:?}"
    );
    Ok(())
}

/// Changes one source, and checks that no request is about the kind or the child of the other one.
async fn a_change_of_one_source_touches_its_operator_alone(
    scenario: &Scenario,
    ponds: &str,
) -> Result<()> {
    let mark = scenario.cluster.mark()?;
    hold(scenario, &ponds.replace("colour: green", "colour: blue")).await?;
    child(scenario, "north-pond", "colour", "blue").await?;
    is(scenario, "waters", ("True", "Running"), &[]).await?;
    scenario.until_idle().await?;
    let requests = scenario.requests_since(mark)?;
    let others = requests
        .iter()
        .filter(|one| one.resource == "lakes" || one.name == "south-lake");
    ensure!(others.count() == 0, "{}", waters::lines(&requests));
    Ok(())
}

/// Deletes a source and restarts the controller. Checks that the operator keeps running, and that it uses the source again once
/// that is created again.
async fn what_ran_runs_on_without_its_source(scenario: &mut Scenario, ponds: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    maps.delete("ponds").await?;
    is(
        scenario,
        "waters",
        ("False", "SourceFailed"),
        &["configmap/ponds", "there is no ConfigMap"],
    )
    .await?;
    scenario.kill9()?;
    scenario.start().await?;
    maps.patch("north-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    child(scenario, "north-pond", "colour", "blue").await?;
    is(
        scenario,
        "waters",
        ("False", "SourceFailed"),
        &["configmap/ponds"],
    )
    .await?;
    maps.create(&holder(scenario, ponds)).await?;
    child(scenario, "north-pond", "colour", "green").await?;
    is(scenario, "waters", ("True", "Running"), &[]).await?;
    Ok(())
}

/// Deletes the Komposer, and checks that the custom resources, given by plural and name, have no finalizers.
async fn its_deletion_lets_go_of(scenario: &Scenario, resources: &[(&str, &str)]) -> Result<()> {
    komposers(scenario).delete("waters").await?;
    komposers(scenario).until_gone("waters", LIMIT).await?;
    for (plural, name) in resources {
        let object = scenario.objects(plural).fetch(name).await?;
        ensure!(object["metadata"].get("finalizers").is_none(), "{object}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_needs_more_permissions_waits_for_approval_and_others_roll_on() -> Result<()>
{
    let scenario = running("approval").await?;
    let ponds = input("komposer/ponds.yaml")?;
    waters::pond(&scenario, "north", &json!({})).await?;
    waters::lake(&scenario, "south", &json!({})).await?;
    child(&scenario, "north-pond", "colour", "green").await?;
    let more = ponds.replace("colour: green", "colour: blue")
        + "          serviceAccounts:\n            - name: \"{{ .metadata.name }}-pond\"\n";
    hold(&scenario, &more).await?;
    let parts = [
        "configmap/ponds",
        "serviceaccounts",
        "sha256:",
        "spec.approve",
    ];
    let waits = is(&scenario, "waters", ("False", "PendingApproval"), &parts).await?;
    let rows = waits["status"]["sources"]
        .as_array()
        .context("no sources")?;
    ensure!(
        waters::text(&rows[0], "/message").contains("serviceaccounts"),
        "{rows:?}"
    );
    // Changes of the other source are applied while this one waits for approval.
    let lakes = input("komposer/lakes.yaml")?;
    scenario.apply(&lakes.replace("depth: \"7\"", "depth: \"9\""))?;
    child(&scenario, "south-lake", "depth", "9").await?;
    child(&scenario, "north-pond", "colour", "green").await?;
    ensure!(
        scenario
            .objects("serviceaccounts")
            .get("north-pond")
            .await?
            .is_none()
    );

    let mut scenario = scenario;
    scenario.grant(&more).await?;
    let message = condition(&waits, "Ready").map(|ready| ready["message"].clone());
    let message = message.unwrap_or_default();
    let message = message.as_str().unwrap_or_default();
    let digest = message
        .split_whitespace()
        .find(|word| word.starts_with("sha256:"));
    let digest = digest.context("no digest is named")?;
    komposers(&scenario)
        .patch("waters", &json!({ "spec": { "approve": [digest] } }))
        .await?;
    child(&scenario, "north-pond", "colour", "blue").await?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;
    ensure!(
        scenario
            .objects("serviceaccounts")
            .get("north-pond")
            .await?
            .is_some()
    );
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_and_a_komposer_claim_kinds_as_two_katalogs_do_and_a_komposer_is_suspended_as_one()
-> Result<()> {
    let mut scenario = running("declared").await?;
    let ponds = input("komposer/ponds.yaml")?;
    waters::pond(&scenario, "north", &json!({})).await?;
    child(&scenario, "north-pond", "colour", "green").await?;
    // A Katalog with the same name as the Komposer: owners are distinguished by their kind.
    let same = ponds
        .replace("name: ponds\n", "name: waters\n")
        .replace("green", "black");
    scenario.apply(&same)?;
    let katalog = scenario.katalog_is("waters", "False", "Conflict").await?;
    let row = waters::row(&katalog, "pond").cloned().unwrap_or_default();
    ensure!(waters::text(&row, "/message").contains("Komposer"), "{row}");

    let suspend = |suspend: bool| json!({ "spec": { "suspend": suspend } });
    komposers(&scenario).patch("waters", &suspend(true)).await?;
    is(&scenario, "waters", ("False", "Suspended"), &[]).await?;
    let maps = scenario.objects("configmaps");
    maps.patch("north-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    waters::pond(&scenario, "east", &json!({})).await?;
    scenario.objects("ponds").delete("east").await?;
    scenario.objects("ponds").until_gone("east", LIMIT).await?;
    ensure!(maps.fetch("north-pond").await?["data"]["colour"] == "red");
    komposers(&scenario)
        .patch("waters", &suspend(false))
        .await?;
    child(&scenario, "north-pond", "colour", "green").await?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;

    komposers(&scenario).delete("waters").await?;
    komposers(&scenario).until_gone("waters", LIMIT).await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    child(&scenario, "north-pond", "colour", "black").await?;
    scenario.check_running()
}
