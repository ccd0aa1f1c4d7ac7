//! The seed's state machine: one step a pass, driven by what changes and never by a resync.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use serde_json::json;

use crate::scenario::Scenario;
use crate::waters;

/// How long three Jobs may take, each with a pod.
const DONE: Duration = Duration::from_mins(2);

/// The phases that the Pond of that name goes through until one of them is `last`, in order.
async fn phases(scenario: &Scenario, name: &str, since: &str, last: &str) -> Result<Vec<String>> {
    let gvk = GroupVersionKind::gvk(&scenario.group, "v1alpha1", "Pond");
    let ponds: Api<DynamicObject> = Api::namespaced_with(
        scenario.client.clone(),
        &scenario.namespace,
        &ApiResource::from_gvk(&gvk),
    );
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let events = ponds
        .watch(&params, since)
        .await?
        .take_until(tokio::time::sleep(DONE));
    let mut events = std::pin::pin!(events);
    let mut seen: Vec<String> = Vec::new();
    while let Some(event) = events.try_next().await? {
        let (WatchEvent::Added(pond) | WatchEvent::Modified(pond)) = event else {
            continue;
        };
        let phase = pond.data["status"]["phase"].as_str().unwrap_or_default();
        if !phase.is_empty() && seen.last().is_none_or(|before| before != phase) {
            seen.push(phase.to_owned());
        }
        if phase == last {
            break;
        }
    }
    Ok(seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_16_a_state_machine_of_jobs_goes_through_each_step_once_without_a_resync() -> Result<()>
{
    let katalog = "conditions/state-machine.yaml";
    let scenario = Scenario::running("machine", &["kinds/crds.yaml"], katalog).await?;
    let spec = json!({ "image": "registry.example/pump:3" });
    let made = waters::pond(&scenario, "east", &spec).await?;
    let since = waters::text(&made, "/metadata/resourceVersion").to_owned();
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
    scenario.objects("ponds").until_ready("east").await?;
    waters::until_counted().await;
    waters::ensure_no_writes(&scenario, Duration::from_secs(5)).await?;

    let jobs = scenario.objects("jobs").list().await?;
    ensure!(
        waters::names(&jobs) == ["east-build", "east-notify", "east-test"],
        "{:?}",
        waters::names(&jobs)
    );
    let uids: BTreeSet<&str> = jobs
        .iter()
        .map(|job| waters::text(job, "/metadata/uid"))
        .collect();
    ensure!(uids.len() == 3, "{uids:?}");
    Ok(())
}
