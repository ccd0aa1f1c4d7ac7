//! What a source or a Motif adds to a composition waits for approval, however it adds it.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{child, is, komposers};
use crate::scenario::{Scenario, condition, input};
use crate::waters;

/// A source that has another document of its `ConfigMap` as a source, and whose own entry needs more permissions.
fn nested(scenario: &Scenario, ponds: &str, more: &str) -> Value {
    let outer = ponds.replace("name: ponds\n", "name: outer\n").replace(
        "spec:\n",
        "sources: { configMaps: [{ name: ponds, key: inner.yml }] }\nspec:\n",
    ) + more;
    let inner = ponds
        .replace("name: ponds\n", "name: inner\n")
        .replace("    pond:", "    lake:")
        .replace("kind: Pond, plural: ponds", "kind: Lake, plural: lakes")
        .replace("-pond\"", "-lake\"");
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ponds" },
        "data": { "katalog.yaml": scenario.text(&outer), "inner.yml": scenario.text(&inner) },
    })
}

const KOMPOSER: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Komposer
metadata: { name: waters }
spec: { sources: { configMaps: [{ name: ponds, key: katalog.yaml }] } }
";
const ACCOUNTS: &str =
    "          serviceAccounts:\n            - name: \"{{ .metadata.name }}-pond\"\n";

/// Returns a scenario whose Komposer runs the Katalog of one `ConfigMap`.
async fn running(prefix: &str, katalog: &str, more: &[&str]) -> Result<Scenario> {
    let mut scenario = Scenario::new(prefix).await?;
    for granted in [&[katalog], more].concat() {
        scenario.grant(granted).await?;
    }
    scenario.grant_confined(KOMPOSER).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.accept_faults();
    scenario.start().await?;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ponds" },
        "data": { "katalog.yaml": scenario.text(katalog) },
    });
    scenario.objects("configmaps").create(&map).await?;
    Ok(scenario)
}

/// Approves the digest that the condition of the Komposer names.
async fn approve(scenario: &Scenario, waits: &Value) -> Result<()> {
    let message = condition(waits, "Ready").map(|ready| waters::text(ready, "/message").to_owned());
    let message = message.unwrap_or_default();
    let digest = message
        .split_whitespace()
        .find(|word| word.starts_with("sha256:"));
    let digest = digest.context("no digest is named")?;
    komposers(scenario)
        .patch("waters", &json!({ "spec": { "approve": [digest] } }))
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_becomes_a_composition_waits_for_approval_of_its_own_entries() -> Result<()> {
    let ponds = input("komposer/ponds.yaml")?;
    let more = ponds.clone() + ACCOUNTS;
    let lakes = ponds
        .replace("name: ponds\n", "name: inner\n")
        .replace("    pond:", "    lake:")
        .replace("kind: Pond, plural: ponds", "kind: Lake, plural: lakes");
    let scenario = running("nesting", &more, &[&lakes]).await?;
    let accounts = scenario.objects("serviceaccounts");
    scenario
        .objects("configmaps")
        .patch(
            "ponds",
            &json!({ "data": { "katalog.yaml": scenario.text(&ponds) } }),
        )
        .await?;
    scenario.apply(KOMPOSER)?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    child(&scenario, "north-pond", "colour", "green").await?;

    let data = nested(&scenario, &ponds, ACCOUNTS)["data"].clone();
    scenario
        .objects("configmaps")
        .patch("ponds", &json!({ "data": data }))
        .await?;
    let parts = ["serviceaccounts", "spec.approve"];
    let waits = is(&scenario, "waters", ("False", "PendingApproval"), &parts).await?;
    ensure!(accounts.get("north-pond").await?.is_none());
    approve(&scenario, &waits).await?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;
    scenario.objects("ponds").until_ready("north").await?;
    ensure!(accounts.get("north-pond").await?.is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_motif_that_a_composition_uses_waits_for_approval_too() -> Result<()> {
    let ponds = input("komposer/ponds.yaml")?;
    let uses = ponds.replace(
        "      operatorBox:",
        "      imports: [{ motif: reeds }]\n      operatorBox:",
    );
    let more = ponds.clone() + ACCOUNTS;
    let mut scenario = running("motifapprove", &ponds, &[&more]).await?;
    let motif = |resources: &str| {
        format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Motif\nmetadata: {{ name: reeds }}\nspec: {{ resources: {{ {resources} }} }}\n"
        )
    };
    let map = |height: &str| {
        format!(
            "configMaps: [{{ name: '{{{{ .metadata.name }}}}-reeds', data: {{ height: '{height}' }} }}]"
        )
    };
    let account = "serviceAccounts: [{ name: '{{ .metadata.name }}-reeds' }]";
    scenario.apply(&motif(&map("1")))?;
    scenario
        .objects("configmaps")
        .patch(
            "ponds",
            &json!({ "data": { "katalog.yaml": scenario.text(&uses) } }),
        )
        .await?;
    scenario.apply(KOMPOSER)?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    child(&scenario, "north-reeds", "height", "1").await?;
    // A change that needs no further permission is applied at once.
    scenario.apply(&motif(&map("2")))?;
    child(&scenario, "north-reeds", "height", "2").await?;

    scenario.apply(&motif(&format!("{}, {account}", map("3"))))?;
    let parts = ["Motif reeds", "serviceaccounts", "spec.approve"];
    let waits = is(&scenario, "waters", ("False", "PendingApproval"), &parts).await?;
    let accounts = scenario.objects("serviceaccounts");
    ensure!(accounts.get("north-reeds").await?.is_none());
    child(&scenario, "north-reeds", "height", "2").await?;
    // It waits after a restart, too.
    scenario.kill9()?;
    scenario.start().await?;
    is(&scenario, "waters", ("False", "PendingApproval"), &parts).await?;
    ensure!(accounts.get("north-reeds").await?.is_none());
    approve(&scenario, &waits).await?;
    child(&scenario, "north-reeds", "height", "3").await?;
    is(&scenario, "waters", ("True", "Running"), &[]).await?;
    Ok(())
}
