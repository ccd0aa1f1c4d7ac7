//! Fields that an autoscaler releases are applied again, and an empty map that another field manager applies owns no fields.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition, input};

/// Starts a scenario without resync, with a ready Website that has a Deployment, a Service and a `ConfigMap`.
async fn converged(prefix: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &["website/crd.yaml"], "drift/katalog.yaml").await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    scenario.objects("websites").until_ready("hello").await?;
    Ok(scenario)
}

fn autoscaler(target: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "hello" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": target },
            "minReplicas": 4,
            "maxReplicas": 6,
        },
    })
}

fn is_autoscaled(website: &Value) -> bool {
    let autoscaled = condition(website, "Autoscaled");
    let message = autoscaled.and_then(|one| one["message"].as_str());
    message.is_some_and(|text| text.contains("`hello`") && text.contains("spec.replicas"))
}

/// Creates an autoscaler for the Deployment and scales it, and waits until the condition `Autoscaled` is reported.
async fn scaled(scenario: &Scenario) -> Result<()> {
    let scalers = scenario.objects("horizontalpodautoscalers");
    scalers.create(&autoscaler("hello")).await?;
    // Use the scale subresource, as the autoscaler's controller does.
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=5"])?;
    let websites = scenario.objects("websites");
    let website = websites
        .until("hello", "is autoscaled", LIMIT, is_autoscaled)
        .await?;
    assert_eq!(condition(&website, "FieldConflict"), None);
    Ok(())
}

/// Waits until the controller has applied that number of replicas, and the condition `Autoscaled` is gone.
async fn given_back(scenario: &Scenario, replicas: i64) -> Result<()> {
    let deployments = scenario.objects("deployments");
    deployments
        .until_equal("hello", "/spec/replicas", json!(replicas), LIMIT)
        .await?;
    let websites = scenario.objects("websites");
    websites
        .until("hello", "is not autoscaled", LIMIT, |website| {
            condition(website, "Autoscaled").is_none()
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_given_back_when_the_autoscaler_is_gone() -> Result<()> {
    let mut scenario = converged("unscaled").await?;
    let (websites, deployments) = (
        scenario.objects("websites"),
        scenario.objects("deployments"),
    );
    let scalers = scenario.objects("horizontalpodautoscalers");
    scaled(&scenario).await?;
    websites
        .patch("hello", &json!({ "spec": { "replicas": 7 } }))
        .await?;
    websites
        .until("hello", "has seen the change", LIMIT, |website| {
            website["status"]["observedGeneration"] == website["metadata"]["generation"]
        })
        .await?;
    let live = deployments.fetch("hello").await?["spec"]["replicas"].as_i64();
    assert!((4..=6).contains(&live.unwrap_or_default()), "{live:?}");
    scalers.delete("hello").await?;
    given_back(&scenario, 7).await?;

    // An autoscaler that targets another workload releases `replicas` as well.
    scaled(&scenario).await?;
    let other = json!({ "spec": autoscaler("other")["spec"] });
    scalers.patch("hello", &other).await?;
    given_back(&scenario, 7).await?;
    scalers.delete("hello").await?;

    // The same with a restart: the autoscaler is deleted while no controller runs, or after the restart.
    scaled(&scenario).await?;
    scenario.kill9()?;
    scalers.delete("hello").await?;
    scenario.start().await?;
    given_back(&scenario, 7).await?;
    scaled(&scenario).await?;
    scenario.kill9()?;
    scenario.start().await?;
    websites
        .until("hello", "is autoscaled", LIMIT, is_autoscaled)
        .await?;
    scenario.until_settled().await?;
    scalers.delete("hello").await?;
    given_back(&scenario, 7).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_map_that_another_applies_owns_nothing() -> Result<()> {
    let scenario = converged("hollow").await?;
    let maps = scenario.objects("configmaps");
    let empty =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hello\n  labels: {}\ndata: {}\n";
    let apply = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    scenario.kubectl_with(&apply, Some(empty))?;
    let wanted = json!({ "colour": "teal", "size": "3" });
    for change in [
        json!({ "data": { "colour": "red" } }),
        json!({ "data": { "colour": null } }),
        json!({ "data": { "size": "99" } }),
        json!({ "data": null }),
    ] {
        let before = maps.patch("hello", &change).await?;
        let version = before["metadata"]["resourceVersion"].clone();
        maps.until("hello", "is as declared", LIMIT, |map| {
            map["data"] == wanted && map["metadata"]["resourceVersion"] != version
        })
        .await?;
    }
    let website = scenario.objects("websites").until_ready("hello").await?;
    assert_eq!(condition(&website, "FieldConflict"), None);

    // A field that the other field manager does apply is a conflict.
    let theirs = empty.replace("data: {}", "data: { colour: red }");
    let forced = [&apply[..], &["--force-conflicts"]].concat();
    scenario.kubectl_with(&forced, Some(&theirs))?;
    let websites = scenario.objects("websites");
    websites
        .until("hello", "has a FieldConflict", LIMIT, |website| {
            condition(website, "FieldConflict").is_some()
        })
        .await?;
    Ok(())
}
