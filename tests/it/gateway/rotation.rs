//! Rotation of the webhook certificate under load.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

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

/// Waits until the served certificate is another one, and then for a tenth of the requests that were sent before, at least 500 in all.
async fn until_replaced(gate: &Gate, first: &Value, sent: &AtomicU32) -> Result<()> {
    eventually("the certificate is replaced", LIMIT, async || {
        Ok((secret(gate).await?["tls.crt"] != first["tls.crt"]).then_some(()))
    })
    .await?;
    let wanted = (sent.load(Ordering::Relaxed) * 11 / 10).max(500);
    eventually("requests use it", LIMIT, async || {
        let sent = sent.load(Ordering::Relaxed);
        ensure!(sent > wanted, "{sent} of {wanted} requests");
        Ok(Some(()))
    })
    .await
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
    let (sent, ended) = (AtomicU32::new(0), AtomicBool::new(false));
    let load = async |worker: usize| {
        let mut failures = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            let count = sent.fetch_add(1, Ordering::Relaxed);
            let object = site(&format!("s{worker}-{count}"), "x");
            if let Err(error) = dry.create(&object).await {
                failures.push(format!("{error:#}"));
            }
        }
        failures
    };
    let replaced = async {
        let replaced = until_replaced(&gate, &first, &sent).await;
        ended.store(true, Ordering::Relaxed);
        replaced
    };
    let load = futures::future::join_all((0..12).map(load));
    let (done, replaced) = tokio::join!(load, replaced);
    replaced?;
    let count = sent.load(Ordering::Relaxed);
    let failures: Vec<&String> = done.iter().flatten().collect();
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    println!("{count} requests, {rate:.0} a second");
    ensure!(
        failures.is_empty(),
        "{} of {count} failed: {:?}",
        failures.len(),
        failures.first()
    );
    // The webhook still evaluates rules.
    ensure!(dry.create(&site("lead", "lead")).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_damaged_certificate_is_replaced_and_the_webhooks_serve_on() -> Result<()> {
    let mut gate = Gate::start("gatedamg", &["rules/crds.yaml"], KATALOG).await?;
    let secrets = gate.scenario.objects_in(&gate.home(), "secrets");
    let whole = secrets.fetch("orkestra-tls").await?["data"].clone();
    // `AAAA` is valid base64, and neither a certificate nor a state.
    for (part, damage) in [
        ("state.json", "e30="),
        ("tls.crt", "AAAA"),
        ("ca.crt", "AAAA"),
    ] {
        let patch = json!({ "data": { part: damage } });
        secrets.patch("orkestra-tls", &patch).await?;
        let what = format!("{part} is whole again");
        let is_whole = |secret: &Value| secret["data"][part] != *damage;
        secrets
            .until("orkestra-tls", &what, LIMIT, is_whole)
            .await?;
        gate.until_reviewed().await?;
    }
    let replaced = secret(&gate).await?;
    ensure!(
        replaced["ca.crt"] != whole["ca.crt"],
        "the certificate is the old one"
    );
    // It is also replaced at the start of a process.
    gate.scenario.terminate()?;
    secrets
        .patch("orkestra-tls", &json!({ "data": { "state.json": "AAAA" } }))
        .await?;
    gate.scenario.start().await?;
    gate.until_configured().await?;
    ensure!(secret(&gate).await?["state.json"] != "AAAA");
    Ok(())
}
