//! Custom resources as parents of `ApplySets` (KEP-3659): the labels and annotations cause no additional write, and kubectl
//! refuses to change the set (G28).

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::Mark;

use crate::scenario::{Objects, Scenario};
use crate::waters;

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "applySet": true,
        "operatorBox": { "onReconcile": {
            "configMaps": [{ "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }],
            "deployments": [{ "name": "{{ .metadata.name }}", "image": "pump", "replicas": 0 }]
        } }
    } } }
}"#;

const ID: &str = "/metadata/labels/applyset.kubernetes.io~1id";
const PART_OF: &str = "/metadata/labels/applyset.kubernetes.io~1part-of";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_belong_to_the_set_of_their_resource_and_kubectl_refuses_it() -> Result<()> {
    let scenario = Scenario::with_katalog("sets", &["kinds/crds.yaml"], KATALOG).await?;
    let crds = Objects::of_cluster(&scenario.client, "customresourcedefinitions");
    let label =
        json!({ "metadata": { "labels": { "applyset.kubernetes.io/is-parent-type": "true" } } });
    crds.patch(&format!("ponds.{}", scenario.group), &label)
        .await?;
    let mark = Scenario::mark()?;
    waters::pond(&scenario, "deep", &json!({ "depth": "3" })).await?;
    let pond = scenario.objects("ponds").until_ready("deep").await?;
    scenario.until_idle().await?;

    the_resource_and_its_children_name_the_set(&scenario, &pond).await?;
    all_of_it_is_in_the_writes_that_are_made_anyway(&scenario, mark)?;
    kubectl_leaves_the_set_alone(&scenario).await
}

/// Checks that the resource is the parent of the set, and that its children are part of it.
async fn the_resource_and_its_children_name_the_set(
    scenario: &Scenario,
    pond: &Value,
) -> Result<()> {
    let expected = orkestra_language::api::apply_set::id(
        "deep",
        Some(&scenario.namespace),
        "Pond",
        &scenario.group,
    );
    assert_eq!(waters::text(pond, ID), expected);
    let annotations = &pond["metadata"]["annotations"];
    assert_eq!(
        annotations["applyset.kubernetes.io/tooling"],
        "orkestra/v1.0.0"
    );
    assert_eq!(
        annotations["applyset.kubernetes.io/contains-group-kinds"],
        "ConfigMap,Deployment.apps"
    );
    for plural in ["configmaps", "deployments"] {
        let child = scenario.objects(plural).fetch("deep").await?;
        assert_eq!(waters::text(&child, PART_OF), expected);
    }
    Ok(())
}

/// Checks that each object was written once since `mark`.
fn all_of_it_is_in_the_writes_that_are_made_anyway(scenario: &Scenario, mark: Mark) -> Result<()> {
    let writes = scenario.writes_since(mark)?;
    let of = |resource: &str| {
        writes
            .iter()
            .filter(|write| write.resource == resource && write.subresource.is_empty())
            .count()
    };
    assert_eq!(
        (of("ponds"), of("configmaps"), of("deployments")),
        (1, 1, 1),
        "{}",
        waters::lines(&writes)
    );
    Ok(())
}

/// Checks that `kubectl apply` refuses to take over the set, and applies nothing.
async fn kubectl_leaves_the_set_alone(scenario: &Scenario) -> Result<()> {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "other" } });
    let file = scenario.file("map.json", &map.to_string())?;
    let mut kubectl = Command::new(scenario.cluster.assets().binary("kubectl")?);
    kubectl.env("KUBECTL_APPLYSET", "true");
    kubectl
        .arg("--kubeconfig")
        .arg(scenario.cluster.admin().kubeconfig_path());
    kubectl.args([
        "apply",
        "--prune",
        "--server-side",
        "--namespace",
        &scenario.namespace,
    ]);
    kubectl
        .arg(format!("--applyset=ponds.{}/deep", scenario.group))
        .arg("-f")
        .arg(file);
    let output = kubectl.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("orkestra"),
        "{said}"
    );
    let other: Option<Value> = scenario.objects("configmaps").get("other").await?;
    ensure!(other.is_none(), "kubectl applied the ConfigMap");
    Ok(())
}
