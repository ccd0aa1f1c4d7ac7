//! Failing tasks of a gateway, and the objects that it deletes when it stops.

use anyhow::{Result, ensure};
use orkestra_ground::tasks::Task;
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

/// Creates a Site in a dry run; returns the error, which is empty if the Site is accepted.
fn judged(gate: &Gate, tier: &str) -> Result<String> {
    let spec = json!({ "image": "myorg/a:1", "tier": tier });
    let site = waters::resource(&gate.scenario, "Site", "probe", &spec).to_string();
    let output = gate.kubectl_as(None, &["create", "--dry-run=server", "-f", "-"], &site)?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn until_judged(gate: &Gate) -> Result<()> {
    eventually("the webhook evaluates rules", LIMIT, async || {
        Ok(judged(gate, "lead")?.contains("no lead").then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn each_task_of_the_gateway_that_ends_follows_its_rule_and_reviews_continue()
-> Result<()> {
    let katalog = KATALOG.replace("CLEANUP", "false");
    let mut gate = Gate::prepared("gatetask", &["rules/crds.yaml"], &[&katalog]).await?;
    gate.scenario.accept_faults();
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(&katalog).await?;
    until_judged(&gate).await?;

    for task in [Task::WebhookCertificate, Task::WebhookConfigurations] {
        gate.scenario.restart_task(task).await?;
        let error = judged(&gate, "lead")?;
        ensure!(error.contains("no lead"), "{task:?}: {error}");
    }
    // The restarted task creates a deleted configuration again.
    let configurations = gate.registrations("validatingwebhookconfigurations");
    configurations.delete(&gate.scenario.namespace).await?;
    gate.until_configured().await?;
    until_judged(&gate).await?;

    // One review fails: its request is denied with an error, not allowed. The next one is evaluated.
    gate.scenario.strike(Task::Review).await?;
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
    ensure!(gate.scenario.task_counts(Task::Review).await?.0 == 1);

    // Without the server of the webhooks the process exits, and logs the reason.
    gate.scenario.strike(Task::Webhooks).await?;
    eventually("the process has exited", LIMIT, async || {
        Ok(gate.scenario.check_running().is_err().then_some(()))
    })
    .await?;
    let log = gate.scenario.log();
    ensure!(log.contains("task webhooks ended"), "{log}");
    Ok(())
}

/// Returns the names of the webhook configurations and policies of the gateway.
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
    // The conversion stays, since stored objects need it.
    let (crds, name) = conversion::crd(&gate);
    let strategy = crds.fetch(&name).await?["spec"]["conversion"]["strategy"].clone();
    ensure!(strategy == "Webhook", "{strategy}");
    // No webhook or policy denies writes any more.
    let spec = json!({ "image": "nginx:1.29", "tier": "lead" });
    let sites = gate.scenario.objects("sites");
    let free = waters::resource(&gate.scenario, "Site", "free", &spec);
    // The API server may enforce a deleted policy for another moment.
    eventually("a resource is written", LIMIT, async || {
        sites.create(&free).await.map(Some)
    })
    .await?;
    Ok(())
}
