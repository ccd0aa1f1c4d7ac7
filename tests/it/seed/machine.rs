//! The sample of a state machine: one step per pass, triggered by changes and never by a resync.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{changed, demo, demos, running, sample};
use crate::scenario::{LIMIT, Scenario};
use crate::waters;

/// The maximum time for three Jobs, each with a pod.
const DONE: Duration = Duration::from_mins(2);

/// The steps that the sample's status lacks. Without them, its third Job never starts.
const MISSING: &str = r#"            - path: phase
              value: "Running/test"
              when:
                - field: "{{ name .children.job }}"
                  hasSuffix: "-test"
            - path: phase
              value: "Running/notify"
              when:
                - field: "{{ name .children.job }}"
                  hasSuffix: "-notify"
                - field: status.phase
                  notEquals: "Succeeded"
"#;
const LAST: &str = "            - path: phase\n              value: \"Succeeded\"\n";

/// Returns the phases of the Demo `name` in order, up to the phase `last`.
async fn phases(scenario: &Scenario, name: &str, since: &str, last: &str) -> Result<Vec<String>> {
    let gvk = GroupVersionKind::gvk(&scenario.group, "v1", "Demo");
    let demos: Api<DynamicObject> = Api::namespaced_with(
        scenario.client.clone(),
        &scenario.namespace,
        &ApiResource::from_gvk(&gvk),
    );
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = demos.watch(&params, since).await?.boxed();
    let mut seen: Vec<String> = Vec::new();
    while let Some(event) = timeout(DONE, events.try_next()).await?? {
        let (WatchEvent::Added(demo) | WatchEvent::Modified(demo)) = event else {
            continue;
        };
        let phase = demo.data["status"]["phase"].as_str().unwrap_or_default();
        if !phase.is_empty() && seen.last().is_none_or(|before| before != phase) {
            seen.push(phase.to_owned());
        }
        if phase == last {
            break;
        }
    }
    Ok(seen)
}

/// Returns the sample without its resyncs, which its text calls the clock.
fn without_resync() -> Result<String> {
    let unclocked = "operatorBox:\n        reconciler: { resync: 0s }\n";
    changed(&sample("state-machine")?, "operatorBox:\n", unclocked)
}

/// Creates a Demo. Returns its resourceVersion, from which a watch can start.
async fn begin(scenario: &Scenario) -> Result<String> {
    let made = demo(
        scenario,
        "east",
        &json!({ "image": "registry.example/pump:3" }),
    )
    .await?;
    Ok(waters::text(&made, "/metadata/resourceVersion").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn as_printed_the_machine_stops_at_the_declared_state() -> Result<()> {
    let text = without_resync()?;
    let scenario = running("row16a", &text).await?;
    // `ork validate` reports the missing steps before anything runs.
    let file = scenario.file("sample.yaml", &text)?;
    let reported = scenario.ork(&["validate", "--output", "json", &file.display().to_string()])?;
    let problems: Vec<Value> = serde_json::from_str(&reported)?;
    for word in ["`Running/test`", "`Running/notify`", ".children"] {
        let is_reported =
            |one: &Value| one["severity"] == "warning" && one.to_string().contains(word);
        ensure!(problems.iter().any(is_reported), "{word}: {reported}");
    }
    begin(&scenario).await?;
    let jobs = scenario.objects("jobs");
    jobs.until("east-test", "is done", DONE, |job| {
        job["status"]["succeeded"] == 1
    })
    .await?;
    let east = demos(&scenario).until_ready("east").await?;
    assert_eq!(east["status"]["phase"], "Running/build");
    assert_eq!(
        waters::names(&jobs.list().await?),
        ["east-build", "east-test"]
    );
    // The deleted Job is not created again: a Job is created once.
    jobs.delete("east-build").await?;
    jobs.until_gone("east-build", LIMIT).await?;
    let image = json!({ "spec": { "image": "registry.example/pump:4" } });
    let patched = demos(&scenario).patch("east", &image).await?;
    demos(&scenario)
        .until_equal(
            "east",
            "/status/observedGeneration",
            patched["metadata"]["generation"].clone(),
            LIMIT,
        )
        .await?;
    assert_eq!(waters::names(&jobs.list().await?), ["east-test"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn with_its_missing_steps_it_goes_through_each_once_without_a_resync() -> Result<()>
{
    let text = changed(&without_resync()?, LAST, &format!("{MISSING}{LAST}"))?;
    let scenario = running("row16b", &text).await?;
    let since = begin(&scenario).await?;
    let seen = phases(&scenario, "east", &since, "Succeeded").await?;
    assert_eq!(
        seen,
        [
            "Running/build",
            "Running/test",
            "Running/notify",
            "Succeeded"
        ]
    );
    demos(&scenario).until_ready("east").await?;
    waters::ensure_no_writes(&scenario).await?;

    let jobs = scenario.objects("jobs").list().await?;
    assert_eq!(
        waters::names(&jobs),
        ["east-build", "east-notify", "east-test"]
    );
    let uids: BTreeSet<&str> = jobs
        .iter()
        .map(|job| waters::text(job, "/metadata/uid"))
        .collect();
    ensure!(uids.len() == 3, "{uids:?}");
    Ok(())
}
