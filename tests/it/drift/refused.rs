//! Applies that the API server refuses because of what another client wrote: an item in the place of a declared one, a field that
//! excludes a declared one, and a lock.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::{LIMIT, Scenario, condition, input};
use crate::waters::text;

/// Starts a scenario with a ready Website whose children are those of `drift/refused.yaml`.
async fn refusable(prefix: &str) -> Result<Scenario> {
    let crds = ["website/crd.yaml", "drift/berth.yaml"];
    let scenario = Scenario::running(prefix, &crds, "drift/refused.yaml").await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    scenario
        .objects("websites")
        .until("hello", "has all children", LIMIT, |website| {
            let ready = condition(website, "Ready").cloned().unwrap_or_default();
            let reason = text(&ready, "/reason");
            reason == "ChildrenNotReady" || reason == "ReconcileSucceeded"
        })
        .await?;
    Ok(scenario)
}

/// Edits an object as `kubectl edit` does.
fn edit(scenario: &Scenario, plural: &str, operations: &Value) -> Result<()> {
    let operations = operations.to_string();
    // Other scenarios have a kind of the same name.
    let own = format!("{plural}.{}", scenario.group);
    let plural = if plural == "berths" { &own } else { plural };
    let args = ["patch", plural, "hello", "--type=json", "-p", &operations];
    scenario.kubectl(&args).map(drop)
}

/// Returns the spec that an edit must not change.
async fn spec(scenario: &Scenario, plural: &str) -> Result<Value> {
    Ok(scenario.objects(plural).fetch("hello").await?["spec"].clone())
}

/// Edits an object, and waits until its spec is as before; no failure is reported then.
async fn is_restored(scenario: &Scenario, plural: &str, operations: &Value) -> Result<()> {
    let before = spec(scenario, plural).await?;
    edit(scenario, plural, operations)?;
    let what = format!("of {plural} is as declared after {operations}");
    scenario
        .objects(plural)
        .until("hello", &what, LIMIT, |now| now["spec"] == before)
        .await?;
    let websites = scenario.objects("websites");
    let website = websites.until("hello", "is not stalled", LIMIT, |website| {
        condition(website, "Stalled").is_none()
    });
    website.await.map(drop)
}

fn replace(path: &str, value: &Value) -> Value {
    json!({ "op": "replace", "path": path, "value": value })
}

/// Returns the operations that move a declared value to another field.
fn exchange(parent: &str, ours: &str, theirs: &str, value: &Value) -> Value {
    json!([
        { "op": "remove", "path": format!("{parent}/{ours}") },
        { "op": "add", "path": format!("{parent}/{theirs}"), "value": value },
    ])
}

// Over 60 lines: a table of edits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_took_the_place_of_a_declared_field_is_removed() -> Result<()> {
    let scenario = refusable("refused").await?;
    let container = "/spec/template/spec/containers/0";
    let field_ref = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
    let edits = [
        (
            "services",
            json!([replace("/spec/ports/0/port", &json!(81))]),
        ),
        (
            "berths",
            json!([replace("/spec/slots/0/number", &json!(2))]),
        ),
        ("berths", json!([replace("/spec/tags/0", &json!("wild"))])),
        (
            "deployments",
            exchange(
                &format!("{container}/env/0"),
                "value",
                "valueFrom",
                &field_ref,
            ),
        ),
        (
            "deployments",
            exchange(
                &format!("{container}/livenessProbe"),
                "httpGet",
                "tcpSocket",
                &json!({ "port": 80 }),
            ),
        ),
        (
            "poddisruptionbudgets",
            exchange("/spec", "minAvailable", "maxUnavailable", &json!(1)),
        ),
    ];
    for (plural, operations) in &edits {
        is_restored(&scenario, plural, operations).await?;
    }
    eventually("an Event names the removed port", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        let named = |event: &Value| {
            let note = text(event, "/message");
            event["reason"] == "FieldsRemoved"
                && note.contains("spec.ports[port=81,protocol=TCP]")
                && note.contains("kubectl-patch")
        };
        Ok(events.iter().any(named).then_some(()))
    })
    .await?;

    // What is only added beside a declared item, and accepted, stays.
    let added = json!([{ "op": "add", "path": format!("{container}/env/-"), "value": { "name": "SIZE", "value": "3" } }]);
    edit(&scenario, "deployments", &added)?;
    is_restored(
        &scenario,
        "deployments",
        &json!([replace(&format!("{container}/env/0/value"), &json!("red"))]),
    )
    .await?;
    let env = spec(&scenario, "deployments").await?;
    let env = env
        .pointer("/template/spec/containers/0/env")
        .context("no env")?;
    ensure!(env.as_array().is_some_and(|all| all.len() == 2), "{env}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_another_manager_applies_stays_until_that_manager_releases_it() -> Result<()> {
    let mut scenario = refusable("applied").await?;
    // Only while no controller runs can another manager apply the only port: the API server refuses two.
    scenario.terminate()?;
    edit(
        &scenario,
        "services",
        &json!([replace("/spec/ports/0/port", &json!(81))]),
    )?;
    let theirs =
        |spec: &str| format!("apiVersion: v1\nkind: Service\nmetadata: {{ name: hello }}\n{spec}");
    let apply = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    scenario.kubectl_with(
        &apply,
        Some(&theirs("spec: { ports: [{ port: 81, protocol: TCP }] }\n")),
    )?;
    scenario.start().await?;
    let websites = scenario.objects("websites");
    let stalled = websites.until("hello", "is stalled", LIMIT, |website| {
        condition(website, "Stalled").is_some()
    });
    let stalled = stalled.await?;
    let ready = condition(&stalled, "Ready").context("no Ready")?;
    ensure!(text(ready, "/message").contains("spec.ports"), "{ready}");
    let ports = |now: &Value| {
        now["spec"]["ports"].as_array().map(|ports| {
            ports
                .iter()
                .map(|port| port["port"].clone())
                .collect::<Vec<_>>()
        })
    };
    let services = scenario.objects("services");
    assert_eq!(
        ports(&services.fetch("hello").await?),
        Some(vec![json!(81)])
    );
    scenario.kubectl_with(&apply, Some(&theirs("")))?;
    services
        .until("hello", "has the declared port only", LIMIT, |now| {
            ports(now) == Some(vec![json!(80)])
        })
        .await?;
    websites
        .until("hello", "is not stalled", LIMIT, |website| {
            condition(website, "Stalled").is_none()
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_child_is_retried_when_it_changes_in_a_field_that_no_record_has() -> Result<()> {
    let scenario = refusable("locked").await?;
    let (websites, maps) = (scenario.objects("websites"), scenario.objects("configmaps"));
    let policy = input("drift/lock.yaml")?;
    scenario.apply(&policy)?;
    let lock =
        |lock: &Value| json!({ "metadata": { "annotations": { "example.org/locked": lock } } });
    // A policy takes a moment to be in force: this object shows when.
    maps.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "probe", "annotations": { "example.org/locked": "yes" } },
    }))
    .await?;
    let mut attempt = 0;
    eventually("the policy is in force", LIMIT, async || {
        attempt += 1;
        let change = json!({ "data": { "attempt": attempt.to_string() } });
        Ok(maps.patch("probe", &change).await.is_err().then_some(()))
    })
    .await?;

    maps.patch("hello", &lock(&json!("yes"))).await?;
    let image = json!("registry.example/web:4");
    websites
        .patch("hello", &json!({ "spec": { "image": image } }))
        .await?;
    websites
        .until("hello", "is stalled", LIMIT, |website| {
            condition(website, "Stalled").is_some()
        })
        .await?;
    maps.patch("hello", &lock(&Value::Null)).await?;
    maps.until_equal("hello", "/data/image", image, LIMIT)
        .await?;
    websites
        .until("hello", "is not stalled", LIMIT, |website| {
            condition(website, "Stalled").is_none()
        })
        .await?;
    scenario.kubectl_with(&["delete", "-f", "-"], Some(&scenario.text(&policy)))?;
    Ok(())
}
