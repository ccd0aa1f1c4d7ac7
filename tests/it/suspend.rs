//! Suspension: operators stop, and deletion still works (G24).

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

const SUSPEND: &str = "orkestra.orkspace.io/suspend";

/// Waits until the Katalog reports that it is suspended.
async fn is_suspended(scenario: &Scenario) -> Result<Value> {
    let katalog = scenario.katalog_is("ponds", "False", "Suspended").await?;
    let suspended = condition(&katalog, "Suspended").unwrap_or_default();
    ensure!(suspended["status"] == "True", "{katalog}");
    for absent in ["Reconciling", "Stalled"] {
        ensure!(condition(&katalog, absent).is_none(), "{katalog}");
    }
    scenario.operator_is("ponds", "pond", "Suspended").await
}

/// Waits until the child of that Pond has that colour.
async fn colour(maps: &Objects, name: &str, colour: &str) -> Result<()> {
    let name = format!("{name}-pond");
    maps.until_equal(&name, "/data/colour", json!(colour), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_katalog_processes_deletions_only_and_resumes_without_a_restart() -> Result<()>
{
    let katalog = input("komposer/ponds.yaml")?;
    let mut scenario = Scenario::with_katalog("suspend", &["kinds/crds.yaml"], &katalog).await?;
    let (katalogs, maps) = (scenario.objects("katalogs"), scenario.objects("configmaps"));
    let ponds = scenario.objects("ponds");
    for name in ["north", "south"] {
        waters::pond(&scenario, name, &json!({})).await?;
        colour(&maps, name, "green").await?;
        ponds.until_ready(name).await?;
    }
    let revision = katalogs.fetch("ponds").await?["status"]["revision"].clone();
    let pid = scenario.pid();

    katalogs
        .patch("ponds", &json!({ "spec": { "suspend": true } }))
        .await?;
    is_suspended(&scenario).await?;
    let now = katalogs.fetch("ponds").await?["status"].clone();
    ensure!(
        now["revision"] == revision,
        "suspension changed the revision: {now}"
    );
    maps.patch("north-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    waters::pond(&scenario, "east", &json!({})).await?;
    // The deletion comes after the drift and the creation. It is processed; they are not.
    ponds.delete("south").await?;
    ponds.until_gone("south", LIMIT).await?;
    ensure!(maps.fetch("north-pond").await?["data"]["colour"] == "red");
    ensure!(maps.get("east-pond").await?.is_none());

    katalogs
        .patch("ponds", &json!({ "spec": { "suspend": false } }))
        .await?;
    scenario.katalog_is("ponds", "True", "Running").await?;
    colour(&maps, "north", "green").await?;
    colour(&maps, "east", "green").await?;
    ensure!(scenario.pid() == pid, "the controller was restarted");

    an_annotation_suspends_across_a_restart(&mut scenario).await?;

    a_suspended_katalog_keeps_its_kinds_until_it_is_deleted(&scenario, &katalog).await?;
    scenario.check_running()
}

/// Suspends the Katalog by its annotation, and checks that a restart changes nothing; then resumes it.
async fn an_annotation_suspends_across_a_restart(scenario: &mut Scenario) -> Result<()> {
    let (katalogs, maps) = (scenario.objects("katalogs"), scenario.objects("configmaps"));
    let ponds = scenario.objects("ponds");
    let annotated = |value: Value| json!({ "metadata": { "annotations": { SUSPEND: value } } });
    katalogs.patch("ponds", &annotated(json!("true"))).await?;
    is_suspended(scenario).await?;
    maps.patch("north-pond", &json!({ "data": { "colour": "red" } }))
        .await?;
    // A restart changes nothing.
    scenario.kill9()?;
    scenario.start().await?;
    ponds.delete("east").await?;
    ponds.until_gone("east", LIMIT).await?;
    ensure!(maps.fetch("north-pond").await?["data"]["colour"] == "red");
    is_suspended(scenario).await?;
    katalogs.patch("ponds", &annotated(Value::Null)).await?;
    scenario.katalog_is("ponds", "True", "Running").await?;
    colour(&maps, "north", "green").await?;
    Ok(())
}

/// Checks that a suspended Katalog keeps its claims, and that it releases its resources when it is deleted.
async fn a_suspended_katalog_keeps_its_kinds_until_it_is_deleted(
    scenario: &Scenario,
    katalog: &str,
) -> Result<()> {
    let (katalogs, ponds) = (scenario.objects("katalogs"), scenario.objects("ponds"));
    katalogs
        .patch("ponds", &json!({ "spec": { "suspend": true } }))
        .await?;
    is_suspended(scenario).await?;
    let other = katalog.replace("name: ponds", "name: others");
    scenario.apply(&other)?;
    scenario.katalog_is("others", "False", "Conflict").await?;
    katalogs.delete("others").await?;
    katalogs.until_gone("others", LIMIT).await?;
    katalogs.delete("ponds").await?;
    katalogs.until_gone("ponds", LIMIT).await?;
    let north = ponds.fetch("north").await?;
    ensure!(north["metadata"].get("finalizers").is_none(), "{north}");
    Ok(())
}

// Over 60 lines: one custom resource through its states, beside one that is not suspended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_custom_resource_is_suspended_and_resumed_and_its_deletion_works() -> Result<()> {
    let katalog = input("komposer/ponds.yaml")?;
    let mut scenario = Scenario::with_katalog("suspendone", &["kinds/crds.yaml"], &katalog).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for name in ["north", "south"] {
        waters::pond(&scenario, name, &json!({})).await?;
        colour(&maps, name, "green").await?;
        ponds.until_ready(name).await?;
    }
    // Other scenarios have kinds of the same name.
    let north = format!("pond.{}/north", scenario.group);
    let namespace = scenario.namespace.clone();
    let run = |scenario: &Scenario, command: &str| {
        scenario.ork(&[command, &north, "--namespace", &namespace])
    };
    run(&scenario, "suspend")?;
    let suspended = ponds
        .until("north", "is suspended", LIMIT, |pond| {
            condition(pond, "Suspended").is_some()
        })
        .await?;
    let said = condition(&suspended, "Suspended").unwrap_or_default();
    ensure!(said["status"] == "True", "{suspended}");
    let message = said["message"].as_str().unwrap_or_default();
    ensure!(message.contains("set by `ork` at "), "{message}");
    let ready = condition(&suspended, "Ready").unwrap_or_default();
    ensure!(ready["status"] == "True", "{suspended}");
    let again = run(&scenario, "suspend")?;
    ensure!(again.contains("north suspended already"), "{again}");

    // Drift of the suspended one stays, while its neighbour's is corrected: the barrier is the later one.
    for name in ["north", "south"] {
        maps.patch(
            &format!("{name}-pond"),
            &json!({ "data": { "colour": "red" } }),
        )
        .await?;
    }
    colour(&maps, "south", "green").await?;
    ensure!(maps.fetch("north-pond").await?["data"]["colour"] == "red");
    let Err(refused) = run(&scenario, "reconcile") else {
        bail!("a suspended custom resource was reconciled");
    };
    let refused = refused.to_string();
    ensure!(
        refused.contains(&format!("ork resume {north}")),
        "{refused}"
    );

    run(&scenario, "resume")?;
    colour(&maps, "north", "green").await?;
    ponds
        .until("north", "is resumed", LIMIT, |pond| {
            condition(pond, "Suspended").is_none()
        })
        .await?;
    let handled = run(&scenario, "reconcile")?;
    ensure!(handled.contains("north reconciled"), "{handled}");

    run(&scenario, "suspend")?;
    ponds.delete("north").await?;
    ponds.until_gone("north", LIMIT).await?;
    scenario.check_running()
}
