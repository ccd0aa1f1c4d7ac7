//! What is in force is decided by the claim on the kind, and missing knowledge removes nothing that protects or converts.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use orkestra_ground::tasks::Task;
use serde_json::{Value, json};
use testbed::eventually;

use super::{Gate, conversion};
use crate::{
    scenario::{LIMIT, Objects, condition},
    waters,
};

const SITES: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security: { webhooks: { admission: { enabled: true }, failurePolicy: Fail } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.image, prefix: 'myorg/', message: 'images must come from the internal registry' }
          - { field: '{{ .spec.tier | upper }}', notEquals: LEAD, message: 'no lead' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// Katalogs of the same kinds that sort before their holders, declare no rules, and convert to something else.
const SHADES: [&str; 2] = [
    "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: aaa-suspended }
spec:
  suspend: true
  security: { webhooks: { admission: { enabled: true } }, conversion: { enabled: true } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { a: b } }]
    cron:
      apiTypes: { group: GROUP, version: v2, kind: Cron, plural: crons }
      conversion:
        storageVersion: v2
        updateCRD: false
        paths:
          - { from: v1, to: v2, spec: { keep: other } }
          - { from: v2, to: v1, spec: { keep: other } }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { a: b } }]
",
    "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: aab-conflicting }
spec:
  security: { webhooks: { admission: { enabled: true }, failurePolicy: Fail } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.image, prefix: 'other/', message: 'a rule that is not in force' }
          - { field: '{{ .spec.tier | upper }}', notEquals: X, message: 'a rule that is not in force' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { a: b } }]
",
];

/// The identity and generation of each object that protects or converts: a removal changes the uid, and a change of what it says
/// the generation.
type Protecting = BTreeMap<String, (Value, Value)>;

async fn protecting(gate: &Gate) -> Result<Protecting> {
    let mut all = Protecting::new();
    let mut add = |plural: &str, object: &Value| {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let identity = (metadata["uid"].clone(), metadata["generation"].clone());
        all.insert(format!("{plural}/{name}"), identity);
    };
    for plural in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ] {
        for object in gate.registrations(plural).list().await? {
            let label = &object["metadata"]["labels"]["orkestra.orkspace.io/gateway"];
            if *label == *gate.scenario.namespace {
                add(plural, &object);
            }
        }
    }
    let (crds, name) = conversion::crd(gate);
    let crd = crds.fetch(&name).await?;
    ensure!(crd["spec"]["conversion"]["strategy"] == "Webhook", "{crd}");
    add("customresourcedefinitions", &crd);
    ensure!(all.len() >= 4, "{all:?}");
    Ok(all)
}

/// Creates a Site in a dry run; returns the error.
fn judged(gate: &Gate) -> Result<String> {
    let spec = json!({ "image": "myorg/a:1", "tier": "lead" });
    let site = waters::resource(&gate.scenario, "Site", "probe", &spec).to_string();
    let output = gate.kubectl_as(None, &["create", "--dry-run=server", "-f", "-"], &site)?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn until_judged(gate: &Gate) -> Result<()> {
    eventually("the webhook evaluates rules", LIMIT, async || {
        Ok(judged(gate)?.contains("no lead").then_some(()))
    })
    .await
}

async fn running(prefix: &str) -> Result<(Gate, Vec<ClusterRole>)> {
    let crds = &["rules/crds.yaml", conversion::CRD];
    let mut gate = Gate::prepared(prefix, crds, &[]).await?;
    let mut roles = gate.scenario.grant(SITES).await?;
    roles.extend(gate.scenario.grant(conversion::KATALOG).await?);
    gate.scenario.accept_faults();
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(SITES).await?;
    gate.run(conversion::KATALOG).await?;
    until_judged(&gate).await?;
    conversion::until_converted(&gate).await?;
    Ok((gate, roles))
}

/// Waits until the keeper of the configurations has worked: it restores a policy binding that was deleted.
async fn until_kept(gate: &Gate) -> Result<()> {
    let bindings = gate.registrations("validatingadmissionpolicybindings");
    let bound = bindings.list().await?.into_iter().find(|one| {
        one["metadata"]["labels"]["orkestra.orkspace.io/gateway"] == *gate.scenario.namespace
    });
    let name = bound.context("no binding")?["metadata"]["name"].clone();
    let name = name.as_str().context("no name")?;
    let before = bindings.fetch(name).await?["metadata"]["uid"].clone();
    bindings.delete(name).await?;
    eventually("the binding is written again", LIMIT, async || {
        let now = bindings.get(name).await?;
        Ok(now.filter(|now| now["metadata"]["uid"] != before).map(drop))
    })
    .await
}

/// Waits for a condition of a Katalog.
async fn until_reported(gate: &Gate, katalog: &str, text: &str) -> Result<()> {
    let katalogs = gate.scenario.objects("katalogs");
    let reports = |katalog: &Value| {
        let conditions = katalog["status"]["conditions"].to_string();
        condition(katalog, "Ready").is_some() && conditions.contains(text)
    };
    katalogs
        .until(katalog, &format!("reports {text}"), LIMIT, reports)
        .await?;
    Ok(())
}

/// Applies a Katalog that is not in force, whatever its name.
fn shaded(gate: &Gate, text: &str) -> Result<()> {
    gate.accepted(text).map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_that_is_suspended_or_in_conflict_changes_nothing_that_is_in_force() -> Result<()>
{
    let (gate, _) = running("inforce").await?;
    let before = protecting(&gate).await?;
    for (text, name, reported) in [
        (SHADES[0], "aaa-suspended", "Suspended"),
        (SHADES[1], "aab-conflicting", "Conflict"),
    ] {
        shaded(&gate, text)?;
        until_reported(&gate, name, reported).await?;
    }
    until_kept(&gate).await?;
    let mut now = protecting(&gate).await?;
    let mut before = before;
    for all in [&mut now, &mut before] {
        all.retain(|name, _| !name.starts_with("validatingadmissionpolicybindings"));
    }
    ensure!(now == before, "{before:?} became {now:?}");
    let error = judged(&gate)?;
    ensure!(
        error.contains("no lead") && !error.contains("not in force"),
        "{error}"
    );
    let crons = conversion::crons(&gate, "v1");
    let cron = json!({
        "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
        "metadata": { "name": "daily" }, "spec": { "schedule": "5 4 * * 1" },
    });
    crons.create(&cron).await?;
    let converted = conversion::crons(&gate, "v2").fetch("daily").await?;
    ensure!(
        converted["spec"]["schedule"]["minute"] == "5",
        "{converted}"
    );
    Ok(())
}

/// Takes away, or gives back, the permissions for `ControllerRevisions`.
async fn permit_revisions(gate: &Gate, roles: &[ClusterRole], permitted: bool) -> Result<()> {
    for role in roles {
        let mut role = role.clone();
        if !permitted {
            for rule in role.rules.iter_mut().flatten() {
                if let Some(resources) = &mut rule.resources {
                    resources.retain(|one| one != "controllerrevisions");
                }
            }
            let is_used = |rule: &PolicyRule| {
                let resources = rule.resources.as_ref();
                resources.is_none_or(|all| !all.is_empty())
            };
            role.rules.get_or_insert_default().retain(is_used);
        }
        gate.scenario.put_role(&role).await?;
    }
    gate.scenario
        .wait_for_right("list", "apps", "controllerrevisions", permitted)
        .await
}

/// Waits until the controller has failed to read the revisions of both Katalogs.
async fn until_blocked(gate: &Gate) -> Result<()> {
    eventually("revisions cannot be read", LIMIT, async || {
        let log = gate.scenario.log();
        let failed = |katalog: &str| {
            let mut lines = log.lines();
            lines
                .any(|line| line.contains("cannot reconcile the Katalog") && line.contains(katalog))
        };
        Ok((failed("sites") && failed("crons")).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_protects_or_converts_is_removed_while_katalogs_are_undecided() -> Result<()> {
    let (mut gate, roles) = running("undecide").await?;
    let before = protecting(&gate).await?;

    // A restart, and a failure of a task.
    gate.scenario.terminate()?;
    gate.scenario.start().await?;
    until_judged(&gate).await?;
    for task in [Task::Katalog, Task::Feed] {
        gate.scenario.restart_task(task).await?;
        until_judged(&gate).await?;
    }
    ensure!(protecting(&gate).await? == before, "a restart changed them");

    // A start at which the stored revisions cannot be read.
    gate.scenario.kill9()?;
    permit_revisions(&gate, &roles, false).await?;
    gate.scenario.launch().await?;
    until_blocked(&gate).await?;
    // The keeper works meanwhile: it adds what is missing of the Katalogs that it knows, which are none, and removes nothing.
    let now = protecting(&gate).await?;
    ensure!(now == before, "{before:?} became {now:?}");

    permit_revisions(&gate, &roles, true).await?;
    for name in ["sites", "crons"] {
        gate.scenario.katalog_is(name, "True", "Running").await?;
    }
    until_judged(&gate).await?;
    let now = protecting(&gate).await?;
    ensure!(now == before, "{before:?} became {now:?}");

    // Positive knowledge removes: the Katalog is gone.
    let katalogs: Objects = gate.scenario.objects("katalogs");
    katalogs.delete("sites").await?;
    katalogs.until_gone("sites", LIMIT).await?;
    eventually("the policies are removed", LIMIT, async || {
        let policies = gate
            .registrations("validatingadmissionpolicies")
            .list()
            .await?;
        let ours = |one: &Value| {
            one["metadata"]["labels"]["orkestra.orkspace.io/gateway"] == *gate.scenario.namespace
        };
        Ok((!policies.iter().any(ours)).then_some(()))
    })
    .await
}
