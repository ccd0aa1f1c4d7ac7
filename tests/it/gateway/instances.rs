//! Admission of custom resources: the examples of the documentation, by policy and by webhook.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::scenario::{LIMIT, code, input};
use crate::waters;

pub(crate) const CRDS: &[&str] = &["rules/crds.yaml"];

/// Returns the Katalog of an input file, with the fields of `security` added to it.
pub(crate) fn with_security(katalog: &str, security: &str) -> Result<String> {
    Ok(input(katalog)?.replace(
        "spec:\n  crds:",
        &format!("spec:\n  security:\n{security}  crds:"),
    ))
}

pub(crate) const ADMISSION: &str =
    "    webhooks: { admission: { enabled: true }, failurePolicy: Fail }\n";

fn site(gate: &Gate, name: &str, spec: &Value) -> String {
    waters::resource(&gate.scenario, "Site", name, spec).to_string()
}

/// Waits until a Site with the spec is denied, and returns the error. A new policy takes about a second.
async fn until_refused(gate: &Gate, spec: &Value) -> Result<String> {
    let probe = site(gate, "probe", spec);
    eventually("the rule is in force", LIMIT, async || {
        let output = gate.kubectl_as(None, &["create", "--dry-run=server", "-f", "-"], &probe)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(error))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_samples_of_validation_and_mutation_work_when_a_resource_is_written() -> Result<()> {
    let katalog = with_security("rules/admission.yaml", ADMISSION)?;
    let mut gate = Gate::start("gaterule", CRDS, &katalog).await?;
    gate.run(&katalog).await?;
    let message = "images must come from the internal registry";
    let error = until_refused(&gate, &json!({ "image": "nginx:1.29" })).await?;
    ensure!(error.contains(message), "{error}");

    // Mutated fields are stored, and a rule with the action `warn` leads to a warning.
    let sites = gate.scenario.objects("sites");
    let mutated = eventually("the mutation is stored", LIMIT, async || {
        let text = site(&gate, "shop", &json!({ "image": "myorg/shop:1" }));
        let output = gate.kubectl_as(
            None,
            &["create", "--dry-run=server", "-o", "json", "-f", "-"],
            &text,
        )?;
        let shown: Value = serde_json::from_slice(&output.stdout)?;
        Ok((shown["spec"]["replicas"] == 2).then_some(shown))
    })
    .await?;
    ensure!(mutated["spec"]["port"] == 8080, "{mutated}");
    ensure!(sites.list().await?.is_empty(), "a dry run stored an object");
    let said = gate.accepted(&site(&gate, "shop", &json!({ "image": "myorg/shop:1" })))?;
    ensure!(said.contains("shop has no tier"), "{said}");
    let stored = sites.fetch("shop").await?;
    ensure!(
        stored["spec"] == json!({ "image": "myorg/shop:1", "replicas": 2, "port": 8080 }),
        "{stored}"
    );
    sites.until_ready("shop").await?;
    // The rules also apply to an update.
    let error = gate.refused(&site(
        &gate,
        "shop",
        &json!({ "image": "elsewhere:1", "replicas": 5 }),
    ))?;
    ensure!(error.contains(message), "{error}");

    // Rules that CEL can express are enforced while no replica runs, and other kinds can be written.
    gate.scenario.kill9()?;
    let error = gate.refused(&site(&gate, "later", &json!({ "image": "nginx:1.29" })))?;
    ensure!(error.contains(message), "{error}");
    let namespaces = crate::scenario::Objects::at(&gate.scenario.client, "/api/v1/namespaces");
    namespaces
        .patch(
            &gate.scenario.namespace,
            &json!({ "metadata": { "labels": { "a": "b" } } }),
        )
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_policies_cannot_say_are_judged_by_the_webhook_and_unique_by_the_records()
-> Result<()> {
    let katalog = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security:
    webhooks: { admission: { enabled: true }, failurePolicy: Fail }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.image, operator: unique, message: 'the image {{ .spec.image }} is taken' }
          - { field: '{{ .spec.tier | upper }}', notEquals: LEAD, message: 'no lead' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";
    let gate = Gate::start("gateuniq", CRDS, katalog).await?;
    gate.run(katalog).await?;
    let error = until_refused(&gate, &json!({ "image": "a", "tier": "lead" })).await?;
    ensure!(error.contains("no lead"), "{error}");
    gate.accepted(&site(&gate, "one", &json!({ "image": "a" })))?;
    let error = until_refused(&gate, &json!({ "image": "a" })).await?;
    ensure!(error.contains("the image a is taken"), "{error}");
    gate.accepted(&site(&gate, "one", &json!({ "image": "a", "tier": "x" })))?;
    gate.accepted(&site(&gate, "two", &json!({ "image": "b" })))?;
    // A deletion is not reviewed, and the finalizer can be removed.
    let sites = gate.scenario.objects("sites");
    sites.delete("one").await?;
    sites.until_gone("one", LIMIT).await?;
    // The operator's page counts reviews and denials.
    let page = gate.scenario.page("/katalog/site").await?;
    ensure!(
        page["webhooks"]["validations"].as_u64() >= Some(4),
        "{page}"
    );
    ensure!(page["webhooks"]["denials"].as_u64() >= Some(2), "{page}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn protected_resources_are_deleted_with_an_annotation_only_and_that_is_recorded()
-> Result<()> {
    let security = "    deletionProtection: { enabled: true }\n    namespaceProtection: { enabled: true, restrictedNamespaces: [NAMESPACE-closed] }\n";
    let katalog = with_security("rules/admission.yaml", security)?;
    let trusted = &["--webhooks-trusted-peers=127.0.0.1/32"];
    let gate = Gate::start_with("gateprot", CRDS, &katalog, trusted).await?;
    let closed = format!("{}-closed", gate.scenario.namespace);
    gate.scenario.apply(
        &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": closed } })
            .to_string(),
    )?;
    gate.run(&katalog).await?;
    gate.accepted(&site(&gate, "shop", &json!({ "image": "myorg/shop:1" })))?;
    let sites = gate.scenario.objects("sites");
    sites.until_ready("shop").await?;
    let kind = format!("sites.{}", gate.scenario.group);
    let error = eventually("the deletion is refused", LIMIT, async || {
        let output = gate.kubectl_as(None, &["delete", &kind, "shop", "--dry-run=server"], "")?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(error))
    })
    .await?;
    ensure!(
        error.contains("orkestra.orkspace.io/break-glass"),
        "{error}"
    );
    // Writes to the restricted namespace are denied.
    the_namespace_is_closed(&gate, &closed).await?;
    // With the annotation, the protected resource can be deleted.
    sites.patch("shop", &json!({ "metadata": { "annotations": { "orkestra.orkspace.io/break-glass": "incident 7" } } })).await?;
    sites.delete("shop").await?;
    sites.until_gone("shop", LIMIT).await?;
    the_deletion_is_recorded(&gate).await
}

/// Waits until a Site in the restricted namespace is denied.
async fn the_namespace_is_closed(gate: &Gate, closed: &str) -> Result<()> {
    let text = site(gate, "there", &json!({ "image": "myorg/shop:1" }));
    let elsewhere = crate::scenario::Objects::namespaced(
        &gate.scenario.client,
        &gate.scenario.group,
        closed,
        "sites",
    );
    let refused = eventually("the namespace is restricted", LIMIT, async || {
        match elsewhere.create(&serde_json::from_str(&text)?).await {
            Ok(_) => {
                elsewhere.patch("there", &json!({ "metadata": { "annotations": { "orkestra.orkspace.io/break-glass": "test" } } })).await?;
                elsewhere.delete("there").await?;
                Ok(None)
            }
            Err(error) => Ok(Some(error)),
        }
    })
    .await?;
    ensure!(matches!(code(&refused), Some(403 | 422)), "{refused:#}");
    Ok(())
}

/// Waits until an Event records that the deletion protection was overridden.
async fn the_deletion_is_recorded(gate: &Gate) -> Result<()> {
    let events = crate::scenario::Objects::at(
        &gate.scenario.client,
        &format!(
            "/apis/events.k8s.io/v1/namespaces/{}/events",
            gate.scenario.namespace
        ),
    );
    eventually("the deletion is recorded", LIMIT, async || {
        let found = events.list().await?;
        Ok(found
            .iter()
            .any(|event| event["reason"] == "DeletionProtectionOverridden")
            .then_some(()))
    })
    .await
}
