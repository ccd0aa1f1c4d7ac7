//! Mutation by `MutatingAdmissionPolicy` objects, on an API server that serves them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::{
    scenario::{LIMIT, Objects, Scenario},
    waters,
};

/// The arguments by which an API server of Kubernetes 1.34 serves `MutatingAdmissionPolicy` objects.
const ARGUMENTS: &[&str] = &[
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
];
const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security:
    webhooks: { admission: { enabled: true }, failurePolicy: Fail }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      mutation:
        rules:
          - { field: spec.replicas, default: '2' }
          - { field: spec.port, override: '8443', when: [{ field: spec.image, prefix: 'secure/' }] }
          - { field: 'metadata.labels[\"example.org/team\"]', default: water }
          - { field: spec.tier, default: '{{ .spec.image | upper }}' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// Creates a Site with the spec, or without one, in a dry run; returns the object that would be stored.
fn shown(gate: &Gate, spec: &Value) -> Result<Value> {
    let mut site = waters::resource(&gate.scenario, "Site", "shop", spec);
    if let Some(fields) = site.as_object_mut() {
        fields.retain(|_, value| *value != Value::Null);
    }
    let arguments = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let output = gate.kubectl_as(None, &arguments, &site.to_string())?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_mutation_apply_while_every_replica_is_down() -> Result<()> {
    let options = testbed::Options {
        api_arguments: ARGUMENTS,
        ..testbed::Options::default()
    };
    let scenario = Scenario::on_new("mutating", options).await?;
    let mut gate = Gate::of(scenario, &["rules/crds.yaml"], &[KATALOG]).await?;
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(KATALOG).await?;

    // The gateway recreates a deleted policy, like every object that it writes.
    a_policy_that_is_deleted_is_written_again(&gate).await?;

    // With the webhook, all rules apply.
    let whole = eventually("the webhook applies its rules", LIMIT, async || {
        let shown = shown(&gate, &json!({ "image": "a" }))?;
        Ok((shown["spec"]["tier"] == "A").then_some(shown))
    })
    .await?;
    ensure!(
        whole["spec"] == json!({ "image": "a", "replicas": 2, "tier": "A" }),
        "{whole}"
    );

    gate.scenario.kill9()?;
    let team = |shown: &Value| shown["metadata"]["labels"]["example.org/team"].clone();
    let completed = eventually("the policy applies", LIMIT, async || {
        let shown = shown(&gate, &json!({ "image": "secure/a", "port": 1 }))?;
        Ok((shown["spec"]["replicas"] == 2).then_some(shown))
    })
    .await?;
    let expected = json!({ "image": "secure/a", "port": 8443, "replicas": 2 });
    ensure!(
        completed["spec"] == expected && team(&completed) == "water",
        "{completed}"
    );
    // Fields that are set keep their values, and a Site without a spec gets one.
    let given = shown(&gate, &json!({ "image": "a", "port": 1, "replicas": 5 }))?;
    ensure!(
        given["spec"] == json!({ "image": "a", "port": 1, "replicas": 5 }),
        "{given}"
    );
    let empty = shown(&gate, &Value::Null)?;
    ensure!(empty["spec"] == json!({ "replicas": 2 }), "{empty}");
    Ok(())
}

/// Checks that the policy with three rules is written, and that it is written again after its deletion.
async fn a_policy_that_is_deleted_is_written_again(gate: &Gate) -> Result<()> {
    let policies = Objects::at(
        &gate.scenario.client,
        "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies",
    );
    let policy = eventually("the policy is written", LIMIT, async || {
        Ok(policies.list().await?.pop())
    })
    .await?;
    let mutations = policy["spec"]["mutations"].as_array().map(Vec::len);
    ensure!(mutations == Some(3), "{policy}");
    let name = policy["metadata"]["name"].as_str().unwrap_or_default();
    policies.delete(name).await?;
    eventually("the policy exists again", LIMIT, async || {
        Ok(policies.list().await?.pop())
    })
    .await?;
    Ok(())
}
