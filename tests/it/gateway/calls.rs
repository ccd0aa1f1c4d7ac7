//! External calls at admission: each is sent once per write, only if its `when` conditions and `fires` permit it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::{external::sink::Sink, scenario::LIMIT, waters};

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
        external:
          - name: quota
            url: 'URL/quota/{{ .metadata.name }}'
            when: [{ field: spec.tier, equals: paid }]
            fires: { reconcile: false }
        rules:
          - field: '{{ .external.quota.left }}'
            notEquals: none
            message: 'no quota is left'
            when: [{ field: spec.tier, equals: paid }]
            fires: { reconcile: false }
          - field: spec.image
            notEquals: later
            message: 'for passes only'
            fires: { admission: false }
      mutation:
        rules: [{ field: spec.replicas, default: '2' }]
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_made_once_for_a_write_within_their_gates_and_moments() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/quota/rich", 200, r#"{"left":"some"}"#);
    sink.answer("/quota/poor", 200, r#"{"left":"none"}"#);
    sink.answer("/quota/broken", 500, "");
    let katalog = KATALOG.replace("URL", &sink.url());
    let arguments = &[
        "--external-allow=127.0.0.1",
        "--webhooks-trusted-peers=127.0.0.1/32",
    ];
    let gate = Gate::start_with("gatecall", &["rules/crds.yaml"], &katalog, arguments).await?;
    gate.run(&katalog).await?;
    let site = |name: &str, tier: &str| {
        let spec = json!({ "image": "a", "tier": tier });
        waters::resource(&gate.scenario, "Site", name, &spec).to_string()
    };
    eventually("both webhooks work", LIMIT, async || {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let output = gate.kubectl_as(None, &create, &site("probe", "free"))?;
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let error = gate.kubectl_as(None, &create, &site("poor", "paid"))?;
        let denied = String::from_utf8_lossy(&error.stderr).contains("no quota is left");
        Ok((denied && shown["spec"]["replicas"] == 2).then_some(()))
    })
    .await?;
    ensure!(
        sink.requests("/quota/probe").is_empty(),
        "a call was made although its `when` condition is false"
    );

    // The mutating webhook makes no call: one write leads to one call.
    gate.accepted(&site("rich", "paid"))?;
    let asked = sink.requests("/quota/rich").len();
    ensure!(asked == 1, "{asked} calls");
    // Reconcile passes make no call, since the call declares `reconcile: false`.
    let sites = gate.scenario.objects("sites");
    sites.until_ready("rich").await?;
    ensure!(sink.requests("/quota/rich").len() == 1);
    // The external service fails: the write is denied as `failurePolicy` declares, with the reason.
    let error = gate.refused(&site("broken", "paid"))?;
    ensure!(error.contains("the call `quota` failed"), "{error}");
    // A rule with `admission: false` does not deny the write; the reconcile pass reports the violation.
    let later = json!({ "image": "later", "tier": "free" });
    gate.accepted(&waters::resource(&gate.scenario, "Site", "later", &later).to_string())?;
    let message = crate::external::reported(&sites, "later", "ValidationFailed").await?;
    ensure!(message.contains("for passes only"), "{message}");
    Ok(())
}
