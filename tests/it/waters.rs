//! Ponds and lakes: kinds and custom resources for scenarios in which only one thing about them matters.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};
use testbed::AuditEvent;

use crate::scenario::{Objects, Scenario, input};

/// `tests/inputs/kinds/crds.yaml`: Pond and Lake, which keep whatever they are given.
pub(crate) fn crds() -> Result<String> {
    input("kinds/crds.yaml")
}

/// A custom resource of the scenario's group.
pub(crate) fn resource(scenario: &Scenario, kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1alpha1", scenario.group),
        "kind": kind,
        "metadata": { "name": name },
        "spec": spec,
    })
}

/// Makes a Pond.
pub(crate) async fn pond(scenario: &Scenario, name: &str, spec: &Value) -> Result<Value> {
    let pond = resource(scenario, "Pond", name, spec);
    scenario.objects("ponds").create(&pond).await
}

/// Makes a Lake.
pub(crate) async fn lake(scenario: &Scenario, name: &str, spec: &Value) -> Result<Value> {
    let lake = resource(scenario, "Lake", name, spec);
    scenario.objects("lakes").create(&lake).await
}

/// The text at a JSON pointer; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The names of objects, sorted.
pub(crate) fn names(objects: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = objects
        .iter()
        .map(|object| text(object, "/metadata/name").to_owned())
        .collect();
    names.sort();
    names
}

/// The objects that Orkestra manages.
pub(crate) fn managed(objects: Vec<Value>) -> Vec<Value> {
    let is_managed =
        |object: &Value| object["metadata"]["labels"]["orkestra.orkspace.io/managed"] == "true";
    objects.into_iter().filter(is_managed).collect()
}

/// One line for each request, for the message of a failed test.
pub(crate) fn lines(events: &[AuditEvent]) -> String {
    let line = |event: &AuditEvent| {
        format!(
            "{} {} {} {}/{}: {}",
            event.timestamp, event.verb, event.resource, event.subresource, event.name, event.code
        )
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Waits until a Katalog's status has told the last counts, which it does every five seconds at most.
pub(crate) async fn until_counted() {
    tokio::time::sleep(Duration::from_secs(6)).await;
}

/// Watches for `window` that the scenario's controller writes nothing. Where the machine is busy, the counts of a Katalog may come
/// late: if nothing but one of them was written, it watches once more.
pub(crate) async fn ensure_no_writes(scenario: &Scenario, window: Duration) -> Result<()> {
    let mark = Scenario::mark()?;
    tokio::time::sleep(window).await;
    let mut writes = scenario.writes_since(mark)?;
    if let [count] = &*writes
        && (&*count.resource, &*count.subresource) == ("katalogs", "status")
    {
        let mark = Scenario::mark()?;
        tokio::time::sleep(window).await;
        writes = scenario.writes_since(mark)?;
    }
    ensure!(
        writes.is_empty(),
        "{} writes in {window:?} in which nothing happened:\n{}",
        writes.len(),
        lines(&writes)
    );
    Ok(())
}

/// The row of an operator in its Katalog's status.
pub(crate) fn row<'a>(katalog: &'a Value, operator: &str) -> Option<&'a Value> {
    katalog
        .pointer("/status/operators")?
        .as_array()?
        .iter()
        .find(|row| row["name"] == operator)
}

/// The Warning events about the object of that name.
pub(crate) async fn warnings(scenario: &Scenario, name: &str) -> Result<Vec<Value>> {
    let mut events = scenario.objects("events").list().await?;
    events
        .retain(|event| event["type"] == "Warning" && text(event, "/involvedObject/name") == name);
    Ok(events)
}

/// A namespace of a scenario's own beside its first, and the objects of a plural of core v1 in it.
pub(crate) async fn second_namespace(client: &Client) -> Result<String> {
    testbed::namespace(client, "far").await
}

/// The Katalog's text with its placeholder `from` replaced.
pub(crate) fn filled(path: &str, from: &str, to: &str) -> Result<String> {
    let text = input(path)?;
    ensure!(text.contains(from), "{path} has no {from}");
    Ok(text.replace(from, to))
}

/// The object's resourceVersion.
pub(crate) async fn version(objects: &Objects, name: &str) -> Result<String> {
    let object = objects.fetch(name).await?;
    object["metadata"]["resourceVersion"]
        .as_str()
        .map(str::to_owned)
        .context("an object without a resourceVersion")
}
