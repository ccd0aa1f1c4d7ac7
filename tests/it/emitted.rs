//! `emit` and `cleanup`: Events that a Katalog declares, and custom resources that their operator deletes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters;

const PONDS: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "resync": "0s",
        "operatorBox": {
            "runtime": { "cleanup": {
                "when": [{ "field": "spec.done", "equals": true }], "deleteAfter": "2s"
            } },
            "emit": { "events": { "deep": {
                "type": "Warning", "reason": "Deep", "message": "{{ .metadata.name }} is {{ .spec.depth }} deep",
                "when": [{ "field": "spec.depth", "greaterThan": 3 }]
            } } },
            "onReconcile": { "configMaps": [
                { "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }
            ] }
        }
    } } }
}"#;

async fn ponds(prefix: &str) -> Result<Scenario> {
    Scenario::with_katalog(prefix, &["kinds/crds.yaml"], PONDS).await
}

/// Waits for that many declared Events about a pond; returns their messages, sorted.
async fn until_reported(scenario: &Scenario, name: &str, count: usize) -> Result<Vec<String>> {
    eventually("the declared Events", LIMIT, async || {
        let events = waters::warnings(scenario, name).await?;
        let deep = events.iter().filter(|event| event["reason"] == "Deep");
        let notes = deep.filter_map(|event| event["message"].as_str().map(str::to_owned));
        let mut notes: Vec<String> = notes.collect();
        notes.sort();
        Ok((notes.len() >= count).then_some(notes))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declared_event_is_sent_once_for_each_state_and_not_again_after_a_restart() -> Result<()>
{
    let mut scenario = ponds("emitted").await?;
    let objects = scenario.objects("ponds");
    waters::pond(&scenario, "a", &json!({ "depth": 1 })).await?;
    objects.until_ready("a").await?;
    objects
        .patch("a", &json!({ "spec": { "depth": 5 } }))
        .await?;
    until_reported(&scenario, "a", 1).await?;
    objects
        .patch("a", &json!({ "spec": { "depth": 6 } }))
        .await?;
    let both = ["a is 5 deep", "a is 6 deep"];
    ensure!(until_reported(&scenario, "a", 2).await? == both);
    // A new process sends no Event for the existing state, only for later changes.
    scenario.kill9()?;
    scenario.start().await?;
    eventually("a pass of the new process", LIMIT, async || {
        Ok((scenario.passes("pond").await? >= 1.0).then_some(()))
    })
    .await?;
    objects
        .patch("a", &json!({ "spec": { "depth": 7 } }))
        .await?;
    let all = ["a is 5 deep", "a is 6 deep", "a is 7 deep"];
    ensure!(until_reported(&scenario, "a", 3).await? == all);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_is_deleted_with_its_children_once_it_is_done() -> Result<()> {
    let scenario = ponds("cleanup").await?;
    let (objects, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for name in ["kept", "done", "held"] {
        waters::pond(&scenario, name, &json!({ "depth": 1 })).await?;
        objects.until_ready(name).await?;
    }
    let label = json!({ "metadata": { "labels": { "orkestra.io/deletion-protection": "true" } } });
    objects.patch("held", &label).await?;
    for name in ["done", "held"] {
        objects
            .patch(name, &json!({ "spec": { "done": true } }))
            .await?;
    }
    objects.until_gone("done", LIMIT).await?;
    maps.until_gone("done", LIMIT).await?;
    let refused = |pond: &Value| {
        condition(pond, "CleanupPending").is_some_and(|one| one["reason"] == "CleanupRefused")
    };
    objects.until("held", "is kept", LIMIT, refused).await?;
    for name in ["kept", "held"] {
        ensure!(
            objects
                .get(name)
                .await?
                .is_some_and(|pond| pond["metadata"]["deletionTimestamp"].is_null())
        );
    }
    // Without the label it is deleted too.
    let label = json!({ "metadata": { "labels": { "orkestra.io/deletion-protection": null } } });
    objects.patch("held", &label).await?;
    objects.until_gone("held", LIMIT).await?;
    Ok(())
}
