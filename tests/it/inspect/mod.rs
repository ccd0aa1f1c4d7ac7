//! The commands that show what runs: `ork tree`, `get`, `events`, `describe`, `logs`, `top`.

mod controllers;
mod lists;
mod terminal;

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{Identity, eventually};

use crate::scenario::{LIMIT, Scenario};
use crate::waters;

/// Runs `ork` as that user in the namespace of the scenario.
fn ork_as(scenario: &Scenario, identity: &Identity, args: &[&str]) -> Result<Output> {
    let mut command = scenario.command_as(identity);
    command
        .args(args)
        .args(["--namespace", &scenario.namespace]);
    Ok(command.output()?)
}

/// Returns the document that `ork` prints for the administrator.
fn document(scenario: &Scenario, args: &[&str]) -> Result<Value> {
    let args = [args, &["--output", "json"]].concat();
    let output = ork_as(scenario, &scenario.cluster.admin(), &args)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{args:?}: {text}{errors}");
    serde_json::from_str(&text).with_context(|| format!("{args:?}: {text}{errors}"))
}

/// Starts a scenario with a Pond whose Pod cannot pull its image.
async fn with_trouble(prefix: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &["kinds/crds.yaml"], "awaited.yaml").await?;
    waters::pond(&scenario, "lost", &json!({})).await?;
    let pods = scenario.objects("pods");
    pods.until("lost-db-0", "exists", LIMIT, |_| true).await?;
    let status = json!({ "status": { "phase": "Pending", "containerStatuses": [{
        "name": "lost-db", "image": "registry.example/db:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } },
    }] } });
    pods.patch("lost-db-0/status", &status).await?;
    Ok(scenario)
}

/// Creates a user who may do that in the namespace of the scenario, and waits until the permissions are in force.
async fn clerk(scenario: &Scenario, rules: &[(&str, &str)]) -> Result<Identity> {
    let namespace = &scenario.namespace;
    let clerk = scenario
        .cluster
        .identity(&format!("clerk-{namespace}"), &[])?;
    let rules: Vec<Value> = rules
        .iter()
        .map(|(group, resource)| {
            json!({ "apiGroups": [group.replace("GROUP", &scenario.group)], "resources": [resource], "verbs": ["get", "list", "watch"] })
        })
        .collect();
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "clerk" }, "rules": rules });
    scenario.apply(&role.to_string())?;
    let user = format!("--user={}", clerk.user());
    scenario.kubectl(&["create", "rolebinding", "clerk", "--role=clerk", &user])?;
    let last = rules.last().context("no rules")?;
    let resource = format!(
        "{}.{}",
        last["resources"][0].as_str().unwrap_or_default(),
        last["apiGroups"][0].as_str().unwrap_or_default()
    );
    let as_user = format!("--as={}", clerk.user());
    eventually("the permissions are in force", LIMIT, async || {
        let can = scenario.kubectl(&[
            "auth",
            "can-i",
            "list",
            resource.trim_end_matches('.'),
            &as_user,
        ]);
        Ok(can.is_ok().then_some(()))
    })
    .await?;
    Ok(clerk)
}

/// Returns each object of a tree as `depth Kind name`.
fn flat(node: &Value, depth: usize, all: &mut Vec<String>) {
    let text = |field: &str| node[field].as_str().unwrap_or_default();
    all.push(format!("{depth} {} {}", text("kind"), text("name")));
    for child in node["children"].as_array().into_iter().flatten() {
        flat(child, depth + 1, all);
    }
}

// Over 60 lines: one tree, as the administrator and as a user with few permissions see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_goes_down_to_the_pods_without_objects_that_only_carry_labels() -> Result<()> {
    let mut scenario = with_trouble("tree").await?;
    let pond = scenario.objects("ponds").fetch("lost").await?;
    // Another client copies every label and annotation of a child.
    let labels = json!({ "orkestra.orkspace.io/owner-uid": pond["metadata"]["uid"], "orkestra.orkspace.io/managed": "true" });
    let forged = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "forged", "labels": labels,
            "annotations": { "orkestra.orkspace.io/child": "StatefulSet/forged" } },
        "spec": { "replicas": 0, "serviceName": "", "selector": { "matchLabels": { "app": "forged" } },
            "template": { "metadata": { "labels": { "app": "forged" } },
                "spec": { "containers": [{ "name": "a", "image": "registry.example/a:1" }] } } }
    });
    scenario.objects("statefulsets").create(&forged).await?;

    let kind = format!("pond.{}/lost", scenario.group);
    let tree = document(&scenario, &["tree", &kind])?;
    let mut all = Vec::new();
    flat(&tree["root"], 0, &mut all);
    ensure!(
        all == ["0 Pond lost", "1 StatefulSet lost-db", "2 Pod lost-db-0"],
        "{tree:#}"
    );
    let set = &tree["root"]["children"][0];
    ensure!(set["health"]["status"] == "InProgress", "{set:#}");
    ensure!(
        set["health"]["message"] == "0 of 1 replicas ready",
        "{set:#}"
    );
    let pod = &set["children"][0]["health"];
    ensure!(
        pod["message"] == "container lost-db: ImagePullBackOff: Back-off pulling image",
        "{pod:#}"
    );
    ensure!(tree.get("unavailable").is_none(), "{tree:#}");

    let katalog = document(&scenario, &["tree", "katalog/waters"])?;
    let mut all = Vec::new();
    flat(&katalog["root"], 0, &mut all);
    ensure!(
        all == ["0 Katalog waters", "1 Operator pond", "2 Pond lost"],
        "{katalog:#}"
    );

    let clerk = clerk(&scenario, &[("GROUP", "ponds"), ("apps", "statefulsets")]).await?;
    let output = ork_as(&scenario, &clerk, &["tree", &kind])?;
    let (text, notes) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "{text}{notes}");
    ensure!(text.contains("└─ StatefulSet lost-db"), "{text}");
    ensure!(!text.contains("Pod lost-db-0"), "{text}");
    let missing = [
        format!(
            "not shown: pods: missing permission: list pods in namespace {}",
            scenario.namespace
        ),
        format!(
            "not shown: statefulsets outside namespace {}: missing permission: list statefulsets.apps in all namespaces",
            scenario.namespace
        ),
    ];
    for line in &missing {
        ensure!(notes.contains(line.as_str()), "{line}: {notes}");
    }

    let unknown = ork_as(
        &scenario,
        &scenario.cluster.admin(),
        &["tree", "katalog/none"],
    )?;
    ensure!(unknown.status.code() == Some(1), "{unknown:?}");
    scenario.check_running()
}

// Over 60 lines: one object, with its Events and its description.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_descriptions_are_of_an_object_and_of_what_is_below_it() -> Result<()> {
    let mut scenario = with_trouble("described").await?;
    let kind = format!("pond.{}/lost", scenario.group);
    let pod = scenario.objects("pods").fetch("lost-db-0").await?;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "pull" }, "type": "Warning", "reason": "Failed",
        "message": "cannot pull\n\u{1b}[2Jthe image", "source": { "component": "kubelet" },
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 3,
        "involvedObject": { "kind": "Pod", "namespace": &scenario.namespace, "name": "lost-db-0", "uid": pod["metadata"]["uid"] },
    });
    scenario.objects("events").create(&event).await?;
    let events = eventually("the Events of all three objects exist", LIMIT, async || {
        let events = document(&scenario, &["events", &kind])?;
        let items = events["items"].as_array().cloned().unwrap_or_default();
        let has = |kind: &str, reporter: &str| {
            let mut items = items.iter();
            items.any(|item| item["kind"] == kind && item["reporter"] == reporter)
        };
        let all = has("Pond", "orkestra")
            && has("StatefulSet", "statefulset-controller")
            && has("Pod", "kubelet");
        Ok(all.then_some(events))
    })
    .await?;
    let oldest = &events["items"][0];
    ensure!(
        oldest["reason"] == "Failed" && oldest["count"] == 3 && oldest["name"] == "lost-db-0",
        "{events:#}"
    );
    let warnings = document(&scenario, &["events", &kind, "--warnings"])?;
    let warnings = warnings["items"].as_array().cloned().unwrap_or_default();
    ensure!(
        warnings.iter().all(|one| one["type"] == "Warning"),
        "{warnings:?}"
    );
    let alone = document(&scenario, &["events", &kind, "--alone"])?;
    let alone = alone["items"].as_array().cloned().unwrap_or_default();
    ensure!(alone.iter().all(|one| one["kind"] == "Pond"), "{alone:?}");
    let own = document(&scenario, &["events"])?;
    let own = own["items"].as_array().cloned().unwrap_or_default();
    ensure!(
        !own.is_empty() && own.iter().all(|one| one["reporter"] == "orkestra"),
        "{own:?}"
    );

    let described = document(&scenario, &["describe", &kind])?;
    let operator = &described["operators"][0];
    ensure!(
        operator["name"] == "pond" && operator["katalog"]["name"] == "waters",
        "{described:#}"
    );
    ensure!(described["suspended"] == false, "{described:#}");
    ensure!(
        described["root"]["children"][0]["name"] == "lost-db",
        "{described:#}"
    );
    ensure!(
        described["conditions"]
            .to_string()
            .contains("ChildrenNotReady"),
        "{described:#}"
    );
    let output = ork_as(&scenario, &scenario.cluster.admin(), &["describe", &kind])?;
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "pond of Katalog",
        "Conditions\n",
        "ChildrenNotReady",
        "└─ StatefulSet lost-db",
        "Events\n",
        // A message stays in its row.
        "cannot pull [2Jthe image (x3)",
    ] {
        ensure!(text.contains(part), "{part}: {text}");
    }
    scenario.check_running()
}
