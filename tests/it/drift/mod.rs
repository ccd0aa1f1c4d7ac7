//! Drift: changes that other clients make to children are corrected within a second; fields of other managers are left alone.

mod conflicts;
mod refused;
mod volumes;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testbed::{AuditEvent, ControlPlane, Mark, eventually};

use crate::scenario::{LIMIT, Scenario, condition, input, within};
use crate::waters;

/// The limit for a drift correction.
const SOON: Duration = Duration::from_secs(1);

/// Starts a scenario without resync, with a ready Website that has a Deployment, a Service and a `ConfigMap`.
async fn converged(prefix: &str) -> Result<Scenario> {
    converged_by(prefix, "drift/katalog.yaml").await
}

/// Starts a scenario without resync, with a ready Website.
async fn converged_by(prefix: &str, katalog: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &["website/crd.yaml"], katalog).await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    scenario.objects("websites").until_ready("hello").await?;
    let reported = json!({ "instances": 1, "ready": 1 });
    scenario
        .operator_reports("drift", "website", &reported)
        .await?;
    Ok(scenario)
}

/// Returns the time from the administrator's first write to the controller's next write, by the API server's clock.
fn reaction(scenario: &Scenario, since: Mark, resource: &str) -> Result<Duration> {
    let ours = scenario.identity.user();
    let written: Vec<AuditEvent> = ControlPlane::shared()
        .audit_since(since)?
        .into_iter()
        .filter(|event| event.namespace == scenario.namespace && event.resource == resource)
        .filter(|event| event.is_write() && event.subresource != "status" && event.code < 300)
        .collect();
    let change = written
        .iter()
        .find(|event| event.user == "testbed-admin")
        .context("no change is logged")?;
    let repair = written
        .iter()
        .find(|event| event.user == ours && event.timestamp > change.timestamp)
        .context("no correction is logged")?;
    Ok(repair
        .timestamp
        .duration_since(change.timestamp)
        .unsigned_abs())
}

/// Makes changes to an object until one is corrected soon. `change` makes one, and waits until it is corrected. The audit log may
/// show a correction later: the API server logs a request before it answers, but other clients may see the change before that.
async fn is_corrected_soon(
    scenario: &Scenario,
    (resource, what): (&str, &str),
    mut change: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let what = format!("{what} is corrected");
    within(&what, SOON, async || {
        let mark = Scenario::mark()?;
        change().await?;
        eventually("the log has the write", LIMIT, async || {
            reaction(scenario, mark, resource).map(Some)
        })
        .await
    })
    .await
    .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_changes_or_deletes_is_corrected_within_a_second() -> Result<()> {
    let scenario = converged("repair").await?;
    let deployments = scenario.objects("deployments");

    is_corrected_soon(&scenario, ("deployments", "kubectl scale"), async || {
        scenario.kubectl(&["scale", "deployment", "hello", "--replicas=5"])?;
        deployments
            .until_equal("hello", "/spec/replicas", json!(2), LIMIT)
            .await
            .map(drop)
    })
    .await?;

    is_corrected_soon(
        &scenario,
        ("deployments", "kubectl set image"),
        async || {
            let other = ["deployment/hello", "*=registry.example/evil:1"];
            scenario.kubectl(&[&["set", "image"], &other[..]].concat())?;
            let image = "/spec/template/spec/containers/0/image";
            deployments
                .until_equal("hello", image, json!("registry.example/web:3"), LIMIT)
                .await
                .map(drop)
        },
    )
    .await?;

    let maps = scenario.objects("configmaps");
    is_corrected_soon(&scenario, ("configmaps", "a removed key"), async || {
        let gone = r#"[{"op":"remove","path":"/data/colour"}]"#;
        scenario.kubectl(&["patch", "configmap", "hello", "--type=json", "-p", gone])?;
        let declared = json!({ "colour": "teal", "size": "3" });
        maps.until_equal("hello", "/data", declared, LIMIT)
            .await
            .map(drop)
    })
    .await?;

    let services = scenario.objects("services");
    is_corrected_soon(&scenario, ("services", "a deleted Service"), async || {
        let before = services.fetch("hello").await?["metadata"]["uid"].clone();
        scenario.kubectl(&["delete", "service", "hello", "--wait=false"])?;
        services
            .until("hello", "is recreated", LIMIT, |service| {
                service["metadata"]["uid"] != before
            })
            .await
            .map(drop)
    })
    .await?;
    scenario.objects("websites").until_ready("hello").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_somebody_else_stays_and_costs_nothing() -> Result<()> {
    let scenario = converged("foreign").await?;
    let maps = scenario.objects("configmaps");
    // The Katalog's status counts the resource as ready a little later.
    scenario.until_settled().await?;
    let mark = Scenario::mark()?;
    scenario.kubectl(&["label", "configmap", "hello", "team=herons"])?;
    scenario.kubectl(&["label", "deployment", "hello", "team=herons"])?;
    scenario.kubectl(&["annotate", "service", "hello", "note=mine"])?;
    maps.patch("hello", &json!({ "data": { "theirs": "kept" } }))
        .await?;
    // None of these changes is drift. The watches report drift of other fields later, and the fields stay when it is corrected.
    maps.patch("hello", &json!({ "data": { "colour": "red" } }))
        .await?;
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=5"])?;
    let services = scenario.objects("services");
    let selector = services.fetch("hello").await?["spec"]["selector"].clone();
    let other = json!({ "spec": { "selector": { "app": "other" } } });
    services.patch("hello", &other).await?;
    maps.until_equal("hello", "/data/colour", json!("teal"), LIMIT)
        .await?;
    let deployments = scenario.objects("deployments");
    deployments
        .until_equal("hello", "/spec/replicas", json!(2), LIMIT)
        .await?;
    services
        .until_equal("hello", "/spec/selector", selector, LIMIT)
        .await?;
    scenario.until_idle().await?;
    let mut writes = scenario.writes_since(mark)?;
    // An apply without force may have been refused before.
    writes
        .retain(|write| write.name == "hello" && write.subresource.is_empty() && write.code < 300);
    ensure!(writes.len() == 3, "{}", waters::lines(&writes));
    let websites = scenario.objects("websites");
    websites
        .patch("hello", &json!({ "spec": { "replicas": 3 } }))
        .await?;
    scenario
        .objects("deployments")
        .until_equal("hello", "/spec/replicas", json!(3), LIMIT)
        .await?;
    let map = maps.fetch("hello").await?;
    assert_eq!(map["metadata"]["labels"]["team"], "herons");
    assert_eq!(map["data"]["theirs"], "kept");
    let deployment = scenario.objects("deployments").fetch("hello").await?;
    assert_eq!(deployment["metadata"]["labels"]["team"], "herons");
    let service = scenario.objects("services").fetch("hello").await?;
    assert_eq!(service["metadata"]["annotations"]["note"], "mine");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_autoscaler_that_targets_the_deployment_takes_replicas_over() -> Result<()> {
    let scenario = converged("scaled").await?;
    let deployments = scenario.objects("deployments");
    scenario
        .objects("horizontalpodautoscalers")
        .create(&json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "hello" },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "hello" },
                "minReplicas": 4,
                "maxReplicas": 6,
            },
        }))
        .await?;
    // Use the scale subresource, as the autoscaler's controller does.
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=4"])?;
    let websites = scenario.objects("websites");
    websites
        .until("hello", "is autoscaled", LIMIT, |website| {
            condition(website, "Autoscaled").is_some()
        })
        .await?;
    assert_eq!(
        deployments.fetch("hello").await?["spec"]["replicas"],
        json!(4)
    );
    let website = scenario.objects("websites").until_ready("hello").await?;
    assert_eq!(condition(&website, "FieldConflict"), None);

    // Only `replicas` is left to the autoscaler: drift of the image is corrected, and the correction does not change `replicas`.
    scenario.kubectl(&[
        "set",
        "image",
        "deployment/hello",
        "*=registry.example/evil:1",
    ])?;
    let image = "/spec/template/spec/containers/0/image";
    let repaired = deployments
        .until_equal("hello", image, json!("registry.example/web:3"), LIMIT)
        .await?;
    assert_eq!(repaired["spec"]["replicas"], json!(4));
    Ok(())
}
