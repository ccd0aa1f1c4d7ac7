//! Ponds and lakes: kinds and custom resources for scenarios that need instances but no specific schema.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};
use testbed::{AuditEvent, eventually};

use crate::scenario::{LIMIT, Objects, Scenario, input};

/// The maximum time until Kubernetes' own controllers react to a write.
const REACTION: Duration = Duration::from_secs(2);

/// Returns `tests/inputs/kinds/crds.yaml`: the kinds Pond and Lake, which preserve unknown fields.
pub(crate) fn crds() -> Result<String> {
    input("kinds/crds.yaml")
}

/// Returns a custom resource of the scenario's group.
pub(crate) fn resource(scenario: &Scenario, kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1alpha1", scenario.group),
        "kind": kind,
        "metadata": { "name": name },
        "spec": spec,
    })
}

/// Creates a Pond.
pub(crate) async fn pond(scenario: &Scenario, name: &str, spec: &Value) -> Result<Value> {
    let pond = resource(scenario, "Pond", name, spec);
    scenario.objects("ponds").create(&pond).await
}

/// Creates a Lake.
pub(crate) async fn lake(scenario: &Scenario, name: &str, spec: &Value) -> Result<Value> {
    let lake = resource(scenario, "Lake", name, spec);
    scenario.objects("lakes").create(&lake).await
}

/// Returns the text at a JSON pointer; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the names of objects, sorted.
pub(crate) fn names(objects: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = objects
        .iter()
        .map(|object| text(object, "/metadata/name").to_owned())
        .collect();
    names.sort();
    names
}

/// Returns the objects that Orkestra manages.
pub(crate) fn managed(objects: Vec<Value>) -> Vec<Value> {
    let is_managed =
        |object: &Value| object["metadata"]["labels"]["orkestra.orkspace.io/managed"] == "true";
    objects.into_iter().filter(is_managed).collect()
}

/// Returns one line for each request, for messages of failed tests.
pub(crate) fn lines(events: &[AuditEvent]) -> String {
    let line = |event: &AuditEvent| {
        format!(
            "{} {} {} {}/{}: {}",
            event.timestamp, event.verb, event.resource, event.subresource, event.name, event.code
        )
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Waits until no work and no report is pending: nothing was written for the time in which other controllers react, no key waits
/// for a worker, no pass runs, each Katalog's status has the counts that the controller's own page shows, and all writes are in
/// the audit log.
pub(crate) async fn until_counted(scenario: &Scenario) -> Result<()> {
    scenario.until_settled(REACTION, LIMIT).await?;
    eventually("all work is done and counted", LIMIT, async || {
        ensure_counted(scenario).await?;
        Ok(Some(()))
    })
    .await?;
    scenario.until_logged().await
}

async fn ensure_counted(scenario: &Scenario) -> Result<()> {
    for metric in ["orkestra_queue_depth", "orkestra_workers_active"] {
        let series = scenario.series(metric, &[]).await?;
        let busy: Vec<_> = (series.iter()).filter(|one| !one.ends_with(" 0")).collect();
        ensure!(busy.is_empty(), "{busy:?}");
    }
    let page = scenario.page("/katalog").await?;
    for katalog in scenario.objects("katalogs").list().await? {
        let name = text(&katalog, "/metadata/name");
        for entry in page["crds"].as_array().into_iter().flatten() {
            let operator = text(entry, "/name");
            let Some(row) = row(&katalog, operator).filter(|_| entry["katalog"] == name) else {
                continue;
            };
            let shown = (&entry["resourceCount"], &entry["readyCount"]);
            let reported = (&row["instances"], &row["ready"]);
            ensure!(
                shown == reported,
                "{name}/{operator}: {shown:?} and {reported:?}"
            );
        }
    }
    Ok(())
}

/// Checks that the scenario's controller writes nothing for `window`. On a busy machine, the counts of a Katalog may be late: if
/// exactly one such status was written, the check runs once more.
pub(crate) async fn ensure_no_writes(scenario: &Scenario, window: Duration) -> Result<()> {
    let mark = Scenario::mark()?;
    tokio::time::sleep(window).await;
    scenario.until_logged().await?;
    let mut writes = scenario.writes_since(mark)?;
    if let [count] = &*writes
        && (&*count.resource, &*count.subresource) == ("katalogs", "status")
    {
        let mark = Scenario::mark()?;
        tokio::time::sleep(window).await;
        scenario.until_logged().await?;
        writes = scenario.writes_since(mark)?;
    }
    ensure!(
        writes.is_empty(),
        "{} writes in {window:?} without any change:\n{}",
        writes.len(),
        lines(&writes)
    );
    Ok(())
}

/// Adds a quota that denies service accounts in the scenario's namespace: creating one fails, although its declaration is valid.
pub(crate) async fn forbid_accounts(scenario: &Scenario) -> Result<()> {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "no-accounts" },
        "spec": { "hard": { "count/serviceaccounts": "0" } },
    });
    let quotas = scenario.objects("resourcequotas");
    quotas.create(&quota).await?;
    let is_counted = |quota: &Value| !quota["status"]["hard"].is_null();
    quotas
        .until("no-accounts", "is counted", LIMIT, is_counted)
        .await
        .map(drop)
}

/// Returns the requests without the first status patch of each object: with it, the status repeats the annotation that
/// requested the pass.
pub(crate) fn without_repeats(mut requests: Vec<AuditEvent>) -> Vec<AuditEvent> {
    let mut seen = BTreeSet::new();
    requests.retain(|request| {
        let is_status = request.verb == "patch" && request.subresource == "status";
        !is_status || !seen.insert((request.resource.clone(), request.name.clone()))
    });
    requests
}

/// Returns the row of an operator in its Katalog's status.
pub(crate) fn row<'a>(katalog: &'a Value, operator: &str) -> Option<&'a Value> {
    katalog
        .pointer("/status/operators")?
        .as_array()?
        .iter()
        .find(|row| row["name"] == operator)
}

/// Returns the Warning events about the object `name`.
pub(crate) async fn warnings(scenario: &Scenario, name: &str) -> Result<Vec<Value>> {
    let mut events = scenario.objects("events").list().await?;
    events
        .retain(|event| event["type"] == "Warning" && text(event, "/involvedObject/name") == name);
    Ok(events)
}

/// Creates a second namespace for a scenario, and returns its name.
pub(crate) async fn second_namespace(client: &Client) -> Result<String> {
    testbed::namespace(client, "far").await
}

/// Returns the text of an input file with its placeholder `from` replaced.
pub(crate) fn filled(path: &str, from: &str, to: &str) -> Result<String> {
    let text = input(path)?;
    ensure!(text.contains(from), "{path} has no {from}");
    Ok(text.replace(from, to))
}

/// Returns the object's resourceVersion.
pub(crate) async fn version(objects: &Objects, name: &str) -> Result<String> {
    let object = objects.fetch(name).await?;
    object["metadata"]["resourceVersion"]
        .as_str()
        .map(str::to_owned)
        .context("an object without a resourceVersion")
}
