//! Katalogs and Motifs that cannot be read: each fails alone, and reports why.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{KATALOG, deep, ensure_condition, ensure_reported, send};
use crate::neighbours::{Neighbours, PONDS};
use crate::scenario::{LIMIT, Scenario, input};

/// Returns the path of Orkestra's kinds in the namespace, followed by `below`.
fn own(scenario: &Scenario, below: &str) -> String {
    let namespace = &scenario.namespace;
    format!("/apis/orkestra.orkspace.io/v1/namespaces/{namespace}/{below}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_katalog_or_motif_is_its_own_trouble_and_says_so() -> Result<()> {
    let mut scenario = Scenario::running("hostilekat", &["kinds/crds.yaml"], KATALOG).await?;
    let mut neighbours = Neighbours::settle(&scenario, PONDS).await?;
    let text = scenario.text(&input(KATALOG)?);
    let mut katalog: Value = serde_saphyr::from_str(&text)?;
    katalog["metadata"] = json!({ "name": "deepkatalog" });
    katalog["spec"]["deep"] = json!("DEEP");
    let motif = json!({ "apiVersion": "orkestra.orkspace.io/v1", "kind": "Motif",
        "metadata": { "name": "deepmotif" }, "spec": { "deep": "DEEP" } });
    for (plural, object, levels) in [("katalogs", &katalog, 300), ("motifs", &motif, 9_000)] {
        let body = object.to_string().replace(r#""DEEP""#, &deep(levels));
        let is_accepted = send(&scenario, "POST", own(&scenario, plural), body).await?;
        ensure!(is_accepted, "{plural}: refused");
        neighbours.ensure_followed().await.context(plural)?;
    }
    ensure_reported(&scenario, "deepkatalog").await?;
    ensure_reported(&scenario, "deepmotif").await?;
    let path = own(&scenario, "katalogs/deepkatalog/status");
    ensure_condition(&scenario, &path, "InvalidRevision").await?;

    // Changes of other Katalogs are applied, also after a restart, when one list request returns all of them.
    scenario.kill9()?;
    scenario.start().await?;
    let taller = input(KATALOG)?.replace("{{ .spec.colour }}", "{{ .spec.colour }}, tall");
    scenario.apply(&taller)?;
    let maps = scenario.objects("configmaps");
    let is_taller = |map: &Value| {
        let colour = map["data"]["colour"].as_str().unwrap_or_default();
        colour.ends_with(", tall")
    };
    maps.until("neighbour-pond", "has the new value", LIMIT, is_taller)
        .await?;
    scenario.katalog_is("waters", "True", "Running").await?;

    // Once the Katalog can be read, it is checked: another Katalog already operates its kind.
    let shallow = r#"{"spec":{"deep":null}}"#.to_owned();
    let path = own(&scenario, "katalogs/deepkatalog");
    ensure!(send(&scenario, "PATCH", path, shallow).await?, "refused");
    scenario
        .katalog_is("deepkatalog", "False", "Conflict")
        .await?;
    scenario.kubectl(&["delete", "katalog", "deepkatalog", "--timeout=120s"])?;
    let path = own(&scenario, "motifs/deepmotif");
    ensure!(
        send(&scenario, "DELETE", path, String::new()).await?,
        "the Motif cannot be deleted"
    );
    scenario.check_running()
}
