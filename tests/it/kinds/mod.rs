//! Every kind of child that has a short form, with all fields set: it is created, not written without a change, updated, repaired
//! and deleted, with exactly the permissions that `ork generate rbac` derives.
//!
//! The Katalogs of `tests/inputs/kinds`, one per kind, are merged: namespaced children belong to a Pond, cluster-scoped ones to a
//! Lake.

mod katalog;

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use orkestra_plan::named;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::{Mark, eventually};

use self::katalog::All;
use crate::scenario::{LIMIT, Objects, Scenario, condition};
use crate::waters;

/// A declared child: its resource and its name.
struct Declared {
    plural: String,
    group: String,
    name: String,
    /// True for Jobs, and for Secrets with generated values: their labels are not updated at once.
    is_once: bool,
}

/// The rules about kinds of children, from the roles that `ork generate rbac` prints.
struct Rights(BTreeSet<(String, String, String)>);

impl Rights {
    fn of(roles: &[ClusterRole]) -> Self {
        let all = roles.iter().flat_map(|role| role.rules.iter().flatten());
        // Skip rules of the install role, and permissions that the operator only grants through Roles that it creates.
        let of_children = all.filter(|rule| {
            let has = |verb: &str| rule.verbs.iter().any(|known| known == verb);
            has("create") && has("delete") && has("watch")
        });
        let mut rights = BTreeSet::new();
        for rule in of_children {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    for verb in &rule.verbs {
                        rights.insert((verb.clone(), group.clone(), resource.clone()));
                    }
                }
            }
        }
        Self(rights)
    }

    /// Returns the kinds, as pairs of group and plural.
    fn kinds(&self) -> BTreeSet<(String, String)> {
        let kinds = self.0.iter();
        kinds
            .map(|(_, group, plural)| (group.clone(), plural.clone()))
            .collect()
    }
}

/// Returns the objects of a kind, in the scenario's namespace if the kind is namespaced.
fn collection(scenario: &Scenario, group: &str, plural: &str) -> Objects {
    let known = named(plural).filter(|known| *known.group == *group);
    let version = known.as_ref().map_or("v1", |known| &known.version);
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    let namespaced = known.as_ref().and_then(|known| known.namespaced);
    let path = if namespaced == Some(false) {
        format!("{root}/{plural}")
    } else {
        format!("{root}/namespaces/{}/{plural}", scenario.namespace)
    };
    Objects::at(&scenario.client, &path)
}

/// Returns the scenario's children that exist and are not being deleted.
async fn children(scenario: &Scenario, rights: &Rights) -> Result<Vec<(Declared, Value)>> {
    let katalog = format!("{}.kinds", scenario.namespace);
    let mut all = Vec::new();
    for (group, plural) in rights.kinds() {
        let objects = collection(scenario, &group, &plural);
        for object in objects.list().await? {
            let labels = &object["metadata"]["labels"];
            let is_ours = labels["orkestra.orkspace.io/katalog"] == *katalog
                && object["metadata"]["deletionTimestamp"].is_null();
            if is_ours {
                let annotations = &object["metadata"]["annotations"];
                let lasts = annotations["orkestra.orkspace.io/generated-at"].is_string();
                let declared = Declared {
                    name: waters::text(&object, "/metadata/name").to_owned(),
                    is_once: plural == "jobs" || lasts,
                    plural: plural.clone(),
                    group: group.clone(),
                };
                all.push((declared, object));
            }
        }
    }
    Ok(all)
}

/// Waits until `count` children exist and all have the label `team`.
async fn until_team(scenario: &Scenario, rights: &Rights, team: &str, count: usize) -> Result<()> {
    eventually(
        &format!("all children are of team {team}"),
        LIMIT,
        async || {
            let all = children(scenario, rights).await?;
            let other = |(declared, object): &&(Declared, Value)| {
                !declared.is_once && object["metadata"]["labels"]["team"] != team
            };
            let others: Vec<String> = all
                .iter()
                .filter(other)
                .map(|(declared, _)| format!("{}/{}", declared.plural, declared.name))
                .collect();
            if all.len() != count || !others.is_empty() {
                let why = failures(scenario).await?;
                bail!("{} of {count}, others {others:?}; {why:?}", all.len());
            }
            Ok(Some(()))
        },
    )
    .await
}

/// Returns the reason and message of the condition `Ready` of each custom resource.
async fn failures(scenario: &Scenario) -> Result<Vec<String>> {
    let mut reported = Vec::new();
    for plural in ["ponds", "lakes"] {
        for resource in scenario.objects(plural).list().await? {
            let ready = condition(&resource, "Ready").cloned().unwrap_or_default();
            reported.push(format!(
                "{plural}: {} {}",
                waters::text(&ready, "/reason"),
                waters::text(&ready, "/message")
            ));
        }
    }
    Ok(reported)
}

fn ensure_no_write(scenario: &Scenario, since: Mark, what: &str) -> Result<()> {
    let writes = scenario.writes_since(since)?;
    ensure!(
        writes.is_empty(),
        "{what} costs {} writes:\n{}",
        writes.len(),
        waters::lines(&writes)
    );
    Ok(())
}

async fn set(scenario: &Scenario, spec: &Value) -> Result<()> {
    for plural in ["ponds", "lakes"] {
        let change = json!({ "spec": spec });
        scenario.objects(plural).patch("all", &change).await?;
    }
    Ok(())
}

/// Checks that a change of an immutable field is reported as `ImmutableField` until it is reverted.
async fn ensure_immutable_is_reported(scenario: &Scenario) -> Result<()> {
    let ponds = scenario.objects("ponds");
    ponds
        .patch("all", &json!({ "spec": { "disk": "2Gi" } }))
        .await?;
    let what = "reports that a StatefulSet's volumes cannot be changed";
    ponds
        .until("all", what, LIMIT, |pond| {
            condition(pond, "Ready").is_some_and(|ready| {
                let message = waters::text(ready, "/message");
                ready["reason"] == "ImmutableField"
                    && message.contains("StatefulSet")
                    && message.contains("updates to statefulset spec")
            })
        })
        .await?;
    ponds
        .patch("all", &json!({ "spec": { "disk": "1024Mi" } }))
        .await?;
    ponds
        .until("all", "recovers", LIMIT, |pond| {
            condition(pond, "Ready").is_some_and(|ready| ready["reason"] != "ImmutableField")
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn every_kind_is_made_kept_without_a_write_followed_repaired_and_removed_with_the_derived_permissions()
-> Result<()> {
    let all = All::read()?;
    let mut scenario = Scenario::new("kinds").await?;
    let start = Scenario::mark()?;
    let roles = scenario.grant(&all.katalog()?).await?;
    let rights = Rights::of(&roles);
    ensure!(rights.kinds().len() == 26, "{:?}", rights.kinds());
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&all.katalog()?)?;
    scenario.katalog_is("kinds", "True", "Running").await?;
    for resource in &all.resources {
        scenario.apply(&serde_json::to_string(resource)?)?;
    }
    let count = all.count();
    until_team(&scenario, &rights, "herons", count).await?;
    until_explained(&scenario).await?;
    scenario.until_settled().await?;

    ensure_second_pass_writes_nothing(&scenario).await?;
    ensure_restart_writes_nothing(&mut scenario).await?;
    ensure_team_is_followed(&scenario, &rights, count).await?;
    ensure_immutable_is_reported(&scenario).await?;
    ensure_unlabelled_children_return(&scenario, &rights, count).await?;

    set(&scenario, &json!({ "enabled": "false" })).await?;
    until_count(&scenario, &rights, 1).await?;
    scenario.apply(&all.without("jobs")?)?;
    until_count(&scenario, &rights, 0).await?;
    ensure_rights_are_used(&scenario, &rights, start)
}

/// Waits until the status says what the children that are not ready wait for, which is looked up seconds after everything else.
async fn until_explained(scenario: &Scenario) -> Result<()> {
    let is_explained = |pond: &Value| {
        condition(pond, "Ready").is_some_and(|ready| {
            ready["status"] == "True" || waters::text(ready, "/message").contains(" (")
        })
    };
    let what = "says what it waits for";
    let ponds = scenario.objects("ponds");
    ponds.until("all", what, LIMIT, is_explained).await?;
    Ok(())
}

/// Requests another reconcile pass of both operators, and checks that it writes nothing.
async fn ensure_second_pass_writes_nothing(scenario: &Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    for plural in ["ponds", "lakes"] {
        let resources = scenario.objects(plural);
        scenario.until_handled(&resources, "all").await?;
    }
    let writes = waters::without_repeats(scenario.writes_since(mark)?);
    ensure!(
        writes.is_empty(),
        "a second pass costs:\n{}",
        waters::lines(&writes)
    );
    Ok(())
}

/// Restarts the controller, and checks that its first reconcile passes write nothing.
async fn ensure_restart_writes_nothing(scenario: &mut Scenario) -> Result<()> {
    let mark = Scenario::mark()?;
    scenario.terminate()?;
    scenario.start().await?;
    for operator in ["pond", "lake"] {
        scenario.until_passes(operator, 1.0).await?;
    }
    ensure_no_write(scenario, mark, "a restart")
}

/// Changes the team, and checks that all children have it and that the Pod is replaced.
async fn ensure_team_is_followed(scenario: &Scenario, rights: &Rights, count: usize) -> Result<()> {
    let pods = scenario.objects("pods");
    let pod = pods.fetch("all-test").await?["metadata"]["uid"].clone();
    set(scenario, &json!({ "team": "bitterns" })).await?;
    until_team(scenario, rights, "bitterns", count).await?;
    ensure!(
        pods.fetch("all-test").await?["metadata"]["uid"] != pod,
        "the Pod was not replaced although its variables changed"
    );
    Ok(())
}

/// Removes the label that watches select from all children, and checks that they are found and repaired.
async fn ensure_unlabelled_children_return(
    scenario: &Scenario,
    rights: &Rights,
    count: usize,
) -> Result<()> {
    // Without the label, an object disappears from the watch: the operator tries to create it, and finds its own object.
    let mut made = children(scenario, rights).await?;
    made.retain(|(declared, _)| !declared.is_once);
    let gone = json!({ "metadata": { "labels": { "orkestra.orkspace.io/managed": null, "team": "thieves" } } });
    for (declared, _) in &made {
        let objects = collection(scenario, &declared.group, &declared.plural);
        objects.patch(&declared.name, &gone).await?;
    }
    until_team(scenario, rights, "bitterns", count).await
}

async fn until_count(scenario: &Scenario, rights: &Rights, count: usize) -> Result<()> {
    eventually(&format!("{count} children are left"), LIMIT, async || {
        let left = children(scenario, rights).await?;
        let names: Vec<&str> = left.iter().map(|(one, _)| one.name.as_str()).collect();
        ensure!(
            names.len() == count,
            "{names:?}; {:?}",
            failures(scenario).await?
        );
        Ok(Some(()))
    })
    .await
}

/// Checks that each permission on a child's kind was used, and that no request was denied.
fn ensure_rights_are_used(scenario: &Scenario, rights: &Rights, start: Mark) -> Result<()> {
    let requests = scenario.requests_since(start)?;
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| request.code == 403)
        .collect();
    ensure!(refused.is_empty(), "denied: {refused:#?}");
    let used: BTreeSet<_> = requests
        .iter()
        .filter(|request| request.subresource.is_empty())
        .map(|request| {
            (
                request.verb.clone(),
                request.group.clone(),
                request.resource.clone(),
            )
        })
        .collect();
    let is_needed_unseen = |(verb, _, resource): &(String, String, String)| match verb.as_str() {
        // A server-side apply that creates an object needs `create` and `patch`, and is logged as `patch`.
        "create" => resource != "jobs",
        // A Job is read only if another object has its name.
        "get" => resource == "jobs",
        _ => false,
    };
    let unused: Vec<_> = rights
        .0
        .difference(&used)
        .filter(|right| !is_needed_unseen(right))
        .collect();
    ensure!(unused.is_empty(), "never used: {unused:?}");
    Ok(())
}
