//! The checks after the faults: they return what differs from the expected state.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::Value;

use super::GROUP;
use super::churn::{Place, Wanted};
use super::controllers::Controller;
use super::history::History;
use crate::private::Private;
use crate::scenario::{Objects, condition, is_ready, owner_uid};
use crate::waters::{managed, text};

/// The `ConfigMap` that Kubernetes creates in every namespace.
const OTHERS: &str = "kube-root-ca.crt";
const FINALIZER: &str = "orkestra.orkspace.io/";

/// Children, expected or found: the owner's uid and the content by `namespace/Kind/name`.
type Children = BTreeMap<String, (String, String)>;

/// Returns all differences from the expected state, one line each.
pub(crate) async fn problems(
    client: &Client,
    far: &str,
    (place, wanted): (&Place, &Wanted),
) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let ponds = place.ponds.list().await?;
    let lakes = place.lakes.list().await?;
    judge_resources("ponds", &ponds, &wanted.ponds, &mut problems);
    judge_resources("lakes", &lakes, &wanted.lakes, &mut problems);
    judge_katalog(place, wanted, &mut problems).await?;

    let all = everything(client, far).await?;
    let edition = format!("e{}", wanted.edition);
    let mut expected = Children::new();
    for pond in &ponds {
        expect_of_pond(pond, far, &edition, &all, &mut expected);
    }
    for lake in &lakes {
        expect_of_lake(lake, far, &edition, &mut expected);
    }
    let actual = children(&all, far, &mut problems);
    for (key, wanted) in &expected {
        match actual.get(key) {
            None => problems.push(format!("missing: {key}")),
            Some(found) if found != wanted => {
                problems.push(format!("{key} is {found:?} and should be {wanted:?}"));
            }
            Some(_) => {}
        }
    }
    let unexpected = actual.keys().filter(|key| !expected.contains_key(*key));
    // A Job that a user deleted may be missing: the history counts the Jobs that ever existed.
    let orphans = unexpected.filter(|key| !is_job_of(key, &ponds));
    problems.extend(orphans.map(|key| format!("orphan: {key} of {:?}", actual[key])));
    Ok(problems)
}

fn is_job_of(key: &str, ponds: &[Value]) -> bool {
    ponds.iter().any(|pond| {
        let name = text(pond, "/metadata/name");
        key == format!("default/Job/{name}-fill")
    })
}

fn judge_resources(
    plural: &str,
    found: &[Value],
    wanted: &BTreeMap<String, Value>,
    problems: &mut Vec<String>,
) {
    let names: BTreeSet<&str> = found
        .iter()
        .map(|one| text(one, "/metadata/name"))
        .collect();
    for name in wanted.keys().filter(|name| !names.contains(name.as_str())) {
        problems.push(format!("{plural} {name} is gone"));
    }
    for one in found {
        let name = text(one, "/metadata/name");
        let metadata = &one["metadata"];
        if metadata["deletionTimestamp"].is_string() {
            let finalizers = &metadata["finalizers"];
            problems.push(format!(
                "{plural} {name} is stuck in deletion: {finalizers}"
            ));
            continue;
        }
        match wanted.get(name) {
            None => problems.push(format!("{plural} {name} came back")),
            Some(spec) if one["spec"] != *spec => {
                problems.push(format!("{plural} {name} has {} for {spec}", one["spec"]));
            }
            Some(_) => {}
        }
        if !is_ready(one) {
            let ready = condition(one, "Ready");
            problems.push(format!("{plural} {name} is not ready: {ready:?}"));
        } else if one["status"]["colour"] != one["spec"]["colour"] {
            problems.push(format!("{plural} {name} has an old status"));
        }
    }
}

async fn judge_katalog(place: &Place, wanted: &Wanted, problems: &mut Vec<String>) -> Result<()> {
    let katalog = place.katalogs.fetch("waters").await?;
    if katalog["spec"] != place.katalog(wanted.edition)?["spec"] {
        problems.push("the Katalog has another edition".to_owned());
    }
    let is_current = katalog["status"]["observedGeneration"] == katalog["metadata"]["generation"];
    let ready = condition(&katalog, "Ready");
    if !is_current || !ready.is_some_and(|ready| ready["status"] == "True") {
        problems.push(format!("the Katalog is not ready: {ready:?}"));
    }
    for row in katalog["status"]["operators"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if row["state"] != "Running" {
            problems.push(format!("an operator does not run: {row}"));
        }
    }
    Ok(())
}

/// Returns all objects of the kinds that children have, with their kind.
async fn everything(client: &Client, far: &str) -> Result<Vec<(&'static str, Value)>> {
    let places = [
        ("ConfigMap", "/api/v1/configmaps"),
        ("Secret", "/api/v1/secrets"),
        ("Deployment", "/apis/apps/v1/deployments"),
        ("Job", "/apis/batch/v1/jobs"),
    ];
    let mut all = Vec::new();
    for (kind, path) in places {
        for object in Objects::at(client, path).list().await? {
            let namespace = text(&object, "/metadata/namespace");
            let is_near = namespace == "default" || namespace == far;
            let is_ours = !managed(vec![object.clone()]).is_empty();
            if is_ours || (is_near && text(&object, "/metadata/name") != OTHERS) {
                all.push((kind, object));
            }
        }
    }
    Ok(all)
}

/// Returns the children that were found, in the form of the expected ones.
fn children(all: &[(&'static str, Value)], far: &str, problems: &mut Vec<String>) -> Children {
    let mut children = Children::new();
    for (kind, object) in all {
        let [namespace, name] =
            ["namespace", "name"].map(|field| text(object, &format!("/metadata/{field}")));
        let key = format!("{namespace}/{kind}/{name}");
        let uid = text(object, "/metadata/labels/orkestra.orkspace.io~1owner-uid");
        // A Secret with generated values has no owner reference.
        let is_generated = *kind == "Secret" && name.ends_with("-key");
        let owner = (!is_generated).then_some(uid);
        if namespace != far && owner_uid(object) != owner {
            problems.push(format!(
                "{key}: owner reference {:?} with label {uid}",
                owner_uid(object)
            ));
        }
        let finalizers = object["metadata"]["finalizers"].to_string();
        if finalizers.contains(FINALIZER) {
            problems.push(format!("{key} has Orkestra's finalizer: {finalizers}"));
        }
        let content = match *kind {
            "ConfigMap" | "Secret" => object["data"].to_string(),
            "Deployment" => format!(
                "{} × {}",
                object["spec"]["replicas"],
                object["spec"]["template"]["spec"]["containers"][0]["image"]
            ),
            _ => String::new(),
        };
        children.insert(key, (uid.to_owned(), content));
    }
    children
}

fn expect_of_pond(
    pond: &Value,
    far: &str,
    edition: &str,
    all: &[(&'static str, Value)],
    expected: &mut Children,
) {
    let [name, uid] = ["name", "uid"].map(|field| text(pond, &format!("/metadata/{field}")));
    let colour = text(pond, "/spec/colour");
    let whole = serde_json::json!({ "colour": colour, "edition": edition }).to_string();
    let mut expect = |key: String, content: String| {
        expected.insert(key, (uid.to_owned(), content));
    };
    expect(format!("default/ConfigMap/{name}-kept"), whole.clone());
    expect(format!("{far}/ConfigMap/{name}-far"), whole);
    if pond["spec"]["deep"] == "yes" {
        let part = serde_json::json!({ "colour": colour }).to_string();
        expect(format!("default/ConfigMap/{name}-deep"), part);
    }
    let image = format!("1 × \"registry.example/{colour}:1\"");
    expect(format!("default/Deployment/{name}"), image);
    // The history checks the generated password; here the copy must match it.
    let key = format!("{name}-key");
    let is_key = |one: &&(&str, Value)| one.0 == "Secret" && text(&one.1, "/metadata/name") == key;
    let drawn = all.iter().find(is_key);
    let data = drawn.map(|one| one.1["data"].clone()).unwrap_or_default();
    let copy = STANDARD.encode(text(&data, "/password"));
    let copy = serde_json::json!({ "of": copy }).to_string();
    expect(format!("default/Secret/{name}-key"), data.to_string());
    expect(format!("default/Secret/{name}-copy"), copy);
}

fn expect_of_lake(lake: &Value, far: &str, edition: &str, expected: &mut Children) {
    let [name, uid] = ["name", "uid"].map(|field| text(lake, &format!("/metadata/{field}")));
    let colour = text(lake, "/spec/colour");
    let mut expect = |key: String, content: Value| {
        expected.insert(key, (uid.to_owned(), content.to_string()));
    };
    let whole = serde_json::json!({ "colour": colour, "edition": edition });
    expect(format!("default/ConfigMap/{name}-lake"), whole);
    let part = serde_json::json!({ "colour": colour });
    expect(format!("{far}/ConfigMap/{name}-far-lake"), part);
    let secret = serde_json::json!({ "colour": STANDARD.encode(colour) });
    expect(format!("default/Secret/{name}-lake"), secret);
}

/// Returns the problems in the history: Jobs that ran twice, changed passwords, and ponds that never had a Job or a password.
pub(crate) async fn judge_history(
    (private, place): (&Private, &Place),
    history: &History,
    made: &BTreeMap<String, usize>,
) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let ponds = place.ponds.list().await?;
    for (what, values) in [("Jobs", history.jobs()), ("passwords", history.passwords())] {
        for (owner, values) in values.iter().filter(|(_, values)| values.len() > 1) {
            problems.push(format!("{} {what} of the pond {owner}", values.len()));
        }
        for pond in &ponds {
            if !values.contains_key(text(pond, "/metadata/uid")) {
                problems.push(format!(
                    "no {what} ever of {}",
                    text(pond, "/metadata/name")
                ));
            }
        }
    }
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for event in private.cluster.audit()? {
        let is_ours = event.user == private.identity.user() && event.code == 201;
        // Jobs in the namespace of the hostile tenant are not counted.
        let is_counted = event.namespace == "default";
        if is_ours && is_counted && event.verb == "create" && event.resource == "jobs" {
            *runs.entry(event.name).or_default() += 1;
        }
    }
    for (job, runs) in runs {
        let pond = job.trim_end_matches("-fill");
        let ponds = made.get(pond).copied().unwrap_or_default();
        if runs > ponds {
            problems.push(format!(
                "the Job {job} was created {runs} times for {ponds} ponds"
            ));
        }
    }
    Ok(problems)
}

/// Returns the problems of the controllers' pages: exactly one must lead, with healthy operators and empty queues.
pub(crate) async fn judge_pages(controllers: &[Controller]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut leaders = 0;
    for controller in controllers {
        let page = controller.page().await?;
        if page["isKonductor"] != true {
            continue;
        }
        leaders += 1;
        let operators = page["crds"].as_array().context("no operators")?;
        if operators.len() != 2 {
            problems.push(format!("{} operators", operators.len()));
        }
        for operator in operators {
            if operator["healthy"] != true || operator["queueDepth"] != 0 {
                problems.push(format!("an operator is unhealthy or busy: {operator}"));
            }
        }
    }
    if leaders != 1 {
        problems.push(format!("{leaders} controllers report that they lead"));
    }
    Ok(problems)
}

/// Returns the custom resources and children that are left.
pub(crate) async fn judge_end(client: &Client, far: &str) -> Result<Vec<String>> {
    let mut left: Vec<String> = Vec::new();
    for plural in ["ponds", "lakes"] {
        let path = format!("/apis/{GROUP}/v1alpha1/{plural}");
        for one in Objects::at(client, &path).list().await? {
            let name = text(&one, "/metadata/name");
            let finalizers = &one["metadata"]["finalizers"];
            left.push(format!("{plural} {name} is left: {finalizers}"));
        }
    }
    let all = everything(client, far).await?;
    left.extend(all.iter().map(|(kind, one)| {
        let [namespace, name] =
            ["namespace", "name"].map(|field| text(one, &format!("/metadata/{field}")));
        format!("{namespace}/{kind}/{name} is left")
    }));
    Ok(left)
}
