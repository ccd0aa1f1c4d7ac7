//! Permissions: one scenario uses each verb on each resource that is granted.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;
use testbed::{AuditEvent, ControlPlane, Mark};

use super::Case;
use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

/// A verb on a resource: verb, group, resource with its subresource.
type Right = (String, String, String);

/// Permissions that no request of the scenario uses, and why they are granted. `GROUP` stands for the scenario's API group.
const UNSEEN: [(&str, &str, &str, &str); 15] = [
    (
        "list",
        "",
        "pods",
        "why a workload is not ready, after ten seconds; see module `awaited`",
    ),
    ("list", "", "events", "the same"),
    (
        "update",
        "GROUP",
        "ponds/finalizers",
        "required by the admission plugin OwnerReferencesPermissionEnforcement, which is disabled here",
    ),
    ("update", "GROUP", "lakes/finalizers", "the same"),
    (
        "update",
        "orkestra.orkspace.io",
        "katalogs/finalizers",
        "the same",
    ),
    (
        "get",
        "orkestra.orkspace.io",
        "komposers",
        "this scenario has no Komposer; see module `komposer`",
    ),
    ("patch", "orkestra.orkspace.io", "komposers", "the same"),
    (
        "patch",
        "orkestra.orkspace.io",
        "komposers/status",
        "the same",
    ),
    (
        "update",
        "orkestra.orkspace.io",
        "komposers/finalizers",
        "the same",
    ),
    (
        "get",
        "orkestra.orkspace.io",
        "katalogs",
        "read again after a write conflict, which is a race",
    ),
    (
        "get",
        "GROUP",
        "ponds",
        "read again after a write conflict during a release",
    ),
    ("get", "GROUP", "lakes", "the same"),
    (
        "patch",
        "",
        "events",
        "an Event that repeats within minutes",
    ),
    (
        "create",
        "authentication.k8s.io",
        "tokenreviews",
        "for clients that read metrics and pages; loopback needs no token; see module `http`",
    ),
    (
        "create",
        "authorization.k8s.io",
        "subjectaccessreviews",
        "the same",
    ),
];

impl Case {
    /// Returns the permissions that the scenario's user has used since the mark.
    fn used(&self, since: Mark) -> Result<BTreeSet<Right>> {
        let mut events = ControlPlane::shared().audit_since(since)?;
        events.retain(|event| event.user == self.scenario.identity.user());
        let refused: Vec<AuditEvent> = events
            .iter()
            .filter(|event| event.code == 403)
            .cloned()
            .collect();
        ensure!(refused.is_empty(), "refused: {}", waters::lines(&refused));
        let right = |event: &AuditEvent, verb: &str| {
            let resource = match event.subresource.as_str() {
                "" => event.resource.clone(),
                below => format!("{}/{below}", event.resource),
            };
            (verb.to_owned(), event.group.clone(), resource)
        };
        let mut used = BTreeSet::new();
        for event in &events {
            used.insert(right(event, &event.verb));
            // An apply that creates an object is authorized as both, and logged as a patch.
            if event.verb == "patch" && event.code == 201 {
                used.insert(right(event, "create"));
            }
        }
        Ok(used)
    }
}

fn granted(roles: &[ClusterRole]) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for rule in roles.iter().flat_map(|role| role.rules.iter().flatten()) {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let right = |verb: &String| (verb.clone(), group.clone(), resource.clone());
                all.extend(rule.verbs.iter().map(right));
            }
        }
    }
    all
}

/// Removes the label `managed`, and waits until it is restored. The object leaves the watch, so the controller must read it.
async fn unlabel(scenario: &Scenario, plural: &str, name: &str) -> Result<()> {
    const LABEL: &str = "/metadata/labels/orkestra.orkspace.io~1managed";
    let gone = json!({ "metadata": { "labels": { "orkestra.orkspace.io/managed": null } } });
    let objects = scenario.objects(plural);
    objects.patch(name, &gone).await?;
    objects
        .until_equal(name, LABEL, json!("true"), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_permission_that_is_derived_is_used() -> Result<()> {
    let start = Scenario::mark()?;
    let mut case = Case::new().await?;
    let scenario = &case.scenario;
    an_autoscaler_comes_and_goes(scenario).await?;
    unlabel(scenario, "deployments", "north").await?;
    unlabel(scenario, "services", "north-lake").await?;
    a_job_of_somebody_else_is_in_the_way(&case).await?;
    gates_close(&case).await?;
    revisions_come(&case).await?;
    case.pond("south").await?;
    case.scenario.objects("ponds").until_ready("south").await?;
    let katalogs = case.scenario.objects("katalogs");
    katalogs.delete("waters").await?;
    katalogs.until_gone("waters", LIMIT).await?;
    ensure_all_are_used(&case, start)
}

/// Scales the Deployment as another client: without an autoscaler, with one, and after it is deleted.
async fn an_autoscaler_comes_and_goes(scenario: &Scenario) -> Result<()> {
    let deployments = scenario.objects("deployments");
    // Another client scales the Deployment: the controller checks for an autoscaler.
    let more = json!({ "spec": { "replicas": 3 } });
    deployments.patch("north", &more).await?;
    deployments
        .until_equal("north", "/spec/replicas", json!(0), LIMIT)
        .await?;
    // Now an autoscaler exists.
    let scalers = scenario.objects("horizontalpodautoscalers");
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "north" });
    let scaler = json!({ "metadata": { "name": "north" }, "spec": { "scaleTargetRef": target, "maxReplicas": 3 } });
    scalers.create(&scaler).await?;
    deployments.patch("north", &more).await?;
    let ponds = scenario.objects("ponds");
    ponds
        .until("north", "is autoscaled", LIMIT, |pond| {
            condition(pond, "Autoscaled").is_some()
        })
        .await?;
    scalers.delete("north").await?;
    deployments
        .until_equal("north", "/spec/replicas", json!(0), LIMIT)
        .await?;
    Ok(())
}

/// Declares a Job whose name is taken by another client's Job, and then the former one again.
async fn a_job_of_somebody_else_is_in_the_way(case: &Case) -> Result<()> {
    let jobs = case.scenario.objects("jobs");
    // Another client's Job has the name. The Job that the controller created before is no longer declared.
    let container = json!({ "name": "job", "image": "registry.example/job:1" });
    let pod = json!({ "containers": [container], "restartPolicy": "Never" });
    let job =
        json!({ "metadata": { "name": "north-drain" }, "spec": { "template": { "spec": pod } } });
    jobs.create(&job).await?;
    let drain = json!({ "job": "drain" });
    case.set("ponds", "north", &drain).await?;
    jobs.until_gone("north-fill", LIMIT).await?;
    jobs.delete("north-drain").await?;
    let fill = json!({ "job": "fill" });
    case.set("ponds", "north", &fill).await?;
    case.scenario.objects("ponds").until_ready("north").await?;
    Ok(())
}

/// Closes the gates of both operators, so that their children are deleted.
async fn gates_close(case: &Case) -> Result<()> {
    let closed = json!({ "open": "false" });
    case.set("ponds", "north", &closed).await?;
    case.set("lakes", "north", &closed).await?;
    let deployments = case.scenario.objects("deployments");
    deployments.until_gone("north", LIMIT).await?;
    let services = case.scenario.objects("services");
    services.until_gone("north-lake", LIMIT).await
}

/// Applies revisions of the Katalog: one is applied again, and they exceed the number that is kept.
async fn revisions_come(case: &Case) -> Result<()> {
    let katalog = input("rights/every.yaml")?;
    for revision in [1, 0, 2, 3, 4] {
        let revision = format!("revision {revision}");
        case.scenario
            .apply(&katalog.replace("revision 0", &revision))?;
        case.scenario
            .katalog_is("waters", "True", "Running")
            .await?;
    }
    Ok(())
}

/// Checks that each granted permission was used, except those in `UNSEEN`.
fn ensure_all_are_used(case: &Case, start: Mark) -> Result<()> {
    let used = case.used(start)?;
    let is_known = |(verb, group, resource): &Right| {
        UNSEEN.iter().any(|(known, of, what, _)| {
            known == verb && case.scenario.text(of) == *group && what == resource
        })
    };
    let granted = granted(&case.roles);
    let unused: Vec<&Right> = granted
        .difference(&used)
        .filter(|right| !is_known(right))
        .collect();
    ensure!(unused.is_empty(), "granted and never used: {unused:#?}");
    Ok(())
}
