//! Rotation of the webhook certificate under load.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::scenario::{LIMIT, Objects};

const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security: { webhooks: { admission: { enabled: true }, failurePolicy: Fail } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules: [{ field: '{{ .spec.tier | upper }}', notEquals: LEAD, message: 'no lead' }]
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// Returns the data of the Secret: the certificate that is served, and the CA certificates.
async fn secret(gate: &Gate) -> Result<Value> {
    let secrets = gate.scenario.objects_in(&gate.home(), "secrets");
    Ok(secrets.fetch("orkestra-tls").await?["data"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_certificate_is_replaced_under_load_without_a_refused_request() -> Result<()> {
    let arguments = &["--webhooks-cert-life=24s"];
    let gate = Gate::start_with("gaterota", &["rules/crds.yaml"], KATALOG, arguments).await?;
    gate.run(KATALOG).await?;
    let site = |name: &str, tier: &str| {
        json!({
            "apiVersion": format!("{}/v1alpha1", gate.scenario.group), "kind": "Site",
            "metadata": { "name": name }, "spec": { "image": "a", "tier": tier },
        })
    };
    // Dry runs call the webhook and store nothing.
    let path = format!(
        "/apis/{}/v1alpha1/namespaces/{}/sites?dryRun=All",
        gate.scenario.group, gate.scenario.namespace
    );
    let dry = Objects::at(&gate.scenario.client, &path);
    eventually("the webhook evaluates rules", LIMIT, async || {
        let answer = dry.create(&site("lead", "lead")).await;
        Ok(answer
            .is_err_and(|error| format!("{error:#}").contains("no lead"))
            .then_some(()))
    })
    .await?;
    let first = secret(&gate).await?;
    let start = Instant::now();
    let load = async |worker: usize| {
        let (mut count, mut failures) = (0_u32, Vec::new());
        while start.elapsed() < Duration::from_secs(26) {
            let object = site(&format!("s{worker}-{count}"), "x");
            if let Err(error) = dry.create(&object).await {
                failures.push(format!("{error:#}"));
            }
            count += 1;
        }
        (count, failures)
    };
    let done = futures::future::join_all((0..12).map(load)).await;
    let count: u32 = done.iter().map(|(count, _)| count).sum();
    let failures: Vec<&String> = done.iter().flat_map(|(_, failures)| failures).collect();
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    println!("{count} requests, {rate:.0} a second");
    ensure!(
        failures.is_empty(),
        "{} of {count} failed: {:?}",
        failures.len(),
        failures.first()
    );
    let second = secret(&gate).await?;
    ensure!(
        first["tls.crt"] != second["tls.crt"],
        "the certificate was not replaced"
    );
    ensure!(count > 500, "only {count} requests");
    // The webhook still evaluates rules.
    ensure!(dry.create(&site("lead", "lead")).await.is_err());
    Ok(())
}
