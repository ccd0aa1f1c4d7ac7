//! Failures: a failed child does not block others, several failing resources degrade their operator, and each change is reported.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Objects, Scenario, condition};
use crate::waters;

const KATALOG: &str = "failure/katalog.yaml";

async fn running(prefix: &str) -> Result<Scenario> {
    Scenario::running(prefix, &["kinds/crds.yaml"], KATALOG).await
}

/// Returns the Events about the Katalog with that reason.
async fn reported(scenario: &Scenario, reason: &str) -> Result<Vec<Value>> {
    let mut events = scenario.objects("events").list().await?;
    events
        .retain(|event| event["involvedObject"]["kind"] == "Katalog" && event["reason"] == reason);
    Ok(events)
}

/// Returns the number of times that the Events were sent: a repeated Event increases its count.
fn times(events: &[Value]) -> u64 {
    let count = |event: &Value| event["series"]["count"].as_u64().unwrap_or(1);
    events.iter().map(count).sum()
}

async fn until_reported(scenario: &Scenario, reason: &str, expected: u64) -> Result<Vec<Value>> {
    eventually("the Katalog's Events", LIMIT, async || {
        let events = reported(scenario, reason).await?;
        ensure!(times(&events) == expected, "{reason}: {events:#?}");
        Ok(Some(events))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn children_that_fail_keep_no_other_from_being_written_and_each_is_reported()
-> Result<()> {
    let mut scenario = running("partial").await?;
    // One child has an invalid name, one a missing namespace, and one the name of an object that Orkestra did not create.
    let foreign = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "deep-shore" }, "data": { "of": "others" } });
    scenario.objects("configmaps").create(&foreign).await?;
    let spec = json!({ "bed": "No Name At All", "colour": "blue", "elsewhere": "nowhere-at-all" });
    waters::lake(&scenario, "deep", &spec).await?;
    let secrets = scenario.objects("secrets");
    secrets
        .until("deep-key", "is written", LIMIT, |_| true)
        .await?;

    let lakes = scenario.objects("lakes");
    the_status_names_all_three(&lakes).await?;
    an_event_names_all_three(&scenario).await?;
    let shore = scenario.objects("configmaps").fetch("deep-shore").await?;
    assert_eq!(
        shore["data"],
        json!({ "of": "others" }),
        "a foreign object was written"
    );

    // Each failure is fixed separately.
    lakes
        .patch(
            "deep",
            &json!({ "spec": { "bed": "stones", "elsewhere": null } }),
        )
        .await?;
    let maps = scenario.objects("configmaps");
    maps.until("stones", "is written", LIMIT, |_| true).await?;
    secrets
        .until("deep-depth", "is written", LIMIT, |_| true)
        .await?;
    maps.delete("deep-shore").await?;
    // The controller does not watch foreign objects: it retries about every 30 s.
    lakes
        .until("deep", "is ready", LIMIT * 2, crate::scenario::is_ready)
        .await?;
    scenario.check_running()
}

/// Waits until the Lake's condition names the three failures, and checks that the pass will be retried.
async fn the_status_names_all_three(lakes: &Objects) -> Result<()> {
    let failed = lakes
        .until("deep", "reports all three", LIMIT, |lake| {
            condition(lake, "Reconciling").is_some_and(|reconciling| {
                let message = waters::text(reconciling, "/message");
                ["No Name At All", "nowhere-at-all/deep-depth", "/deep-shore"]
                    .iter()
                    .all(|part| message.contains(part))
            })
        })
        .await?;
    // `Ready` names the first of them, and counts the others.
    let ready = condition(&failed, "Ready").context("no condition")?;
    ensure!(ready["status"] == "False", "{ready}");
    ensure!(
        waters::text(ready, "/message").ends_with("; and 2 more"),
        "{ready}"
    );
    // The transient failure determines the reason, because the pass is retried.
    ensure!(ready["reason"] == "NamespaceMissing", "{ready}");
    ensure!(condition(&failed, "Stalled").is_none(), "{failed}");
    Ok(())
}

/// Waits until one Event names the three failures.
async fn an_event_names_all_three(scenario: &Scenario) -> Result<()> {
    eventually("an Event names all three", LIMIT, async || {
        let events = waters::warnings(scenario, "deep").await?;
        let names_all = |event: &Value| {
            let note = waters::text(event, "/message");
            ["No Name At All", "deep-depth", "deep-shore"]
                .iter()
                .all(|part| note.contains(part))
        };
        ensure!(events.iter().any(names_all), "{events:#?}");
        Ok(Some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn an_operator_is_degraded_and_recovers_and_each_is_reported_once() -> Result<()> {
    let mut scenario = running("degraded").await?;
    let lakes = scenario.objects("lakes");
    let spec = |bed: &str| json!({ "bed": bed, "colour": "blue" });
    waters::lake(&scenario, "calm", &spec("sand")).await?;
    lakes.until_ready("calm").await?;
    // Two failing resources of three are too few to degrade the operator, however often they are retried.
    waters::forbid_accounts(&scenario).await?;
    let failing =
        |name: &str| json!({ "bed": format!("bed-{name}"), "colour": "blue", "keeper": "yes" });
    let fails =
        |lake: &Value| condition(lake, "Ready").is_some_and(|one| one["reason"] == "Denied");
    for name in ["one", "two"] {
        waters::lake(&scenario, name, &failing(name)).await?;
        lakes.until(name, "fails", LIMIT, fails).await?;
    }
    eventually("both are retried", LIMIT, async || {
        let page = scenario.page("/katalog/lake/health").await?;
        let failures = page["consecutiveFails"].as_u64();
        Ok(failures.is_some_and(|failures| failures > 4).then_some(()))
    })
    .await?;
    let page = scenario.page("/katalog/lake/health").await?;
    ensure!(page["state"] == "healthy", "{page}");

    waters::lake(&scenario, "three", &failing("three")).await?;
    everything_says_that_the_operator_is_degraded(&scenario).await?;

    // Further failures are not reported again, and a single success is no recovery.
    waters::lake(&scenario, "four", &failing("four")).await?;
    lakes.until("four", "fails", LIMIT, fails).await?;
    lakes
        .patch("calm", &json!({ "spec": { "colour": "red" } }))
        .await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("sand", "/data/colour", json!("red"), LIMIT)
        .await?;
    let page = scenario.page("/katalog/lake/health").await?;
    ensure!(page["state"] == "degraded", "{page}");

    the_operator_recovers(&scenario, &lakes).await?;
    scenario.check_running()
}

/// Checks that the Katalog, the page, the metrics and one Event report the degraded operator.
async fn everything_says_that_the_operator_is_degraded(scenario: &Scenario) -> Result<()> {
    let wanted = json!({ "state": "Degraded", "reason": "PassesFail" });
    let katalog = scenario.operator_reports("waters", "lake", &wanted).await?;
    let reported = condition(&katalog, "Degraded").context("no condition")?;
    ensure!(
        reported["status"] == "True" && reported["reason"] == "PassesFail",
        "{reported}"
    );
    ensure!(
        waters::text(reported, "/message").starts_with("lake: 3 of 4 custom resources fail"),
        "{reported}"
    );
    // A degraded operator does not make the Katalog unready: all operators run.
    ensure!(condition(&katalog, "Ready").is_some_and(|one| one["status"] == "True"));
    ensure!(
        scenario
            .http("/katalog/lake/health")
            .await?
            .starts_with("HTTP/1.1 503")
    );
    let of_lake = [("crd", "lake")];
    ensure!(scenario.metric("orkestra_degraded", &of_lake).await? > 0.5);
    ensure!(
        scenario
            .metric("orkestra_degraded", &[("crd", "pond")])
            .await?
            < 0.5
    );
    let events = until_reported(scenario, "PassesFail", 1).await?;
    ensure!(events[0]["type"] == "Warning", "{events:#?}");
    Ok(())
}

/// Corrects the Lakes that fail, and waits until the operator's recovery is reported everywhere, once.
async fn the_operator_recovers(scenario: &Scenario, lakes: &Objects) -> Result<()> {
    for name in ["one", "two", "three", "four"] {
        let fixed = json!({ "spec": { "bed": format!("bed-{name}"), "keeper": "no" } });
        lakes.patch(name, &fixed).await?;
        lakes.until_ready(name).await?;
    }
    let katalog = scenario.operator_is("waters", "lake", "Running").await?;
    ensure!(condition(&katalog, "Degraded").is_none(), "{katalog}");
    until_reported(scenario, "Recovered", 1).await?;
    until_reported(scenario, "PassesFail", 1).await?;
    let of_lake = [("crd", "lake")];
    eventually("the metric follows", LIMIT, async || {
        Ok((scenario.metric("orkestra_degraded", &of_lake).await? < 0.5).then_some(()))
    })
    .await
}
