//! etcd is restored from a backup while the controller runs: resourceVersions continue from an older one.

use anyhow::Result;
use serde_json::json;
use testbed::{Cut, Faults, Proxy, eventually};

use crate::scenario::{CLAIMS, LIMIT, Objects, Scenario, input};
use crate::waters;

/// The number of writes that the backup lacks. It exceeds the number of writes that follow the restore on their own.
const LOST_WRITES: usize = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_etcd_is_followed_and_children_are_as_its_state_declares() -> Result<()> {
    let mut scenario = Scenario::on_its_own("restored").await?;
    let katalog = input("panic/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.cluster.relearn_kinds()?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for name in ["kept", "edited", "replaced"] {
        waters::pond(&scenario, name, &json!({ "colour": "green" })).await?;
        ponds.until_ready(name).await?;
    }
    let backup = scenario.cluster.back_up_etcd("backup")?;

    changes_are_made_that_will_be_lost(&scenario).await?;

    scenario.cluster.restore_etcd(&backup)?;
    children_are_as_in_the_backup_and_watched(&scenario).await?;
    // Claims are watched as well: a claim that is deleted now is created again.
    let (leases, claim) = (
        scenario.objects_in(CLAIMS, "leases"),
        format!("kind-pond.{}", scenario.group),
    );
    leases.delete(&claim).await?;
    leases.until(&claim, "exists", LIMIT, |_| true).await?;
    // Objects that were created after the backup do not exist.
    assert!(ponds.get("lost").await?.is_none());
    waters::pond(&scenario, "lost", &json!({ "colour": "green" })).await?;
    maps.until_equal("lost-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    // Changes of the Katalog are seen as well.
    let taller = katalog.replace("{{ .spec.colour }}", "{{ .spec.colour }}, tall");
    scenario.apply(&taller)?;
    maps.until_equal("kept-pond", "/data/colour", json!("red, tall"), LIMIT)
        .await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    // The log reports the restore, regardless of which check detected it first.
    assert!(scenario.log().contains("restored from a backup?"));
    scenario.check_running()
}

/// Changes, creates and replaces ponds after the backup.
async fn changes_are_made_that_will_be_lost(scenario: &Scenario) -> Result<()> {
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    write_noise(&maps).await?;
    ponds
        .patch("edited", &json!({ "spec": { "colour": "blue" } }))
        .await?;
    maps.until_equal("edited-pond", "/data/colour", json!("blue"), LIMIT)
        .await?;
    waters::pond(scenario, "lost", &json!({ "colour": "blue" })).await?;
    ponds.until_ready("lost").await?;
    ponds.delete("replaced").await?;
    ponds.until_gone("replaced", LIMIT).await?;
    waters::pond(scenario, "replaced", &json!({ "colour": "blue" })).await?;
    ponds.until_ready("replaced").await?;
    Ok(())
}

/// Creates a `ConfigMap` and changes it more often than the controller writes by itself.
async fn write_noise(maps: &Objects) -> Result<()> {
    let noise = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "noise" } });
    maps.create(&noise).await?;
    for number in 0..LOST_WRITES {
        let change = json!({ "data": { "number": number.to_string() } });
        maps.patch("noise", &change).await?;
    }
    Ok(())
}

/// Checks that children are as they were and still watched: a child that is deleted now is created again.
async fn children_are_as_in_the_backup_and_watched(scenario: &Scenario) -> Result<()> {
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for name in ["kept", "edited", "replaced"] {
        let child = format!("{name}-pond");
        maps.until_equal(&child, "/data/colour", json!("green"), LIMIT)
            .await?;
        maps.delete(&child).await?;
        maps.until_equal(&child, "/data/colour", json!("green"), LIMIT)
            .await?;
        ponds
            .patch(name, &json!({ "spec": { "colour": "red" } }))
            .await?;
        maps.until_equal(&child, "/data/colour", json!("red"), LIMIT)
            .await?;
        ponds.until_ready(name).await?;
    }
    Ok(())
}

/// A controller without leader election has no Lease that it renews. The last object that it wrote shows the restored state,
/// although the API server's resourceVersions have passed every one that the controller knows when it can connect again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_etcd_that_has_passed_what_was_known_is_found_by_the_last_write() -> Result<()> {
    const FOUND: &str = "the last written object is missing or has an older state";
    let mut scenario = Scenario::on_its_own("passed").await?;
    let katalog = input("panic/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.cluster.relearn_kinds()?;
    let proxy = scenario.cluster.proxy(&scenario.identity, 1).await?;
    scenario.identity = proxy.identity().clone();
    scenario.start().await?;
    scenario.apply(&katalog)?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    ponds.until_ready("north").await?;

    // The backup lacks the child: it is deleted while the controller is disconnected, and created again afterwards.
    cut_off(&scenario, &proxy, 1).await?;
    maps.delete("north-pond").await?;
    let backup = scenario.cluster.back_up_etcd("backup")?;
    proxy.set(Faults::default());
    let child = maps.until("north-pond", "exists", LIMIT, |_| true).await?;
    ponds.until_ready("north").await?;
    assert!(
        !scenario.log().contains(FOUND),
        "the controller reported a restored etcd after a mere outage"
    );

    cut_off(&scenario, &proxy, 2).await?;
    scenario.cluster.restore_etcd(&backup)?;
    assert!(maps.get("north-pond").await?.is_none());
    write_noise(&maps).await?;
    let [passed, known] = [
        waters::version(&maps, "noise").await?,
        waters::text(&child, "/metadata/resourceVersion").to_owned(),
    ]
    .map(|version| version.parse::<u64>());
    assert!(passed? > known? + 100);
    proxy.set(Faults::default());
    maps.until("north-pond", "exists", LIMIT, |_| true).await?;
    assert!(scenario.log().contains(FOUND));
    scenario.check_running()
}

/// Makes the API server unreachable for the controller, and waits until the controller has reported this `times` times.
async fn cut_off(scenario: &Scenario, proxy: &Proxy, times: usize) -> Result<()> {
    proxy.set(Faults {
        unreached: 1000,
        ..Faults::default()
    });
    proxy.cut_watches(Cut::Broken);
    eventually(
        "the controller reports that the API server is unreachable",
        LIMIT,
        async || {
            let log = scenario.log();
            let said = log
                .matches("the API server is unreachable; all requests wait")
                .count();
            Ok((said >= times).then_some(()))
        },
    )
    .await
}
