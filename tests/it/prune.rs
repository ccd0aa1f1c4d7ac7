//! Pruning: children are deleted when their entry is removed from the Katalog or their gate closes.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, input};

const INSTANCES: [&str; 3] = ["north", "south", "west"];
/// The entry that is removed from the Katalog.
const LADDER: &str = r#"            - name: "{{ .metadata.name }}-ladder"
              data:
                steps: "7"
"#;

/// Creates three orchards with two children each, and for each ladder a copy that has its labels and annotations but no owner.
async fn orchards(prefix: &str) -> Result<Scenario> {
    let crds = ["garden/orchard-crd.yaml", "garden/pond-crd.yaml"];
    let scenario = Scenario::running(prefix, &crds, "garden/katalog.yaml").await?;
    let maps = scenario.objects("configmaps");
    for name in INSTANCES {
        scenario.apply(&input("garden/orchard.yaml")?.replace("north", name))?;
        scenario.objects("orchards").until_ready(name).await?;
        let ladder = maps.fetch(&format!("{name}-ladder")).await?;
        let copy = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": format!("{name}-copy"),
                "labels": ladder["metadata"]["labels"],
                "annotations": ladder["metadata"]["annotations"],
            },
            "data": { "note": "a copy" },
        });
        maps.create(&copy).await?;
    }
    Ok(scenario)
}

fn without_ladder() -> Result<String> {
    let katalog = input("garden/katalog.yaml")?;
    ensure!(katalog.contains(LADDER), "the Katalog declares no ladder");
    Ok(katalog.replace(LADDER, ""))
}

/// Checks that the ladders are deleted, and that the baskets and copies are unchanged.
async fn are_pruned(scenario: &Scenario, before: &[(String, Value)]) -> Result<()> {
    let maps = scenario.objects("configmaps");
    for name in INSTANCES {
        maps.until_gone(&format!("{name}-ladder"), LIMIT).await?;
    }
    scenario.katalog_is("garden", "True", "Running").await?;
    for (name, uid) in before {
        let map = maps.fetch(name).await?;
        assert_eq!(&map["metadata"]["uid"], uid, "{name}");
    }
    for name in INSTANCES {
        scenario.objects("orchards").until_ready(name).await?;
    }
    Ok(())
}

/// Returns the names and uids of the objects that must not be deleted.
async fn survivors(maps: &Objects) -> Result<Vec<(String, Value)>> {
    let mut all = Vec::new();
    for map in maps.list().await? {
        let name = map["metadata"]["name"].as_str().context("no name")?;
        if name.ends_with("-basket") || name.ends_with("-copy") {
            all.push((name.to_owned(), map["metadata"]["uid"].clone()));
        }
    }
    assert_eq!(all.len(), 2 * INSTANCES.len());
    Ok(all)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_entry_removed_from_the_katalog_is_pruned_for_every_instance() -> Result<()> {
    let scenario = orchards("prune").await?;
    let before = survivors(&scenario.objects("configmaps")).await?;
    scenario.apply(&without_ladder()?)?;
    are_pruned(&scenario, &before).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_entry_removed_while_the_controller_is_down_is_pruned_when_it_is_back() -> Result<()>
{
    let mut scenario = orchards("late").await?;
    let maps = scenario.objects("configmaps");
    let before = survivors(&maps).await?;
    scenario.kill9()?;
    scenario.apply(&without_ladder()?)?;
    for name in INSTANCES {
        maps.fetch(&format!("{name}-ladder")).await?;
    }
    scenario.start().await?;
    are_pruned(&scenario, &before).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_entry_of_a_kind_is_pruned_too() -> Result<()> {
    let mut scenario = orchards("last").await?;
    let maps = scenario.objects("configmaps");
    let katalog = input("garden/katalog.yaml")?;
    let (from, to) = (
        katalog.find("          configMaps:").context("no list")?,
        katalog.find("    pond:").context("no pond")?,
    );
    let secrets = "          secrets:\n            - name: \"{{ .metadata.name }}-key\"\n              data: { fruit: \"{{ .spec.fruit }}\" }\n";
    let other = [&katalog[..from], secrets, &katalog[to..]].concat();
    // This grant does not cover the old children. Their permissions stay until an administrator revokes them.
    scenario.grant(&other).await?;
    scenario.apply(&other)?;
    for name in INSTANCES {
        scenario
            .objects("secrets")
            .until_equal(
                &format!("{name}-key"),
                "/data/fruit",
                json!("cXVpbmNl"),
                LIMIT,
            )
            .await?;
        maps.until_gone(&format!("{name}-ladder"), LIMIT).await?;
        maps.until_gone(&format!("{name}-basket"), LIMIT).await?;
        maps.fetch(&format!("{name}-copy")).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_on_spec_that_closes_removes_and_one_on_status_keeps() -> Result<()> {
    let scenario =
        Scenario::running("gates", &["garden/orchard-crd.yaml"], "garden/gates.yaml").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    let (orchards, maps) = (scenario.objects("orchards"), scenario.objects("configmaps"));
    orchards.until_ready("north").await?;
    for (map, gate) in [("north-fence", "spec"), ("north-cider", "status")] {
        ensure!(
            maps.get(map).await?.is_none(),
            "a child exists although the gate on {gate} was never open"
        );
    }
    orchards
        .patch("north", &json!({ "spec": { "fenced": true } }))
        .await?;
    orchards
        .patch("north/status", &json!({ "status": { "season": "autumn" } }))
        .await?;
    let fence = maps
        .until_equal("north-fence", "/data/fruit", json!("quince"), LIMIT)
        .await?;
    let cider = maps
        .until_equal("north-cider", "/data/fruit", json!("quince"), LIMIT)
        .await?;

    orchards
        .patch("north/status", &json!({ "status": { "season": "winter" } }))
        .await?;
    orchards
        .patch(
            "north",
            &json!({ "spec": { "fenced": false, "fruit": "medlar" } }),
        )
        .await?;
    maps.until_gone("north-fence", LIMIT).await?;
    // The pass that deleted the fence has evaluated both gates as closed: the cider is kept, and it is not updated.
    orchards.until_ready("north").await?;
    maps.until_equal("north-basket", "/data/fruit", json!("medlar"), LIMIT)
        .await?;
    let kept = maps.fetch("north-cider").await?;
    assert_eq!(
        kept["metadata"]["resourceVersion"],
        cider["metadata"]["resourceVersion"]
    );

    gates_that_open_again_create_one_and_update_the_other(&scenario, &fence, &cider).await
}

/// Opens both gates again, and checks that one child is created again and the other is updated.
async fn gates_that_open_again_create_one_and_update_the_other(
    scenario: &Scenario,
    fence: &Value,
    cider: &Value,
) -> Result<()> {
    let (orchards, maps) = (scenario.objects("orchards"), scenario.objects("configmaps"));
    orchards
        .patch("north/status", &json!({ "status": { "season": "autumn" } }))
        .await?;
    orchards
        .patch("north", &json!({ "spec": { "fenced": true } }))
        .await?;
    let again = maps
        .until_equal("north-fence", "/data/fruit", json!("medlar"), LIMIT)
        .await?;
    assert_ne!(again["metadata"]["uid"], fence["metadata"]["uid"]);
    let cider_again = maps
        .until_equal("north-cider", "/data/fruit", json!("medlar"), LIMIT)
        .await?;
    assert_eq!(cider_again["metadata"]["uid"], cider["metadata"]["uid"]);
    Ok(())
}
