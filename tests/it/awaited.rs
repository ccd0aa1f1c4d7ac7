//! Children that are not ready: the status says how far they are, and what the Pods and Events behind them report.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters;

/// Waits until the Pond's condition has all of these parts.
async fn until_said(scenario: &Scenario, name: &str, parts: &[&str]) -> Result<Value> {
    let says = |pond: &Value| {
        condition(pond, "Ready").is_some_and(|ready| {
            let message = waters::text(ready, "/message");
            ready["status"] == "False" && parts.iter().all(|part| message.contains(part))
        })
    };
    let ponds = scenario.objects("ponds");
    ponds
        .until(name, "says what it waits for", LIMIT, says)
        .await
}

/// The controller has only the permissions that are derived from its Katalog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_resource_that_waits_for_a_workload_says_what_is_behind_it() -> Result<()> {
    let mut scenario = Scenario::running("awaited", &["kinds/crds.yaml"], "awaited.yaml").await?;
    let quotas = scenario.objects("resourcequotas");
    let none = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    quotas.create(&none).await?;
    quotas
        .until_equal("none", "/status/hard/pods", json!("0"), LIMIT)
        .await?;
    waters::pond(&scenario, "full", &json!({})).await?;
    let parts = [
        "StatefulSet",
        "full-db",
        "0 of 1 replicas ready",
        "exceeded quota: none",
    ];
    until_said(&scenario, "full", &parts).await?;

    quotas.delete("none").await?;
    let pods = scenario.objects("pods");
    waters::pond(&scenario, "lost", &json!({})).await?;
    pods.until("lost-db-0", "exists", LIMIT, |_| true).await?;
    // No node runs it: this is what a kubelet would report.
    let status = json!({ "status": { "phase": "Pending", "containerStatuses": [{
        "name": "lost-db", "image": "registry.example/db:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } },
    }] } });
    pods.patch("lost-db-0/status", &status).await?;
    let parts = [
        "lost-db",
        "0 of 1 replicas ready",
        "Pod lost-db-0",
        "ImagePullBackOff",
    ];
    until_said(&scenario, "lost", &parts).await?;
    scenario.check_running()
}
