//! Operators of built-in kinds: the objects that they select, the marks that they set on them, and how they release them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Objects, Scenario, input, owner_uid};
use crate::waters;

const CLEANUP: &str = "orkestra.orkspace.io/cleanup";
const MANAGED: &str = "/metadata/labels/orkestra.orkspace.io~1managed";

/// Returns a Deployment without pods, with those labels.
fn deployment(name: &str, labels: &Value) -> Value {
    let app = json!({ "app": name });
    let pod = json!({ "containers": [{ "name": "web", "image": "none:1" }] });
    json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": app },
            "template": { "metadata": { "labels": app }, "spec": pod },
        },
    })
}

fn is_marked(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let is_held = finalizers.is_some_and(|all| all.iter().any(|name| name == CLEANUP));
    is_held || object.pointer(MANAGED).is_some()
}

/// Starts a scenario with a Katalog of `tests/inputs/builtin` and a running controller.
async fn running(prefix: &str, katalog: &str) -> Result<Scenario> {
    let katalog = input(&format!("builtin/{katalog}.yaml"))?;
    Scenario::with_katalog(prefix, &[], &katalog).await
}

/// Checks that since `since` no request of the controller was refused for a missing permission, and that it wrote no status but
/// those of Katalogs.
async fn is_within_its_rights(scenario: &Scenario, since: testbed::Mark) -> Result<()> {
    scenario.until_idle().await?;
    let mut requests = scenario.requests_since(since)?;
    requests.retain(|one| {
        let writes_status = one.subresource == "status" && one.resource != "katalogs";
        one.code == 403 || writes_status
    });
    ensure!(requests.is_empty(), "{}", waters::lines(&requests));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deployments_with_the_label_are_operated_and_nothing_else() -> Result<()> {
    let mark = Scenario::mark()?;
    let scenario = running("builtin", "deployments").await?;
    let tended = json!({ format!("{}/tended", scenario.group): "yes" });
    let deployments = scenario.objects("deployments");
    let maps = scenario.objects("configmaps");
    let system = scenario.objects_in("kube-system", "deployments");
    let far = format!("{}-far", scenario.namespace);

    for name in ["web", "kept"] {
        deployments.create(&deployment(name, &tended)).await?;
    }
    deployments.create(&deployment("plain", &json!({}))).await?;
    system.create(&deployment(&far, &tended)).await?;
    let web = deployments
        .until("web", "is marked", LIMIT, is_marked)
        .await?;
    let crd_status = maps.until("web-facts", "is made", LIMIT, |_| true).await?;
    ensure!(
        owner_uid(&crd_status) == web["metadata"]["uid"].as_str(),
        "{crd_status}"
    );
    let owner = &crd_status["metadata"]["ownerReferences"][0];
    ensure!((&owner["apiVersion"], &owner["kind"]) == (&json!("apps/v1"), &json!("Deployment")));
    let row = json!({ "state": "Running", "kind": "Deployment", "instances": 2, "ready": 2 });
    scenario
        .operator_reports("deployments", "web", &row)
        .await?;

    nothing_else_is_operated(&scenario, &system, &far).await?;
    system.delete(&far).await?;
    changes_and_drift_lead_to_passes(&scenario).await?;
    a_deleted_deployment_ends_with_its_children(&scenario, mark).await?;
    the_katalog_leaves_what_it_operated(&scenario).await?;
    is_within_its_rights(&scenario, mark).await
}

/// Checks that children, Deployments without the label and those of another namespace stay as they are.
async fn nothing_else_is_operated(scenario: &Scenario, system: &Objects, far: &str) -> Result<()> {
    let deployments = scenario.objects("deployments");
    // The children of `web` have the label too, but are not operated; nor are objects without it or in another namespace.
    scenario.until_settled().await?;
    deployments.fetch("web-canary").await?;
    ensure!(deployments.get("web-canary-canary").await?.is_none());
    for (objects, name) in [(&deployments, "plain"), (system, far)] {
        let left = objects.fetch(name).await?;
        ensure!(!is_marked(&left), "{left}");
    }
    let web = deployments.fetch("web").await?;
    let conditions = web["status"]["conditions"].as_array();
    let is_ours = |one: &Value| one["type"] == "Ready";
    ensure!(
        !conditions.is_some_and(|all| all.iter().any(is_ours)),
        "{web}"
    );
    Ok(())
}

/// Changes a Deployment and one of its children, and waits until both are reconciled.
async fn changes_and_drift_lead_to_passes(scenario: &Scenario) -> Result<()> {
    let deployments = scenario.objects("deployments");
    let maps = scenario.objects("configmaps");
    // A change leads to a pass, and drift of a child is corrected.
    let paused = json!({ "spec": { "paused": true, "replicas": 1 } });
    deployments.patch("web", &paused).await?;
    maps.until_equal("web-facts", "/data/replicas", json!("1"), LIMIT)
        .await?;
    let label = format!("/metadata/labels/{}~1replicas", scenario.group);
    deployments
        .until_equal("web", &label, json!("1"), LIMIT)
        .await?;
    maps.patch("web-facts", &json!({ "data": { "replicas": "9" } }))
        .await?;
    maps.until_equal("web-facts", "/data/replicas", json!("1"), LIMIT)
        .await?;
    Ok(())
}

/// Deletes a Deployment, and checks that its `onDelete` has run and its children are gone.
async fn a_deleted_deployment_ends_with_its_children(
    scenario: &Scenario,
    mark: testbed::Mark,
) -> Result<()> {
    let deployments = scenario.objects("deployments");
    let maps = scenario.objects("configmaps");
    deployments.delete("web").await?;
    deployments.until_gone("web", LIMIT).await?;
    maps.until_gone("web-facts", LIMIT).await?;
    scenario.until_idle().await?;
    let writes = scenario.writes_since(mark)?;
    let ended = writes.iter().any(|write| {
        (
            write.resource.as_str(),
            write.verb.as_str(),
            write.name.as_str(),
        ) == ("jobs", "create", "web-end")
    });
    ensure!(ended, "{}", waters::lines(&writes));
    Ok(())
}

/// Deletes the Katalog, and checks that the Deployment that it operated stays, with its children and without marks.
async fn the_katalog_leaves_what_it_operated(scenario: &Scenario) -> Result<()> {
    let deployments = scenario.objects("deployments");
    let maps = scenario.objects("configmaps");
    scenario.objects("katalogs").delete("deployments").await?;
    scenario
        .objects("katalogs")
        .until_gone("deployments", LIMIT)
        .await?;
    let kept = deployments.fetch("kept").await?;
    ensure!(!is_marked(&kept), "{kept}");
    maps.fetch("kept-facts").await?;
    let canary = deployments.fetch("kept-canary").await?;
    ensure!(
        canary.pointer(MANAGED).is_some(),
        "the controller removed a child's label: {canary}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_map_that_leaves_the_selection_is_released_and_none_is_deleted_with_the_katalog()
-> Result<()> {
    let mark = Scenario::mark()?;
    let mut scenario = running("builtinmaps", "maps").await?;
    let tended = json!({ format!("{}/tended", scenario.group): "yes" });
    let (maps, secrets) = (scenario.objects("configmaps"), scenario.objects("secrets"));
    let map = |name: &str| json!({ "metadata": { "name": name, "labels": tended }, "data": { "words": "so" } });
    for name in ["one", "two", "three"] {
        maps.create(&map(name)).await?;
        secrets
            .until_equal(name, "/data/words", json!("c28="), LIMIT)
            .await?;
    }
    // While no controller runs, `one` leaves the selection and `two` becomes a child of another owner.
    scenario.kill9()?;
    let leave = json!({ "metadata": { "labels": { format!("{}/tended", scenario.group): null } } });
    maps.patch("one", &leave).await?;
    let adopted = json!({ "metadata": { "labels": { "orkestra.orkspace.io/owner-uid": "0" } } });
    maps.patch("two", &adopted).await?;
    scenario.start().await?;
    maps.until("one", "is released", LIMIT, |one| !is_marked(one))
        .await?;
    let free = |two: &Value| two["metadata"].get("finalizers").is_none();
    let two = maps.until("two", "is released", LIMIT, free).await?;
    ensure!(
        two.pointer(MANAGED).is_some(),
        "the controller removed a child's label: {two}"
    );
    for name in ["one", "two"] {
        secrets.fetch(name).await?;
    }
    scenario.katalog_is("maps", "True", "Running").await?;
    scenario.objects("katalogs").delete("maps").await?;
    scenario
        .objects("katalogs")
        .until_gone("maps", LIMIT)
        .await?;
    for name in ["one", "two", "three"] {
        let left = maps.fetch(name).await?;
        ensure!(
            left["metadata"].get("deletionTimestamp").is_none(),
            "{left}"
        );
        ensure!(left["metadata"].get("finalizers").is_none(), "{left}");
    }
    is_within_its_rights(&scenario, mark).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_katalogs_for_one_built_in_kind_the_older_has_it() -> Result<()> {
    let katalog = |name: &str| -> Value {
        json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
            "metadata": { "name": name, "namespace": "NAMESPACE" },
            "spec": { "crds": { "set": {
                "apiTypes": { "kind": "StatefulSet" },
                "labelSelector": { "GROUP/by": name },
                "operatorBox": { "onReconcile": { "configMaps": [
                    { "name": "{{ .metadata.name }}", "data": { "by": name } }
                ] } },
            } } },
        })
    };
    let first = katalog("first").to_string();
    let scenario = Scenario::with_katalog("builtinsets", &[], &first).await?;
    scenario.apply(&katalog("second").to_string())?;
    scenario.katalog_is("second", "False", "Conflict").await?;
    let katalogs = scenario.objects("katalogs");
    katalogs.delete("first").await?;
    katalogs.until_gone("first", LIMIT).await?;
    scenario.katalog_is("second", "True", "Running").await?;
    let sets: Objects = scenario.objects("statefulsets");
    let labels = json!({ format!("{}/by", scenario.group): "second" });
    let mut set = deployment("set", &labels);
    set["spec"]["serviceName"] = json!("set");
    sets.create(&set).await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("set", "/data/by", json!("second"), LIMIT)
        .await?;
    eventually("an Event regards the StatefulSet", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let is_reported = |event: &Value| {
            let regarding = ["regarding", "involvedObject"];
            let is_about_it = regarding
                .iter()
                .any(|field| event[field]["kind"] == "StatefulSet");
            event["reason"] == "Reconciled" && is_about_it
        };
        Ok(events.iter().any(is_reported).then_some(()))
    })
    .await?;
    sets.delete("set").await?;
    sets.until_gone("set", LIMIT).await
}
