//! Children that differ from their declaration: immutable fields, deleted children, and values that the API server cannot parse.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Objects, Scenario, condition, is_observed};
use crate::waters;

async fn running(prefix: &str) -> Result<Scenario> {
    Scenario::running(prefix, &["kinds/crds.yaml"], "declared/katalog.yaml").await
}

/// Waits until the pond's `Ready` has that status and reason, and returns its message.
async fn ready_is(ponds: &Objects, name: &str, status: &str, reason: &str) -> Result<String> {
    let pond = ponds
        .until(name, &format!("is {status}/{reason}"), LIMIT, |pond| {
            condition(pond, "Ready")
                .is_some_and(|ready| ready["status"] == status && ready["reason"] == reason)
        })
        .await?;
    let ready = condition(&pond, "Ready").context("no Ready")?;
    Ok(waters::text(ready, "/message").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_immutable_field_is_named_with_its_object_and_nothing_is_deleted_unasked() -> Result<()>
{
    let scenario = running("immutable").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "deep", &json!({ "depth": "3" })).await?;
    ponds.until_ready("deep").await?;
    let before = maps.fetch("deep-kept").await?;
    let change = |depth: &str| json!({ "spec": { "depth": depth } });
    ponds.patch("deep", &change("4")).await?;
    let message = ready_is(&ponds, "deep", "False", "ImmutableField").await?;
    for part in [
        "ConfigMap",
        "/deep-kept",
        "`data.depth`",
        "onImmutable: recreate",
    ] {
        ensure!(message.contains(part), "{part} is not named: {message}");
    }
    let pond = ponds.fetch("deep").await?;
    ensure!(condition(&pond, "Stalled").is_some(), "{pond}");
    scenario.until_settled().await?;
    let now = maps.fetch("deep-kept").await?;
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(now["data"], before["data"]);

    // The pond becomes ready once it declares the existing value again.
    ponds.patch("deep", &change("3")).await?;
    ponds.until_ready("deep").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_declared_so_an_object_is_deleted_and_created_again() -> Result<()> {
    let scenario = running("recreate").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "wide", &json!({ "width": "3" })).await?;
    ponds.until_ready("wide").await?;
    let before = maps.fetch("wide-anew").await?["metadata"]["uid"].clone();
    let change = |width: &str| json!({ "spec": { "width": width } });
    ponds.patch("wide", &change("4")).await?;
    maps.until("wide-anew", "is created again", LIMIT, |map| {
        map["data"]["width"] == "4" && map["metadata"]["uid"] != before
    })
    .await?;
    ponds.until_ready("wide").await?;
    eventually("an Event reports it", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let reported = events
            .iter()
            .any(|event| waters::text(event, "/message").contains("recreated ConfigMap"));
        Ok(reported.then_some(()))
    })
    .await?;

    // An object with a wrong annotation `child` is not deleted.
    let unmarked = json!({ "metadata": { "annotations": { "orkestra.orkspace.io/child": "ConfigMap/other" } } });
    let before = maps.patch("wide-anew", &unmarked).await?["metadata"]["uid"].clone();
    ponds.patch("wide", &change("5")).await?;
    ponds
        .until("wide", "is settled", LIMIT, is_observed)
        .await?;
    let now = maps.fetch("wide-anew").await?;
    let is_marked =
        now["metadata"]["annotations"]["orkestra.orkspace.io/child"] == "ConfigMap/wide-anew";
    ensure!(is_marked || now["metadata"]["uid"] == before, "{now}");
    // The next successful write restores the annotation; the pass that found it wrong may already have applied the change.
    let width = now["data"]["width"].as_str().context("no width")?;
    ponds.patch("wide", &change(width)).await?;
    maps.until_equal(
        "wide-anew",
        "/metadata/annotations/orkestra.orkspace.io~1child",
        json!("ConfigMap/wide-anew"),
        LIMIT,
    )
    .await?;
    ponds.until_ready("wide").await?;

    an_object_is_not_replaced_without_end(&scenario).await
}

/// Changes an immutable field several times, and checks that the number of recreations is limited.
async fn an_object_is_not_replaced_without_end(scenario: &Scenario) -> Result<()> {
    // The limit ends the conflict with another controller that would undo each change by recreating the object.
    let ponds = scenario.objects("ponds");
    let mark = Scenario::mark()?;
    for width in 6..12 {
        let change = json!({ "spec": { "width": width.to_string() } });
        ponds.patch("wide", &change).await?;
        ponds
            .until("wide", "has seen the change", LIMIT, is_observed)
            .await?;
    }
    scenario.until_idle().await?;
    let deleted = scenario
        .writes_since(mark)?
        .iter()
        .filter(|write| write.verb == "delete" && write.resource == "configmaps")
        .count();
    ensure!(deleted <= 3, "deleted {deleted} times");
    let message = ready_is(&ponds, "wide", "False", "ImmutableField").await?;
    ensure!(message.contains("several times"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quantity_that_cannot_be_read_is_its_objects_trouble_alone() -> Result<()> {
    let scenario = running("quantity").await?;
    let ponds = scenario.objects("ponds");
    let names: Vec<String> = (0..3).map(|n| format!("wrong-{n}")).collect();
    for name in &names {
        waters::pond(&scenario, name, &json!({ "size": "5GB" })).await?;
    }
    for name in &names {
        let message = ready_is(&ponds, name, "False", "Invalid").await?;
        ensure!(message.contains("ResourceQuota"), "{message}");
        let pond = ponds.fetch(name).await?;
        ensure!(condition(&pond, "Stalled").is_some(), "{pond}");
    }
    // The operator and its other resources are not affected, and the failed writes are not retried.
    waters::pond(&scenario, "right", &json!({ "size": "5Gi" })).await?;
    ponds.until_ready("right").await?;
    scenario.katalog_is("declared", "True", "Running").await?;
    scenario.until_settled().await?;
    let katalog = scenario.objects("katalogs").fetch("declared").await?;
    ensure!(condition(&katalog, "Degraded").is_none(), "{katalog}");
    let size = json!({ "spec": { "size": "5G" } });
    ponds.patch("wrong-0", &size).await?;
    ponds.until_ready("wrong-0").await?;
    Ok(())
}

/// Returns the config hash in a Deployment's pod template, and the Deployment's generation.
fn rolled(deployment: &Value) -> (Value, Value) {
    let mark =
        deployment.pointer("/spec/template/metadata/annotations/orkestra.orkspace.io~1config-hash");
    (
        mark.cloned().unwrap_or_default(),
        deployment["metadata"]["generation"].clone(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_of_on_create_that_is_gone_is_reported_and_no_pods_roll_for_it() -> Result<()> {
    let mut scenario = running("gone").await?;
    let (ponds, secrets) = (scenario.objects("ponds"), scenario.objects("secrets"));
    let deployments = scenario.objects("deployments");
    waters::pond(&scenario, "deep", &json!({ "password": "heron" })).await?;
    ponds.until_ready("deep").await?;
    scenario.until_settled().await?;
    let before = rolled(&deployments.fetch("deep").await?);
    ensure!(before.0.is_string(), "{before:?}");

    secrets.delete("deep-login").await?;
    let message = ready_is(&ponds, "deep", "False", "ChildMissing").await?;
    ensure!(
        message.contains("/deep-login") && message.contains("onReconcile"),
        "{message}"
    );
    scenario.until_settled().await?;
    ensure!(
        secrets.get("deep-login").await?.is_none(),
        "it was created again"
    );
    assert_eq!(rolled(&deployments.fetch("deep").await?), before);

    // The same holds after a restart.
    scenario.kill9()?;
    scenario.start().await?;
    scenario.until_settled().await?;
    ready_is(&ponds, "deep", "False", "ChildMissing").await?;
    assert_eq!(rolled(&deployments.fetch("deep").await?), before);

    // Another client creates a Secret of that name. The pods roll only once its content changes.
    let theirs = |password: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "deep-login" }, "stringData": { "password": password } });
    secrets.create(&theirs("heron")).await?;
    ponds.until_ready("deep").await?;
    assert_eq!(rolled(&deployments.fetch("deep").await?), before);
    secrets.patch("deep-login", &theirs("stork")).await?;
    deployments
        .until("deep", "rolls", LIMIT, |deployment| {
            rolled(deployment).0 != before.0
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_the_custom_resource_chooses_of_an_enum_can_be_given() -> Result<()> {
    let mut scenario = Scenario::new("chosen").await?;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "keepers.GROUP" },
        "spec": {
            "group": "GROUP", "scope": "Namespaced",
            "names": { "kind": "Keeper", "listKind": "KeeperList", "plural": "keepers", "singular": "keeper" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "role": { "type": "string", "enum": ["view", "edit"] } } },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    })
    .to_string();
    scenario.file("keepers.yaml", &crd)?;
    let katalog = json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
        "metadata": { "name": "chosen", "namespace": "NAMESPACE" },
        "spec": { "crds": { "keeper": {
            "crdFile": "keepers.yaml",
            "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Keeper", "plural": "keepers" },
            "operatorBox": { "onReconcile": { "roleBindings": [{
                "name": "{{ .metadata.name }}",
                "roleRef": { "kind": "ClusterRole", "name": "{{ .spec.role }}" },
                "subjects": [{ "kind": "ServiceAccount", "name": "{{ .metadata.name }}" }],
                "onImmutable": "recreate",
            }] } },
        } } },
    })
    .to_string();
    let roles = scenario.grant(&katalog).await?;
    let bound: Vec<String> = roles
        .iter()
        .flat_map(|role| role.rules.iter().flatten())
        .filter(|rule| rule.verbs.iter().any(|verb| verb == "bind"))
        .flat_map(|rule| rule.resource_names.iter().flatten().cloned())
        .collect();
    assert_eq!(bound, ["edit", "view"]);
    scenario.install(&crd).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("chosen", "True", "Running").await?;
    let keepers = scenario.objects("keepers");
    let keeper = waters::resource(&scenario, "Keeper", "heron", &json!({ "role": "view" }));
    scenario.apply(&keeper.to_string())?;
    keepers.until_ready("heron").await?;
    let bindings = scenario.objects("rolebindings");
    keepers
        .patch("heron", &json!({ "spec": { "role": "edit" } }))
        .await?;
    bindings
        .until_equal("heron", "/roleRef/name", json!("edit"), LIMIT)
        .await?;
    keepers.until_ready("heron").await?;
    Ok(())
}
