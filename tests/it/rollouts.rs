//! Rollouts on a cluster that runs pods: a custom resource is ready only while the current revision of its children is rolled
//! out (G7).

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::film::{Film, version};
use crate::kstatus::{Kstatus, kstatus};
use crate::scenario::{LIMIT, Scenario, is_ready};
use crate::waters;

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": { "onReconcile": { "deployments": [
            { "name": "{{ .metadata.name }}", "image": "{{ .spec.image }}", "replicas": "{{ .spec.replicas }}" }
        ] } }
    } } }
}"#;

/// Reports whether the Deployment runs that image in all its replicas, by the rule of `kubectl rollout status`.
fn is_rolled_out(deployment: &Value, image: &Value, replicas: &Value) -> bool {
    let status = &deployment["status"];
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    containers[0]["image"] == *image
        && deployment["spec"]["replicas"] == *replicas
        && status["observedGeneration"] == deployment["metadata"]["generation"]
        && [
            "updatedReplicas",
            "replicas",
            "readyReplicas",
            "availableReplicas",
        ]
        .iter()
        .all(|field| status[*field] == *replicas)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_is_ready_only_while_its_current_revision_is_rolled_out() -> Result<()> {
    let mut scenario = Scenario::with_nodes("rollouts").await?;
    scenario.grant(KATALOG).await?;
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(KATALOG)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let api_version = format!("{}/v1alpha1", scenario.group);
    let ponds = Film::start(&scenario, [&api_version, "Pond", "ponds"]).await?;
    let deployments = Film::start(&scenario, ["apps/v1", "Deployment", "deployments"]).await?;
    waters::pond(
        &scenario,
        "deep",
        &json!({ "image": "pump:1", "replicas": 2 }),
    )
    .await?;
    let objects = scenario.objects("ponds");
    let specs = [("pump:2", 2), ("pump:3", 3), ("pump:3", 1), ("pump:4", 2)];
    for (image, replicas) in specs {
        objects
            .until("deep", "is rolled out", LIMIT, is_ready)
            .await?;
        let spec = json!({ "spec": { "image": image, "replicas": replicas } });
        objects.patch("deep", &spec).await?;
    }
    objects
        .until("deep", "is rolled out", LIMIT, is_ready)
        .await?;

    let (states, children) = (ponds.states().await?, deployments.states().await?);
    let (mut ready, mut waiting) = (0, 0);
    for state in &states {
        let reported = state.get("status").is_some();
        if !reported || kstatus(state) != Kstatus::Current {
            waiting += usize::from(reported);
            continue;
        }
        let mut older = children
            .iter()
            .filter(|child| version(child) < version(state));
        let spec = &state["spec"];
        let (image, replicas) = (&spec["image"], &spec["replicas"]);
        let latest = older.next_back();
        ensure!(
            latest.is_some_and(|latest| is_rolled_out(latest, image, replicas)),
            "ready too early: {state}, {latest:?}"
        );
        ready += 1;
    }
    println!("{ready} ready and {waiting} waiting states");
    ensure!(
        ready > specs.len() && waiting > specs.len(),
        "{ready} ready and {waiting} waiting states"
    );
    scenario.check_running()
}
