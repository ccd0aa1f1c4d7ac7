//! A revision that breaks what worked is the revision's fault: the Katalog is not ready, and everything that watches it stops.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::kstatus::{Kstatus, kstatus};
use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

const PONDS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Returns the revision whose quantities have that unit.
fn revision(unit: &str) -> Result<String> {
    Ok(input("broken/katalog.yaml")?.replace("UNIT", unit))
}

/// Starts a controller with five Ponds that are ready and one that its own spec breaks.
async fn filled(prefix: &str) -> Result<Scenario> {
    let scenario = Scenario::with_katalog(prefix, &["kinds/crds.yaml"], &revision("Gi")?).await?;
    for name in PONDS {
        waters::pond(&scenario, name, &json!({ "size": "1" })).await?;
    }
    waters::pond(&scenario, "wrong", &json!({ "size": "much" })).await?;
    let ponds = scenario.objects("ponds");
    for name in PONDS {
        ponds.until_ready(name).await?;
    }
    let stalls = |pond: &Value| condition(pond, "Stalled").is_some();
    ponds.until("wrong", "fails", LIMIT, stalls).await?;
    Ok(scenario)
}

/// Waits until the status of the Katalog says how many custom resources are ready.
async fn until_counted(scenario: &Scenario, counts: &str) -> Result<Value> {
    let katalogs = scenario.objects("katalogs");
    let (at, counts) = ("/status/instancesReady", json!(counts));
    katalogs.until_equal("waters", at, counts, LIMIT).await
}

/// Waits until the controller has published an Event about the Katalog for that reason.
async fn until_announced(scenario: &Scenario, reason: &str, part: &str) -> Result<()> {
    eventually("the Katalog's Event", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let is_it = |event: &&Value| {
            event["involvedObject"]["kind"] == "Katalog"
                && event["reason"] == reason
                && waters::text(event, "/message").contains(part)
        };
        let found = events.iter().find(is_it).cloned();
        let event = found.with_context(|| format!("{reason}: {events:#?}"))?;
        // `kubectl get events --sort-by=.lastTimestamp` needs it.
        ensure!(event["lastTimestamp"].is_string(), "{event}");
        Ok(Some(()))
    })
    .await
}

/// Waits until the Katalog is not ready because of its revision; returns the condition with the share.
async fn until_failed(scenario: &Scenario) -> Result<Value> {
    let katalog = scenario
        .katalog_is("waters", "False", "InstancesFailing")
        .await?;
    ensure!(kstatus(&katalog) == Kstatus::Failed, "{katalog}");
    let failing = condition(&katalog, "InstancesFailing").context("no condition")?;
    Ok(failing.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_revision_that_breaks_what_worked_makes_its_katalog_not_ready_until_it_is_repaired()
-> Result<()> {
    let mut scenario = filled("broken").await?;
    // The one that its author broke does not count.
    let katalog = until_counted(&scenario, "5/6").await?;
    ensure!(
        condition(&katalog, "InstancesFailing").is_none(),
        "{katalog}"
    );
    scenario.katalog_is("waters", "True", "Running").await?;

    scenario.apply(&revision("Gx")?)?;
    let failing = until_failed(&scenario).await?;
    ensure!(failing["status"] == "True", "{failing}");
    let message = waters::text(&failing, "/message");
    ensure!(message.contains("5 of 5 custom resources"), "{message}");
    until_counted(&scenario, "0/6").await?;
    until_announced(&scenario, "InstancesFailing", "5 of 5").await?;
    let labels = [("crd", "pond")];
    let broken = "orkestra_resources_failing_after_revision";
    eventually("the gauges", LIMIT, async || {
        // A float represents these counts exactly.
        let ready = scenario.metric("orkestra_resources_ready", &labels).await?;
        let broken = scenario.metric(broken, &labels).await?;
        ensure!(
            ready < 0.5 && broken > 4.5,
            "{ready} ready, {broken} broken"
        );
        Ok(Some(()))
    })
    .await?;

    // Neither a restart nor a broken object of a tenant changes the verdict.
    scenario.terminate()?;
    scenario.start().await?;
    waters::pond(&scenario, "worse", &json!({ "size": "more" })).await?;
    let stalls = |pond: &Value| condition(pond, "Stalled").is_some();
    let ponds = scenario.objects("ponds");
    ponds.until("worse", "fails", LIMIT, stalls).await?;
    let katalog = until_counted(&scenario, "0/7").await?;
    let ready = condition(&katalog, "Ready").context("no condition")?;
    ensure!(ready["reason"] == "InstancesFailing", "{ready}");
    let failing = condition(&katalog, "InstancesFailing").context("no condition")?;
    let message = waters::text(failing, "/message");
    ensure!(message.contains("5 of 5 custom resources"), "{message}");

    scenario.apply(&revision("Gi")?)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let katalog = until_counted(&scenario, "5/7").await?;
    ensure!(
        condition(&katalog, "InstancesFailing").is_none(),
        "{katalog}"
    );
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_that_a_revision_breaks_are_reported_and_within_the_permitted_share() -> Result<()> {
    let permissive = |unit: &str| -> Result<String> {
        let katalog = revision(unit)?;
        let box_ = "      operatorBox:\n";
        let queue = "      operatorBox:\n        reconciler: { queue: { failingPercent: 100 } }\n";
        Ok(katalog.replace(box_, queue))
    };
    let katalog = permissive("Gi")?;
    let mut scenario = Scenario::with_katalog("permitted", &["kinds/crds.yaml"], &katalog).await?;
    waters::pond(&scenario, "a", &json!({ "size": "1" })).await?;
    scenario.objects("ponds").until_ready("a").await?;
    scenario.apply(&permissive("Gx")?)?;
    let reports = |katalog: &Value| condition(katalog, "InstancesFailing").is_some();
    let katalogs = scenario.objects("katalogs");
    katalogs
        .until("waters", "reports it", LIMIT, reports)
        .await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    scenario.check_running()
}
