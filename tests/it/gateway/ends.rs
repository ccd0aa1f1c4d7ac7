//! How a gateway ends: tasks that fail, and what is removed when it stops.

use anyhow::{Context as _, Result, ensure};
use orkestra_ground::tasks::{OnTaskEnd, Task};
use serde_json::json;
use testbed::eventually;

use super::{Gate, conversion};
use crate::{scenario::LIMIT, waters};

const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security:
    webhooks: { admission: { enabled: true }, failurePolicy: Fail, cleanupOnShutdown: CLEANUP }
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

async fn count(gate: &Gate, metric: &str, task: Task) -> Result<u64> {
    let answer = gate.scenario.http("/metrics").await?;
    let series = format!("{metric}{{task=\"{}\"}} ", task.name());
    let value = answer.lines().find_map(|line| line.strip_prefix(&series));
    Ok(value.unwrap_or("0").parse()?)
}

/// Ends the task of that name the next time it runs.
async fn strike(gate: &Gate, line: &str) -> Result<()> {
    let faults = gate.scenario.path("faults");
    let new = faults.with_extension("new");
    std::fs::write(&new, line)?;
    std::fs::rename(new, &faults)?;
    eventually("the faults are read", LIMIT, async || {
        Ok((!faults.exists()).then_some(()))
    })
    .await
}

/// The error of a Site that the webhook refuses.
fn judged(gate: &Gate, tier: &str) -> Result<String> {
    let spec = json!({ "image": "myorg/a:1", "tier": tier });
    let site = waters::resource(&gate.scenario, "Site", "probe", &spec).to_string();
    let output = gate.kubectl_as(None, &["create", "--dry-run=server", "-f", "-"], &site)?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn until_judged(gate: &Gate) -> Result<()> {
    eventually("the webhook judges", LIMIT, async || {
        Ok(judged(gate, "lead")?.contains("no lead").then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn each_task_of_the_gateway_that_ends_follows_its_rule_and_reviews_continue()
-> Result<()> {
    let katalog = KATALOG.replace("CLEANUP", "false");
    let mut gate = Gate::prepared("gatetask", &["rules/crds.yaml"], &[&katalog]).await?;
    let faults = gate.scenario.path("faults").to_string_lossy().into_owned();
    gate.scenario.environment.push(("ORK_TASK_FAULTS", faults));
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(&katalog).await?;
    until_judged(&gate).await?;

    for task in [Task::WebhookCertificate, Task::WebhookConfigurations] {
        ensure!(task.at_end() == OnTaskEnd::Restart);
        strike(&gate, &format!("{} ", task.name())).await?;
        eventually("it is restarted", LIMIT, async || {
            let failures = count(&gate, "orkestra_task_failures_total", task).await?;
            let restarts = count(&gate, "orkestra_task_restarts_total", task).await?;
            Ok((failures == 1 && restarts == 1).then_some(()))
        })
        .await
        .with_context(|| format!("{task:?}"))?;
        let error = judged(&gate, "lead")?;
        ensure!(error.contains("no lead"), "{task:?}: {error}");
    }
    // It writes what is missing again.
    let configurations = gate.registrations("validatingwebhookconfigurations");
    configurations.delete(&gate.scenario.namespace).await?;
    gate.until_configured().await?;
    until_judged(&gate).await?;

    // One review fails: an error, not an acceptance; the next one is judged.
    strike(&gate, "review ").await?;
    let error = eventually("a review fails", LIMIT, async || {
        let error = judged(&gate, "x")?;
        Ok((!error.is_empty()).then_some(error))
    })
    .await?;
    ensure!(
        error.contains("internal error: the evaluation of rules failed"),
        "{error}"
    );
    ensure!(judged(&gate, "x")?.is_empty());
    ensure!(count(&gate, "orkestra_task_failures_total", Task::Review).await? == 1);
    Ok(())
}

/// The names of what belongs to the gateway.
async fn registered(gate: &Gate) -> Result<Vec<String>> {
    let plurals = [
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
    ];
    let mut names = Vec::new();
    for plural in plurals {
        for object in gate.registrations(plural).list().await? {
            let label = &object["metadata"]["labels"]["orkestra.orkspace.io/gateway"];
            if *label == *gate.scenario.namespace {
                names.push(format!(
                    "{plural}/{}",
                    object["metadata"]["name"].as_str().unwrap_or_default()
                ));
            }
        }
    }
    Ok(names)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configurations_go_at_the_end_only_if_that_is_declared_and_conversions_stay() -> Result<()>
{
    let crds = &["rules/crds.yaml", conversion::CRD];
    let [stays, goes] = ["false", "true"].map(|text| KATALOG.replace("CLEANUP", text));
    let mut gate = Gate::prepared("gateclea", crds, &[&stays, conversion::KATALOG]).await?;
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(&stays).await?;
    gate.run(conversion::KATALOG).await?;
    until_judged(&gate).await?;
    conversion::until_converted(&gate).await?;
    gate.scenario.terminate()?;
    let names = registered(&gate).await?;
    ensure!(names.len() >= 2, "{names:?}");

    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(&goes).await?;
    until_judged(&gate).await?;
    gate.scenario.terminate()?;
    let names = registered(&gate).await?;
    ensure!(names.is_empty(), "{names:?}");
    // Stored objects need their conversion.
    let (crds, name) = conversion::crd(&gate);
    let strategy = crds.fetch(&name).await?["spec"]["conversion"]["strategy"].clone();
    ensure!(strategy == "Webhook", "{strategy}");
    // Nothing stands in the way of writes.
    let spec = json!({ "image": "nginx:1.29", "tier": "lead" });
    let sites = gate.scenario.objects("sites");
    let free = waters::resource(&gate.scenario, "Site", "free", &spec);
    // A policy that is deleted holds for another moment.
    eventually("a resource is written", LIMIT, async || {
        sites.create(&free).await.map(Some)
    })
    .await?;
    Ok(())
}
