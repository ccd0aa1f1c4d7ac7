//! Deletion of a Katalog: its operators stop, and the objects that they created stay.

use anyhow::{Context as _, Result, ensure};

use super::{finalizers, is_all_gone, kind, orchard};
use crate::scenario::{LIMIT, Scenario, input, owner_uid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_katalog_stops_its_operators_and_leaves_what_they_made() -> Result<()> {
    let mut scenario = orchard("katalog").await?;
    let process = scenario.pid();
    scenario.kubectl(&["delete", "katalog", "garden", "--timeout=120s"])?;
    is_left_alone(&scenario).await?;
    assert_eq!(scenario.pid(), process);
    scenario.check_running()?;
    let metrics = scenario.http("/metrics").await?;
    ensure!(
        !metrics.contains(r#"crd="orchard""#),
        "series of an operator are left"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_deleted_while_the_controller_is_down_is_released_when_it_is_back() -> Result<()>
{
    let mut scenario = orchard("gone").await?;
    scenario.kill9()?;
    scenario.kubectl(&["delete", "katalog", "garden", "--wait=false"])?;
    let katalogs = scenario.objects("katalogs");
    let katalog = katalogs.fetch("garden").await?;
    ensure!(
        katalog["metadata"]["deletionTimestamp"].is_string(),
        "no finalizer holds it"
    );
    scenario.start().await?;
    katalogs.until_gone("garden", LIMIT).await?;
    is_left_alone(&scenario).await
}

/// Checks that after the Katalog's deletion the orchard and its children exist, no operator reconciles them, and the orchard can
/// be deleted.
async fn is_left_alone(scenario: &Scenario) -> Result<()> {
    let (orchards, maps) = (scenario.objects("orchards"), scenario.objects("configmaps"));
    let north = orchards.fetch("north").await?;
    assert_eq!(finalizers(&north), [""; 0]);
    let uid = north["metadata"]["uid"].as_str().context("a uid")?;
    assert_eq!(owner_uid(&maps.fetch("north-basket").await?), Some(uid));
    let series = scenario.series("orkestra_reconcile_total", &[]).await?;
    assert_eq!(series, [""; 0], "an operator still runs");
    maps.delete("north-ladder").await?;
    assert_eq!(maps.get("north-ladder").await?, None);
    scenario.kubectl(&["delete", &kind(scenario), "north", "--timeout=120s"])?;
    is_all_gone(scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_that_never_compiled_can_be_deleted() -> Result<()> {
    let mut scenario = Scenario::new("never").await?;
    scenario.grant(&input("garden/katalog.yaml")?).await?;
    scenario.start().await?;
    let text = "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {name: far}\n\
                spec: {crds: {pond: {crdFile: pond.yaml}}}\n";
    scenario.apply(text)?;
    scenario.katalog_is("far", "False", "NoApiTypes").await?;
    scenario.kubectl(&["delete", "katalog", "far", "--timeout=120s"])?;
    scenario.check_running()
}
