//! Reports of corrected drift: the Event and the log name the field, its values and the field manager that had set it, and no value
//! of a Secret.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario};
use crate::waters;

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": { "onReconcile": {
            "configMaps": [{ "name": "{{ .metadata.name }}-map", "data": { "colour": "green" } }],
            "secrets": [{ "name": "{{ .metadata.name }}-key", "data": { "password": "hunter2-marker" } }]
        } }
    } } }
}"#;

/// Waits for an Event of the Pond whose note has all of these parts; returns the notes of all.
async fn until_noted(scenario: &Scenario, parts: &[&str]) -> Result<String> {
    let events = scenario.objects("events");
    eventually("an Event names the correction", LIMIT, async || {
        let listed = events.list().await?;
        let notes: Vec<&str> = listed
            .iter()
            .map(|event| waters::text(event, "/message"))
            .collect();
        let is_there = notes
            .iter()
            .any(|note| parts.iter().all(|part| note.contains(part)));
        Ok(is_there.then(|| notes.join("\n")))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrected_drift_is_reported_with_field_values_and_manager_but_no_secret() -> Result<()> {
    let mut scenario = Scenario::new("corrections").await?;
    scenario.log_filter = Some("debug");
    scenario.grant(KATALOG).await?;
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(KATALOG)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    scenario.objects("ponds").until_ready("north").await?;

    let patch = |plural: &str, name: &str, patch: &Value| {
        let patch = format!("--patch={patch}");
        scenario.kubectl(&[
            "patch",
            plural,
            name,
            "--type=merge",
            "--field-manager=gardener",
            &patch,
        ])
    };
    patch(
        "configmap",
        "north-map",
        &json!({ "data": { "colour": "red" } }),
    )?;
    let correction = "data.colour \"red\" → \"green\" (set by gardener)";
    until_noted(&scenario, &["repaired ConfigMap", "north-map:", correction]).await?;
    ensure!(
        scenario.log().contains("data.colour"),
        "the log names no field"
    );

    patch(
        "configmap",
        "north-map",
        &json!({ "data": { "colour": null } }),
    )?;
    until_noted(&scenario, &["north-map:", "data.colour absent → \"green\""]).await?;

    // The value of another client is one of a Secret, too.
    patch(
        "secret",
        "north-key",
        &json!({ "stringData": { "password": "swordfish-marker" } }),
    )?;
    let notes = until_noted(
        &scenario,
        &["repaired Secret", "*** → *** (set by gardener)"],
    )
    .await?;
    let log = scenario.log();
    for text in [&notes, &log] {
        for value in ["swordfish", "c3dvcmRmaXNo", "hunter2", "aHVudGVyMi"] {
            ensure!(!text.contains(value), "{value}: {text}");
        }
    }
    scenario.check_running()
}
