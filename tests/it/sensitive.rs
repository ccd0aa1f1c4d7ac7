//! Sensitive children, such as Roles: a Katalog that declares one which the controller does not permit is refused.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

/// Returns a Katalog with a `ConfigMap` and the given children.
fn katalog(more: &Value) -> String {
    let mut blocks =
        json!({ "configMaps": [{ "name": "{{ .metadata.name }}-map", "data": { "a": "b" } }] });
    for (kind, list) in more.as_object().into_iter().flatten() {
        blocks[kind] = list.clone();
    }
    json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
        "metadata": { "name": "waters", "namespace": "NAMESPACE" },
        "spec": { "crds": { "pond": {
            "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
            "operatorBox": { "onReconcile": blocks }
        } } }
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_with_a_child_that_is_not_permitted_is_refused_and_the_last_good_one_runs()
-> Result<()> {
    let roles = json!({ "roles": [{
        "name": "{{ .metadata.name }}",
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]
    }] });
    let binding = json!({ "roleBindings": [{
        "name": "{{ .metadata.name }}", "roleRef": { "kind": "Role", "name": "{{ .metadata.name }}" },
        "subjects": [{ "kind": "ServiceAccount", "name": "default" }]
    }] });
    let mut scenario = Scenario::new("sensitive").await?;
    scenario.arguments = vec!["--sensitive-children=role".to_owned()];
    scenario.grant(&katalog(&roles)).await?;
    scenario.install(&input("kinds/crds.yaml")?).await?;
    scenario.start().await?;
    scenario.apply(&katalog(&roles))?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::pond(&scenario, "a", &json!({})).await?;
    scenario.objects("ponds").until_ready("a").await?;

    scenario.apply(&katalog(&binding))?;
    let refused = scenario
        .katalog_is("waters", "False", "ChildNotPermitted")
        .await?;
    let reported = refused["status"].to_string();
    ensure!(
        reported.contains("onReconcile.roleBindings[0]: RoleBinding is not permitted"),
        "{reported}"
    );
    let maps = scenario.objects("configmaps");
    maps.delete("a-map").await?;
    maps.until_equal("a-map", "/data/a", json!("b"), LIMIT)
        .await?;

    // A controller that permits less does not continue with a revision that was accepted before.
    scenario.terminate()?;
    scenario.arguments = vec!["--sensitive-children=none".to_owned()];
    scenario.start().await?;
    scenario.apply(&katalog(&roles))?;
    scenario
        .katalog_is("waters", "False", "ChildNotPermitted")
        .await?;
    scenario.apply(&katalog(&json!({})))?;
    scenario.katalog_is("waters", "True", "Running").await?;
    Ok(())
}
