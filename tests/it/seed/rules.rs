//! The samples about rules: validation, mutation and normalization in reconcile passes.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testbed::eventually;

use super::{changed, demo, demos, running, sample};
use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters;

/// Children that are appended to the samples, which declare only rules: the children show the effect of the rules.
const DEPLOYMENT: &str = r#"
      operatorBox:
        onReconcile:
          deployments:
            - name: "{{ .metadata.name }}"
              image: "{{ .spec.image }}"
              replicas: "{{ .spec.replicas }}"
              port: "{{ .spec.port }}"
"#;
const CONFIG_MAP: &str = r#"
      operatorBox:
        onReconcile:
          configMaps:
            - name: "{{ .metadata.name }}"
              data: { schedule: "{{ .spec.schedule }}" }
"#;

/// Waits until a condition of the Demo is true with that reason, and returns its message.
async fn reported(scenario: &Scenario, name: &str, kind: &str, reason: &str) -> Result<String> {
    let is_reported = |demo: &Value| {
        condition(demo, kind).is_some_and(|one| one["status"] == "True" && one["reason"] == reason)
    };
    let what = format!("has {kind} for {reason}");
    let demo = demos(scenario)
        .until(name, &what, LIMIT, is_reported)
        .await?;
    let reported = condition(&demo, kind).context("no condition")?;
    Ok(waters::text(reported, "/message").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn an_image_from_elsewhere_is_denied() -> Result<()> {
    // Without policies, which would refuse it before a pass sees it: `an_image_from_elsewhere_is_refused_when_it_is_written`.
    let off = "spec:\n  security: { webhooks: { admission: { enabled: false } } }\n  crds:";
    let katalog = (sample("rules")? + DEPLOYMENT).replace("spec:\n  crds:", off);
    let scenario = running("row11", &katalog).await?;
    let deployments = scenario.objects("deployments");
    demo(&scenario, "shop", &json!({ "image": "nginx" })).await?;
    let message = reported(&scenario, "shop", "Stalled", "ValidationFailed").await?;
    assert_eq!(
        message,
        "spec.image: images must come from the internal registry"
    );
    assert_eq!(deployments.get("shop").await?, None);
    let change = |image: &str| json!({ "spec": { "image": image } });
    demos(&scenario)
        .patch("shop", &change("myorg/shop:1"))
        .await?;
    deployments
        .until("shop", "is created", LIMIT, |_| true)
        .await?;
    demos(&scenario).until_ready("shop").await?;
    // A child that was created for a valid resource is kept.
    demos(&scenario).patch("shop", &change("nginx")).await?;
    reported(&scenario, "shop", "Stalled", "ValidationFailed").await?;
    let kept = deployments.fetch("shop").await?;
    let image = waters::text(&kept, "/spec/template/spec/containers/0/image");
    assert_eq!(image, "myorg/shop:1");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_from_elsewhere_is_refused_when_it_is_written() -> Result<()> {
    let scenario = running("row11ref", &(sample("rules")? + DEPLOYMENT)).await?;
    let text = json!({
        "apiVersion": format!("{}/v1", scenario.group), "kind": "Demo",
        "metadata": { "name": "shop" }, "spec": { "image": "nginx" },
    });
    let error = eventually("the image is refused", LIMIT, async || {
        let args = ["create", "--dry-run=server", "-f", "-"];
        Ok(scenario.kubectl_with(&args, Some(&text.to_string())).err())
    })
    .await?;
    let message = "images must come from the internal registry";
    anyhow::ensure!(format!("{error:#}").contains(message), "{error:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn what_the_user_left_out_is_completed() -> Result<()> {
    let scenario = running("row12", &(sample("rules")? + DEPLOYMENT)).await?;
    let deployments = scenario.objects("deployments");
    let spec = json!({ "image": "myorg/shop:1" });
    demo(&scenario, "shop", &spec).await?;
    let ready = demos(&scenario).until_ready("shop").await?;
    assert_eq!(
        ready["spec"], spec,
        "only the webhook writes it, a pass does not"
    );
    let message = reported(&scenario, "shop", "Mutated", "InMemory").await?;
    assert_eq!(
        message,
        "spec.port, spec.replicas in memory: rules complete it"
    );
    let made = deployments.fetch("shop").await?;
    let port = made.pointer("/spec/template/spec/containers/0/ports/0/containerPort");
    assert_eq!(
        (&made["spec"]["replicas"], port),
        (&json!(2), Some(&json!(8080)))
    );
    // A value that the user sets has precedence.
    let change = json!({ "spec": { "replicas": 3 } });
    demos(&scenario).patch("shop", &change).await?;
    deployments
        .until_equal("shop", "/spec/replicas", json!(3), LIMIT)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn the_resource_is_brought_to_one_form_before_anything_is_made() -> Result<()> {
    let printed = sample("normalize")? + CONFIG_MAP;
    let scenario = running("row14", &printed).await?;
    let maps = scenario.objects("configmaps");
    // The sample as printed normalizes `chedule`, a field that the CRD does not have.
    let spec = json!({ "schedule": { "minute": "0", "hour": "3" } });
    demo(&scenario, "first", &spec).await?;
    let message = reported(&scenario, "first", "Normalized", "InMemory").await?;
    assert_eq!(
        message,
        "spec.chedule in memory: the definition has no such field"
    );
    assert_eq!(demos(&scenario).fetch("first").await?["spec"], spec);

    scenario.apply(&changed(&printed, " chedule:", " schedule:")?)?;
    demos(&scenario)
        .until_equal("first", "/spec/schedule", json!("0 3 * * *"), LIMIT)
        .await?;
    let mark = Scenario::mark()?;
    demo(&scenario, "second", &json!({ "schedule": "@daily" })).await?;
    maps.until_equal("second", "/data/schedule", json!("0 0 * * *"), LIMIT)
        .await?;
    let second = demos(&scenario).fetch("second").await?;
    assert_eq!(second["spec"], json!({ "schedule": "0 0 * * *" }));
    scenario.until_idle().await?;
    let mut writes = scenario.writes_since(mark)?;
    writes.retain(|write| write.name == "second");
    let first = |resource: &str| {
        let of_it = writes.iter().position(|write| write.resource == resource);
        of_it.with_context(|| format!("no write of {resource}:\n{}", waters::lines(&writes)))
    };
    assert!(
        first("demos")? < first("configmaps")?,
        "{}",
        waters::lines(&writes)
    );
    let versions: Vec<_> = writes
        .iter()
        .filter(|write| write.resource == "configmaps")
        .collect();
    assert_eq!(versions.len(), 1, "a child was written from the old form");
    Ok(())
}
