//! `onDelete`: ordered groups, Jobs, the timeout, and the annotation that skips it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{eventually, namespace};

use crate::scenario::{LIMIT, NAMESPACE_LIMIT, Objects, Scenario, condition, input};

const CRD: &str = "lifecycle/grove-crd.yaml";

/// Starts an operator of groves whose `onDelete` has a timeout.
async fn running(prefix: &str, timeout: &str) -> Result<Scenario> {
    let mut scenario = Scenario::new(prefix).await?;
    let katalog = input("lifecycle/ending.yaml")?.replace("TIMEOUT", timeout);
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&input(CRD)?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("ending", "True", "Running").await?;
    Ok(scenario)
}

/// Creates a grove, and waits until it is ready.
async fn grove(scenario: &Scenario, namespace: &str, spec: Value) -> Result<Objects> {
    let groves = scenario.objects_in(namespace, "groves");
    let grove = json!({
        "apiVersion": format!("{}/v1alpha1", scenario.group), "kind": "Grove",
        "metadata": { "name": "elms" }, "spec": spec,
    });
    groves.create(&grove).await?;
    groves.until_ready("elms").await?;
    Ok(groves)
}

fn says(reason: &'static str) -> impl Fn(&Value) -> bool {
    move |grove| condition(grove, "Ready").is_some_and(|ready| ready["reason"] == reason)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_continues_step_by_step_across_a_restart_and_runs_each_job_once() -> Result<()> {
    let mut scenario = running("steps", "5m").await?;
    let space = scenario.namespace.clone();
    let groves = grove(&scenario, &space, json!({})).await?;
    let (jobs, maps) = (scenario.objects("jobs"), scenario.objects("configmaps"));
    let mark = Scenario::mark()?;
    groves.delete("elms").await?;
    let waits = groves.until("elms", "waits", LIMIT, says("Ending")).await?;
    let message = condition(&waits, "Ready").map(|ready| ready["message"].to_string());
    ensure!(message.is_some_and(|text| text.contains("`drain` of `onDelete`")));
    let drain = jobs.fetch("elms-drain").await?;
    assert_eq!(drain["metadata"].get("ownerReferences"), None);
    assert_eq!(jobs.get("elms-last").await?, None);

    scenario.kill9()?;
    scenario.start().await?;
    maps.fetch("elms-front").await?;
    jobs.patch("elms-drain", &json!({ "spec": { "suspend": false } }))
        .await?;
    groves.until_gone("elms", LIMIT).await?;
    assert_eq!(maps.get("elms-front").await?, None);
    for job in ["elms-drain", "elms-last"] {
        jobs.until_gone(job, LIMIT).await?;
    }
    scenario.until_idle().await?;
    let writes = scenario.writes_since(mark)?;
    let mut made: Vec<&str> = writes
        .iter()
        .filter(|write| write.resource == "jobs" && write.verb == "create" && write.code < 300)
        .map(|write| write.name.as_str())
        .collect();
    made.sort_unstable();
    assert_eq!(made, ["elms-drain", "elms-last"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn after_the_timeout_the_resource_stays_until_it_is_released() -> Result<()> {
    let scenario = running("late", "2s").await?;
    let space = scenario.namespace.clone();
    let groves = grove(&scenario, &space, json!({})).await?;
    groves.delete("elms").await?;
    let late = groves
        .until("elms", "times out", LIMIT, says("EndTimedOut"))
        .await?;
    // The group may still complete, so the grove is `Reconciling` and not `Stalled`.
    ensure!(condition(&late, "Reconciling").is_some() && condition(&late, "Stalled").is_none());
    eventually("a warning is reported", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let warned = events
            .iter()
            .any(|event| event["reason"] == "EndTimedOut" && event["type"] == "Warning");
        Ok(warned.then_some(()))
    })
    .await?;
    scenario.objects("configmaps").fetch("elms-front").await?;
    let skip =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
    groves.patch("elms", &skip).await?;
    groves.until_gone("elms", LIMIT).await?;
    scenario
        .objects("jobs")
        .until_gone("elms-drain", LIMIT)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_cannot_be_rendered_waits_and_says_so() -> Result<()> {
    let scenario = running("unsaid", "5m").await?;
    let space = scenario.namespace.clone();
    let groves = grove(&scenario, &space, json!({ "suffix": "-NOT LEGAL" })).await?;
    groves.delete("elms").await?;
    groves
        .until("elms", "reports why", LIMIT, says("InvalidName"))
        .await?;
    let skip =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
    groves.patch("elms", &skip).await?;
    groves.until_gone("elms", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_deleted_does_not_wait_for_jobs_that_cannot_be_made() -> Result<()> {
    let scenario = running("doomed", "5m").await?;
    let doomed = namespace(&scenario.client, "doomed").await?;
    testbed::ControlPlane::shared().relearn_kinds()?;
    grove(&scenario, &doomed, json!({})).await?;
    let spaces = Objects::of_cluster(&scenario.client, "namespaces");
    spaces.delete(&doomed).await?;
    spaces.until_gone(&doomed, NAMESPACE_LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_whose_policy_is_to_delete_goes_after_its_resources() -> Result<()> {
    let mut scenario = Scenario::new("policy").await?;
    let katalog = input("lifecycle/ending.yaml")?
        .replace("TIMEOUT", "5m")
        .replace("spec:\n  crds:", "spec:\n  deletionPolicy: delete\n  crds:");
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&input(CRD)?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("ending", "True", "Running").await?;
    let space = scenario.namespace.clone();
    let groves = grove(&scenario, &space, json!({})).await?;
    scenario.kubectl(&["delete", "katalog", "ending", "--wait=false"])?;
    groves.until("elms", "waits", LIMIT, says("Ending")).await?;
    let katalogs = scenario.objects("katalogs");
    let waits = format!("1 Grove.{} (first {space}/elms: ", scenario.group);
    katalogs
        .until("ending", "reports the remaining grove", LIMIT, |katalog| {
            condition(katalog, "Ready").is_some_and(|ready| {
                let message = ready["message"].as_str().unwrap_or_default();
                ready["reason"] == "Terminating"
                    && message.contains(&waits)
                    && message.contains("elms-drain")
            })
        })
        .await?;
    // After a restart the deletion continues.
    scenario.kill9()?;
    scenario.start().await?;
    katalogs.fetch("ending").await?;
    let jobs = scenario.objects("jobs");
    jobs.patch("elms-drain", &json!({ "spec": { "suspend": false } }))
        .await?;
    groves.until_gone("elms", LIMIT).await?;
    katalogs.until_gone("ending", LIMIT).await
}
