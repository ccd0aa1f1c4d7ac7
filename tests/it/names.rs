//! Names of children that other objects have: such an object is not changed or deleted, unless the Katalog declares `adopt`.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, condition};
use crate::waters;

fn foreign(name: &str) -> Value {
    // The annotation by which Argo CD tracks the objects that it applies.
    let tracked =
        json!({ "argocd.argoproj.io/tracking-id": format!("shop:/ConfigMap:shop/{name}") });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "annotations": tracked },
        "data": { "colour": "theirs" },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_somebody_else_made_is_neither_changed_nor_deleted() -> Result<()> {
    let mut scenario = Scenario::new("names").await?;
    let katalog = waters::filled("names/katalog.yaml", "ADOPT", "false")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for name in ["kept-theirs", "once-theirs"] {
        maps.create(&foreign(name)).await?;
    }
    let before = [
        waters::version(&maps, "kept-theirs").await?,
        waters::version(&maps, "once-theirs").await?,
    ];

    both_say_which_name_is_taken(&scenario).await?;
    // The other children of each pond are created.
    for name in ["kept-own", "kept-once", "once-own", "once-kept"] {
        maps.until_equal(name, "/data/colour", json!("green"), LIMIT)
            .await?;
    }
    ponds
        .patch("kept", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    maps.until_equal("kept-own", "/data/colour", json!("brown"), LIMIT)
        .await?;
    for name in ["kept", "once"] {
        ponds.delete(name).await?;
        ponds.until_gone(name, LIMIT).await?;
    }
    scenario.until_idle().await?;
    let after = [
        waters::version(&maps, "kept-theirs").await?,
        waters::version(&maps, "once-theirs").await?,
    ];
    assert_eq!(after, before, "the objects of other owners were written");
    scenario.check_running()
}

/// Creates two ponds, each with a child whose name is taken, and waits until each reports `NameTaken`.
async fn both_say_which_name_is_taken(scenario: &Scenario) -> Result<()> {
    waters::pond(
        scenario,
        "kept",
        &json!({ "kept": "kept-theirs", "once": "kept-once", "colour": "green" }),
    )
    .await?;
    waters::pond(
        scenario,
        "once",
        &json!({ "kept": "once-kept", "once": "once-theirs", "colour": "green" }),
    )
    .await?;
    for (name, taken) in [("kept", "kept-theirs"), ("once", "once-theirs")] {
        let names_it = |pond: &Value| {
            let ready = condition(pond, "Ready").cloned().unwrap_or_default();
            ready["status"] == "False"
                && ready["reason"] == "NameTaken"
                && waters::text(&ready, "/message").contains(taken)
        };
        scenario
            .objects("ponds")
            .until(
                name,
                &format!("reports that {taken} is taken"),
                LIMIT,
                names_it,
            )
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_somebody_else_made_is_taken_over_where_the_katalog_says_adopt() -> Result<()>
{
    let mut scenario = Scenario::new("adopt").await?;
    let [refusing, adopting] =
        ["false", "true"].map(|adopt| waters::filled("names/katalog.yaml", "ADOPT", adopt));
    let adopting = adopting?;
    scenario.grant(&adopting).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&refusing?)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    maps.create(&foreign("theirs")).await?;
    let pond = waters::pond(
        &scenario,
        "north",
        &json!({ "kept": "theirs", "once": "mine", "colour": "green" }),
    )
    .await?;
    until_refused(&ponds, "north").await?;

    scenario.apply(&adopting)?;
    let taken = maps
        .until_equal("theirs", "/data/colour", json!("green"), LIMIT)
        .await?;
    ponds.until_ready("north").await?;
    // Argo CD does not prune objects with an owner reference, so an adopted object has none.
    let references = taken["metadata"].get("ownerReferences");
    ensure!(references.is_none(), "it has an owner: {taken}");
    let label = &taken["metadata"]["labels"]["orkestra.orkspace.io/owner-uid"];
    assert_eq!(*label, pond["metadata"]["uid"]);
    // From now on drift of the object is corrected.
    maps.patch("theirs", &json!({ "data": { "colour": "theirs" } }))
        .await?;
    maps.until_equal("theirs", "/data/colour", json!("green"), LIMIT)
        .await?;
    one_that_is_pruned_is_made_again(&ponds, &maps, &taken).await?;
    what_another_object_controls_is_left_alone(&scenario).await?;
    scenario.check_running()
}

/// Waits until a pond reports `NameTaken`.
async fn until_refused(ponds: &Objects, name: &str) -> Result<()> {
    let is_refused =
        |pond: &Value| condition(pond, "Ready").is_some_and(|ready| ready["reason"] == "NameTaken");
    ponds
        .until(name, "reports `NameTaken`", LIMIT, is_refused)
        .await
        .map(drop)
}

/// Checks that an adopted object is not written without a change, and that it is created again after a deletion, as declared.
async fn one_that_is_pruned_is_made_again(
    ponds: &Objects,
    maps: &Objects,
    taken: &Value,
) -> Result<()> {
    let before = waters::version(maps, "theirs").await?;
    let force =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/reconcile": "now" } } });
    ponds.patch("north", &force).await?;
    ponds
        .patch("north", &json!({ "spec": { "once": "other" } }))
        .await?;
    maps.until("other", "exists", LIMIT, |_| true).await?;
    assert_eq!(
        waters::version(maps, "theirs").await?,
        before,
        "the adopted object was written again"
    );
    maps.delete("theirs").await?;
    maps.until("theirs", "exists again", LIMIT, |map| {
        map["metadata"]["uid"] != taken["metadata"]["uid"]
    })
    .await?;
    Ok(())
}

/// Checks that `adopt` does not apply to an object that another object controls.
async fn what_another_object_controls_is_left_alone(scenario: &Scenario) -> Result<()> {
    let maps = scenario.objects("configmaps");
    let owner = maps.create(&foreign("controller")).await?;
    let mut controlled = foreign("controlled");
    controlled["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "controller", "uid": owner["metadata"]["uid"], "controller": true,
    }]);
    maps.create(&controlled).await?;
    let before = waters::version(&maps, "controlled").await?;
    waters::pond(
        scenario,
        "south",
        &json!({ "kept": "controlled", "once": "south-once", "colour": "green" }),
    )
    .await?;
    until_refused(&scenario.objects("ponds"), "south").await?;
    assert_eq!(waters::version(&maps, "controlled").await?, before);
    Ok(())
}
