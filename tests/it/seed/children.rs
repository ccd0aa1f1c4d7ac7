//! Samples about children and status: conditions, status fields that read children, environment variables.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{changed, completed, demo, demos, running, sample};
use crate::scenario::{LIMIT, Scenario};

/// Creates a scenario with the sample about conditions, and a Demo in that environment.
async fn conditional(prefix: &str, environment: &str) -> Result<Scenario> {
    let scenario = running(prefix, &sample("conditional")?).await?;
    demo(&scenario, "shop", &json!({ "environment": environment })).await?;
    Ok(scenario)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn objects_disappear_when_a_condition_is_false() -> Result<()> {
    let scenario = conditional("row6", "production").await?;
    let (services, maps) = (scenario.objects("services"), scenario.objects("configmaps"));
    let balancer = services
        .until("shop-lb", "is created", LIMIT, |_| true)
        .await?;
    assert_eq!(balancer["spec"]["type"], "LoadBalancer");
    // The sample declares no port for the Service, so it is that of the Deployment.
    assert_eq!(balancer["spec"]["ports"][0]["port"], 80);
    assert_eq!(maps.get("shop-debug").await?, None);
    let move_to = async |environment: &str| {
        let change = json!({ "spec": { "environment": environment } });
        demos(&scenario).patch("shop", &change).await
    };
    move_to("staging").await?;
    services.until_gone("shop-lb", LIMIT).await?;
    maps.until("shop-debug", "exists", LIMIT, |_| true).await?;
    move_to("production").await?;
    maps.until_gone("shop-debug", LIMIT).await?;
    services
        .until("shop-lb", "is created again", LIMIT, |_| true)
        .await?;
    scenario
        .objects("deployments")
        .fetch("shop-deployment")
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn the_default_reconciler_is_the_declared_blocks() -> Result<()> {
    let scenario = conditional("row7", "staging").await?;
    let (deployments, maps) = (
        scenario.objects("deployments"),
        scenario.objects("configmaps"),
    );
    demos(&scenario).until_ready("shop").await?;
    maps.fetch("shop-debug").await?;
    let before = deployments.fetch("shop-deployment").await?;
    let page = scenario.page("/katalog/demo").await?;
    assert_eq!(page["mode"], "dynamic");
    // `default: true` is the default: without it, nothing is created again.
    let sample = sample("conditional")?;
    let katalogs = scenario.objects("katalogs");
    scenario.apply(&changed(&sample, "        default: true\n", "")?)?;
    let revised = scenario.katalog_is("sample", "True", "Running").await?;
    assert_eq!(revised["metadata"]["generation"], 2);
    assert_eq!(
        revised["spec"]["crds"]["demo"]["operatorBox"]["default"],
        Value::Null
    );
    maps.delete("shop-debug").await?;
    maps.until("shop-debug", "is created again", LIMIT, |_| true)
        .await?;
    let after = deployments.fetch("shop-deployment").await?;
    assert_eq!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    // `default: false` needs a reconciler in code, which a Katalog cannot contain.
    scenario.apply(&changed(&sample, "default: true", "default: false")?)?;
    katalogs
        .until("sample", "is refused", LIMIT, |one| {
            one["status"]["conditions"]
                .to_string()
                .contains("operatorBox.default")
        })
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_status_is_computed_from_the_resource_and_its_children() -> Result<()> {
    // The sample as printed is not valid YAML: it has double quotes within double quotes.
    let scenario = running("row8", &completed(&sample("status")?)?).await?;
    demo(&scenario, "shop", &json!({ "suspend": false })).await?;
    let ready = demos(&scenario).until_ready("shop").await?;
    let status = &ready["status"];
    let endpoint = format!("shop.{}.svc.cluster.local", scenario.namespace);
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["endpoint"], endpoint);
    assert_eq!(
        status["readyReplicas"], 1,
        "a number, as the CRD declares it"
    );

    let suspended = json!({ "spec": { "suspend": true } });
    demos(&scenario).patch("shop", &suspended).await?;
    demos(&scenario)
        .until_equal("shop", "/status/phase", json!("Suspended"), LIMIT)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_container_has_values_of_secrets_and_config_maps() -> Result<()> {
    let scenario = running("row18", &sample("environment")?).await?;
    let spec =
        json!({ "username": "ann", "region": "eu-west-1", "image": "registry.example/shop:3" });
    demo(&scenario, "shop", &spec).await?;
    demos(&scenario).until_ready("shop").await?;
    let deployment = scenario.objects("deployments").fetch("shop").await?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let mut env = container["env"].as_array().context("no env")?.clone();
    env.sort_by_key(|one| one["name"].to_string());
    let secret = |name: &str, key: &str| json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": "shop-creds", "key": key } } });
    let expected = [
        secret("PASSWORD", "password"),
        json!({ "name": "REGION", "valueFrom": { "configMapKeyRef": { "name": "shop-cfg", "key": "region" } } }),
        secret("USERNAME", "username"),
    ];
    assert_eq!(env, expected);
    let from = json!([{ "configMapRef": { "name": "shop-cfg" } }, { "secretRef": { "name": "shop-creds" } }]);
    assert_eq!(container["envFrom"], from);
    // Both objects exist. The ConfigMap is not created only once, so it follows the values of the resource.
    scenario.objects("secrets").fetch("shop-creds").await?;
    let map = scenario.objects("configmaps").fetch("shop-cfg").await?;
    assert_eq!(
        map["data"],
        json!({ "region": "eu-west-1", "image": "registry.example/shop:3" })
    );
    ensure!(
        container["image"] == "registry.example/shop:3",
        "{container}"
    );
    Ok(())
}
