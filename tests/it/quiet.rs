//! Requests and writes: a converged operator sends none, a restart writes nothing, and a change writes only the changed objects.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use serde_json::{Value, json};
use testbed::{AuditEvent, eventually};
use tokio::time::timeout;

use crate::scenario::{LIMIT, Objects, Scenario, input, is_ready};
use crate::waters;

/// The number of children of one Pond in `tests/inputs/quiet/katalog.yaml`.
const CHILDREN: usize = 11;
const PONDS: usize = 50;
/// The time in which the controller must send no request.
const WINDOW: Duration = Duration::from_mins(1);
/// The maximum time until 50 Ponds, each with a pod, are ready.
const CONVERGED: Duration = Duration::from_mins(4);

fn spec(colour: &str) -> Value {
    json!({ "colour": colour, "image": "registry.example/pond:3", "replicas": 1, "port": 8080 })
}

/// Returns the writes for Ponds. Writes of the Katalog's own status and revisions are coalesced and do not belong to a Pond.
fn about_ponds(mut writes: Vec<AuditEvent>) -> Vec<AuditEvent> {
    writes.retain(|write| write.resource != "katalogs" && write.resource != "controllerrevisions");
    writes
}

/// Returns every status that the Pond `name` had from the resourceVersion `since` to the resourceVersion `last`.
async fn statuses(
    scenario: &Scenario,
    name: &str,
    (since, last): (&str, &str),
) -> Result<BTreeSet<String>> {
    let gvk = GroupVersionKind::gvk(&scenario.group, "v1alpha1", "Pond");
    let ponds: Api<DynamicObject> = Api::namespaced_with(
        scenario.client.clone(),
        &scenario.namespace,
        &ApiResource::from_gvk(&gvk),
    );
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = ponds.watch(&params, since).await?.boxed();
    let mut seen = BTreeSet::new();
    while let Some(event) = timeout(LIMIT, events.try_next()).await?? {
        if let WatchEvent::Added(pond) | WatchEvent::Modified(pond) = event {
            seen.extend(pond.data.get("status").map(Value::to_string));
            if pond.metadata.resource_version.as_deref() == Some(last) {
                break;
            }
        }
    }
    Ok(seen)
}

/// Checks that the writes for one Pond are its finalizer, its children, and one write for each distinct status.
async fn ensure_price_of_one(scenario: &Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    let made = waters::pond(scenario, "first", &spec("green")).await?;
    let since = waters::text(&made, "/metadata/resourceVersion").to_owned();
    let ready = scenario.objects("ponds").until_ready("first").await?;
    ensure!(ready["status"]["running"] == 1, "{}", ready["status"]);
    waters::until_counted(scenario).await?;
    let last = waters::version(&scenario.objects("ponds"), "first").await?;
    let states = statuses(scenario, "first", (&since, &last)).await?;
    let writes = about_ponds(scenario.writes_since(mark)?);
    println!(
        "a Pond with {CHILDREN} children: {} writes, {} states of its status",
        writes.len(),
        states.len()
    );
    ensure!(
        writes.len() == CHILDREN + 1 + states.len(),
        "{} writes for {CHILDREN} children and {} states {states:#?}:\n{}",
        writes.len(),
        states.len(),
        waters::lines(&writes)
    );
    Ok(())
}

async fn until_all_ready(scenario: &Scenario) -> Result<()> {
    eventually("all Ponds are ready", CONVERGED, async || {
        let ponds = scenario.objects("ponds").list().await?;
        let ready = ponds.iter().filter(|pond| is_ready(pond)).count();
        ensure!(ready == PONDS, "{ready} of {} are ready", ponds.len());
        Ok(Some(()))
    })
    .await
}

/// Waits until a controller that was just started has reconciled and counted every Pond.
async fn until_all_looked_at(scenario: &Scenario) -> Result<()> {
    scenario.until_passes("pond", 50.0).await?;
    waters::until_counted(scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn what_is_as_declared_costs_no_request_a_restart_no_write_and_a_change_exactly_one()
-> Result<()> {
    let mut scenario = Scenario::new("quiet").await?;
    let katalog = input("quiet/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    ensure_price_of_one(&scenario).await?;

    let (started, mark) = (Instant::now(), Scenario::mark()?);
    for index in 1..PONDS {
        waters::pond(&scenario, &format!("p{index:02}"), &spec("green")).await?;
    }
    until_all_ready(&scenario).await?;
    let writes = about_ponds(scenario.writes_since(mark)?).len();
    println!(
        "{} Ponds ready in {:?} with {writes} writes",
        PONDS - 1,
        started.elapsed()
    );
    waters::until_counted(&scenario).await?;

    ensure_silence(&scenario).await?;
    ensure_unread_annotation_is_free(&scenario).await?;
    ensure_restart_is_free(&mut scenario).await?;
    ensure_change_costs_one(&mut scenario).await?;
    scenario.check_running()
}

/// Checks that the controller sends no request while nothing changes.
async fn ensure_silence(scenario: &Scenario) -> Result<()> {
    // Something that is asked for again and again would not end.
    scenario.until_no_requests((WINDOW, CONVERGED)).await
}

/// Checks that a change of an annotation that no template reads causes no write.
async fn ensure_unread_annotation_is_free(scenario: &Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    scenario
        .objects("ponds")
        .patch(
            "p07",
            &json!({ "metadata": { "annotations": { "example.org/note": "unread" } } }),
        )
        .await?;
    // The watch delivers the request for a pass of another Pond later.
    let ponds = scenario.objects("ponds");
    scenario.until_handled(&ponds, "p08").await?;
    let writes = waters::without_repeats(scenario.writes_since(mark)?);
    ensure!(
        writes.is_empty(),
        "a changed annotation causes writes:\n{}",
        waters::lines(&writes)
    );
    Ok(())
}

/// Checks that a restart causes no write.
async fn ensure_restart_is_free(scenario: &mut Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    scenario.terminate()?;
    scenario.start().await?;
    until_all_looked_at(scenario).await?;
    let writes = scenario.writes_since(mark)?;
    ensure!(
        writes.is_empty(),
        "a restart causes {} writes:\n{}",
        writes.len(),
        waters::lines(&writes)
    );
    Ok(())
}

/// Checks that a change of a child while no controller ran causes one write.
async fn ensure_change_costs_one(scenario: &mut Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    scenario.kill9()?;
    // The change is in the template of a `CronJob`: it causes no rollout and changes no status.
    change_image(scenario).await?;
    scenario.start().await?;
    let jobs = cron_jobs(scenario);
    let image = "/spec/jobTemplate/spec/template/spec/containers/0/image";
    jobs.until_equal("p11", image, json!("registry.example/sweep:1"), CONVERGED)
        .await?;
    until_all_looked_at(scenario).await?;
    let writes = scenario.writes_since(mark)?;
    ensure!(
        writes.len() == 1,
        "one changed image causes {} writes:\n{}",
        writes.len(),
        waters::lines(&writes)
    );
    ensure!(
        writes[0].name == "p11" && writes[0].resource == "cronjobs",
        "{}",
        waters::lines(&writes)
    );
    Ok(())
}

fn cron_jobs(scenario: &Scenario) -> Objects {
    Objects::at(
        &scenario.client,
        &format!("/apis/batch/v1/namespaces/{}/cronjobs", scenario.namespace),
    )
}

async fn change_image(scenario: &Scenario) -> Result<()> {
    let jobs = cron_jobs(scenario);
    let mut job = jobs.fetch("p11").await?;
    let container = job
        .pointer_mut("/spec/jobTemplate/spec/template/spec/containers")
        .context("the CronJob has no containers")?;
    container[0]["image"] = json!("registry.example/other:9");
    let patch = json!({ "spec": { "jobTemplate": { "spec": { "template": { "spec": { "containers": container } } } } } });
    jobs.patch("p11", &patch).await.map(drop)
}
