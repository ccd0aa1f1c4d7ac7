//! Ponds and lakes: kinds and custom resources for scenarios that need instances but no specific schema.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};
use testbed::{AuditEvent, eventually};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input, request};

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

/// The maximum number of checks: in all but the last one, a count of a Katalog may be late.
const LATE_COUNTS: usize = 5;

/// Waits until no work and no report is pending: the writes have ended, no key waits for a worker, no pass runs, and each Katalog's
/// status has the counts that the controller's own page shows.
pub(crate) async fn until_counted(scenario: &Scenario) -> Result<()> {
    scenario.until_settled().await?;
    scenario.until_idle().await?;
    eventually("all work is counted", LIMIT, async || {
        ensure_counted(scenario).await?;
        Ok(Some(()))
    })
    .await
}

async fn ensure_counted(scenario: &Scenario) -> Result<()> {
    let page = scenario.page("/katalog").await?;
    let mut katalogs = Vec::new();
    for (plural, kind) in [("katalogs", "Katalog"), ("komposers", "Komposer")] {
        let all = scenario.objects(plural).list().await?;
        katalogs.extend(all.into_iter().map(|katalog| (kind, katalog)));
    }
    for (kind, katalog) in katalogs {
        let name = text(&katalog, "/metadata/name");
        for entry in page["crds"].as_array().into_iter().flatten() {
            let operator = text(entry, "/name");
            let is_of_it = entry["katalog"] == name && entry["declaredBy"] == kind;
            let Some(row) = row(&katalog, operator).filter(|_| is_of_it) else {
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

/// Checks that everything is as declared: the writes end, and then a pass of every managed custom resource writes nothing, but that
/// its status repeats the request. A Katalog may count a resource late, so a check in which only Katalogs' statuses were written
/// is repeated.
pub(crate) async fn ensure_no_writes(scenario: &Scenario) -> Result<()> {
    let is_count = |write: &AuditEvent| {
        ["katalogs", "komposers"].contains(&&*write.resource) && write.subresource == "status"
    };
    let mut writes = Vec::new();
    for _ in 0..LATE_COUNTS {
        until_counted(scenario).await?;
        let mark = Scenario::mark()?;
        let whole = pass_over_all(scenario).await?;
        writes = without_answers(scenario.writes_since(mark)?, &whole);
        if !writes.iter().all(is_count) || writes.is_empty() {
            break;
        }
    }
    ensure!(
        writes.is_empty(),
        "{} writes without any change:\n{}",
        writes.len(),
        lines(&writes)
    );
    Ok(())
}

/// Requests a pass of a custom resource, and returns the requests that the controller has sent until its end, but for watches and
/// the status that repeats the request: none, if everything is as declared.
pub(crate) async fn costs_of_a_pass(
    scenario: &Scenario,
    resources: &Objects,
    name: &str,
) -> Result<Vec<AuditEvent>> {
    scenario.until_idle().await?;
    let mark = Scenario::mark()?;
    scenario.until_handled(resources, name).await?;
    let mut requests = without_repeats(scenario.requests_since(mark)?);
    requests.retain(|request| request.verb != "watch");
    Ok(requests)
}

/// Requests a pass of every custom resource that the scenario's operators manage, and waits until all have ended. Returns the plurals
/// of the kinds without a status subresource.
async fn pass_over_all(scenario: &Scenario) -> Result<Vec<String>> {
    let mut whole = Vec::new();
    let page = scenario.page("/katalog").await?;
    for entry in page["crds"].as_array().into_iter().flatten() {
        if !["started", "healthy", "degraded"].contains(&text(entry, "/state")) {
            continue;
        }
        let operator = scenario.page(text(entry, "/path")).await?;
        let gvr = &operator["gvr"];
        let [group, version, plural] = ["/group", "/version", "/resource"].map(|at| text(gvr, at));
        let kind = match group {
            "" => format!("/api/{version}"),
            _ => format!("/apis/{group}/{version}"),
        };
        let name = text(entry, "/name");
        let before = scenario.passes(name).await?;
        let mut requested = Vec::new();
        let all = Objects::at(&scenario.client, &format!("{kind}/{plural}"));
        for resource in managed(all.list().await?) {
            // The status of a gated resource does not repeat the request.
            let is_gated = condition(&resource, "Gated").is_some();
            let is_reconciled = condition(&resource, "Ready").is_some() && !is_gated;
            if !is_reconciled || resource["metadata"]["deletionTimestamp"].is_string() {
                continue;
            }
            let path = match text(&resource, "/metadata/namespace") {
                "" => format!("{kind}/{plural}"),
                namespace => format!("{kind}/namespaces/{namespace}/{plural}"),
            };
            let resources = Objects::at(&scenario.client, &path);
            let (change, request) = request();
            let patched = resources
                .patch(text(&resource, "/metadata/name"), &change)
                .await?;
            requested.push((resources, patched, request));
        }
        let (keeps_request, has_status) = of_status(scenario, (group, version, plural)).await?;
        if !has_status {
            whole.push(plural.to_owned());
        }
        if !keeps_request {
            let passes = u32::try_from(requested.len())?;
            scenario
                .until_passes(name, before + f64::from(passes))
                .await?;
            continue;
        }
        for (resources, resource, request) in requested {
            let (name, at) = (
                text(&resource, "/metadata/name"),
                "/status/lastHandledReconcileAt",
            );
            resources
                .until_equal(name, at, json!(request), LIMIT)
                .await?;
        }
    }
    scenario.until_idle().await?;
    Ok(whole)
}

/// Returns whether the API server keeps `status.lastHandledReconcileAt` of a kind, and whether the kind has a status subresource.
async fn of_status(
    scenario: &Scenario,
    (group, version, plural): (&str, &str, &str),
) -> Result<(bool, bool)> {
    let crds = Objects::of_cluster(&scenario.client, "customresourcedefinitions");
    let crd = crds.get(&format!("{plural}.{group}")).await?;
    let versions = crd.and_then(|crd| crd["spec"]["versions"].as_array().cloned());
    let of_version = versions
        .into_iter()
        .flatten()
        .find(|one| one["name"] == version);
    let Some(of_version) = of_version else {
        return Ok((false, true));
    };
    let schema = &of_version["schema"]["openAPIV3Schema"];
    let status = &schema["properties"]["status"];
    let is_open = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
    let is_declared = !status["properties"]["lastHandledReconcileAt"].is_null();
    let keeps_request = is_declared || is_open(schema) || is_open(status);
    let has_status = of_version["subresources"]["status"].is_object();
    Ok((keeps_request, has_status))
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
pub(crate) fn without_repeats(requests: Vec<AuditEvent>) -> Vec<AuditEvent> {
    without_answers(requests, &[])
}

/// Does the same if the kinds of some plurals have no status subresource.
fn without_answers(mut requests: Vec<AuditEvent>, whole: &[String]) -> Vec<AuditEvent> {
    let mut seen = BTreeSet::new();
    requests.retain(|request| {
        let is_whole = request.subresource.is_empty() && whole.contains(&request.resource);
        let is_status = request.verb == "patch" && (request.subresource == "status" || is_whole);
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
