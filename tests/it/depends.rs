//! `dependsOn`: an operator starts after the operators that it depends on, and pauses while they fail.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

const KATALOG: &str = "depends/katalog.yaml";

/// Returns the CRD of one of the two kinds.
fn crd(kind: &str) -> Result<String> {
    let all = waters::crds()?;
    let is_it = |text: &&str| text.contains(&format!("kind: {kind}"));
    let found = all.split("\n---").find(is_it);
    Ok(found.context("no such CRD")?.to_owned())
}

/// Starts a scenario with both CRDs, the Katalog, a ready lake and a ready pond, and a quota that refuses service accounts.
async fn filled(prefix: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &["kinds/crds.yaml"], KATALOG).await?;
    waters::lake(
        &scenario,
        "deep",
        &json!({ "bed": "stones", "colour": "blue" }),
    )
    .await?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    scenario.objects("lakes").until_ready("deep").await?;
    scenario.objects("ponds").until_ready("north").await?;
    waters::forbid_accounts(&scenario).await?;
    Ok(scenario)
}

/// Waits until the page and the Katalog's status report that the pond's operator waits for that of the lakes. The page is checked
/// first: it has no delay, while the status may still report that the pond waits for the first pass of a lake.
async fn until_waiting(scenario: &Scenario, state: &str) -> Result<Value> {
    eventually("the page reports the wait", LIMIT, async || {
        let page = scenario.http("/katalog/pond/health").await?;
        for part in [
            "HTTP/1.1 503",
            &format!("\"state\":\"{state}\""),
            "\"hasUnhealthyDependencies\":true",
            "waits for `lake` to be healthy",
        ] {
            ensure!(page.contains(part), "no {part} in {page}");
        }
        Ok(Some(()))
    })
    .await?;
    let wanted = json!({ "state": "Waiting", "reason": "DependencyNotReady" });
    scenario.operator_reports("waters", "pond", &wanted).await
}

/// Sets whether the lake needs a service account, which the namespace's quota refuses.
async fn keep(scenario: &Scenario, keeper: &str) -> Result<()> {
    let keeper = json!({ "spec": { "keeper": keeper } });
    scenario
        .objects("lakes")
        .patch("deep", &keeper)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_waits_for_the_one_it_depends_on_and_says_so() -> Result<()> {
    let mut scenario = Scenario::new("waits").await?;
    let katalog = input(KATALOG)?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&crd("Pond")?).await?;
    scenario.apply(&katalog)?;
    let mark = Scenario::mark()?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    let reported = until_waiting(&scenario, "pending").await?;
    let lake = waters::row(&reported, "lake").context("no row of the lake")?;
    assert_eq!(lake["reason"], "CrdMissing");
    let message = waters::row(&reported, "pond").map(|row| row["message"].clone());
    assert_eq!(
        message,
        Some(json!(
            "waits for `lake` to be healthy: it is not running: CrdMissing"
        ))
    );
    // A resource can be deleted while its operator waits.
    scenario.objects("ponds").delete("north").await?;
    scenario.objects("ponds").until_gone("north", LIMIT).await?;

    waters::pond(&scenario, "south", &json!({ "colour": "brown" })).await?;
    scenario.install(&crd("Lake")?).await?;
    scenario.objects("ponds").until_ready("south").await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    // The events of the first pond came before those of the second one.
    let mut early = scenario.writes_since(mark)?;
    early.retain(|one| one.name.contains("north"));
    ensure!(early.is_empty(), "{}", waters::lines(&early));
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn operators_start_in_the_order_of_their_dependencies_and_stop_in_the_reverse()
-> Result<()> {
    let mut scenario = filled("order").await?;
    scenario.terminate()?;
    let log = scenario.log();
    let stops = |operator: &str| {
        let quoted = format!("operator=\"{operator}\"");
        let line = log.lines().position(|line| {
            line.contains("stopping operator")
                && (line.contains(&quoted) || line.contains(&quoted.replace('"', "")))
        });
        line.with_context(|| format!("{operator} did not stop in\n{log}"))
    };
    ensure!(stops("pond")? < stops("lake")?, "{log}");

    // Both operators have changes to reconcile from their start.
    let mark = Scenario::mark()?;
    for (plural, name) in [("ponds", "north"), ("lakes", "deep")] {
        let change = json!({ "spec": { "colour": "red" } });
        scenario.objects(plural).patch(name, &change).await?;
    }
    scenario.start().await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("north-pond", "/data/colour", json!("red"), LIMIT)
        .await?;
    // The audit log may be late.
    eventually("both writes are logged", LIMIT, async || {
        let writes = scenario.writes_since(mark)?;
        let first = |name: &str| {
            let write = writes.iter().position(|write| write.name == name);
            write.with_context(|| {
                format!("nothing was written to {name}:\n{}", waters::lines(&writes))
            })
        };
        let in_order = first("stones")? < first("north-pond")?;
        Ok(Some((in_order, waters::lines(&writes))))
    })
    .await
    .and_then(|(in_order, lines)| {
        ensure!(in_order, "{lines}");
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn an_operator_pauses_while_the_one_it_depends_on_fails_and_then_does_all_that_came()
-> Result<()> {
    let mut scenario = filled("pause").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "full", &json!({ "colour": "black" })).await?;
    ponds.until_ready("full").await?;
    keep(&scenario, "yes").await?;
    until_waiting(&scenario, "degraded").await?;

    let mark = Scenario::mark()?;
    let passes = scenario.passes("pond").await?;
    for name in ["east", "west", "old"] {
        waters::pond(&scenario, name, &json!({ "colour": "grey" })).await?;
    }
    ponds
        .patch("north", &json!({ "spec": { "colour": "white" } }))
        .await?;
    ponds
        .patch("east", &json!({ "spec": { "colour": "pink" } }))
        .await?;
    maps.delete("north-pond").await?;
    // The operator knows all five ponds, and reconciles none.
    eventually("the ponds are known", LIMIT, async || {
        let known = [("crd", "pond")];
        let known = scenario.metric("orkestra_resource_count", &known).await?;
        ensure!(known > 4.5, "{known} are known");
        Ok(Some(()))
    })
    .await?;
    assert!((scenario.passes("pond").await? - passes).abs() < 0.5);
    // Deletions complete during the pause, with and without a finalizer. They come after all other changes.
    for name in ["old", "full"] {
        ponds.delete(name).await?;
        ponds.until_gone(name, LIMIT).await?;
    }
    let mut of_ponds = scenario.writes_since(mark)?;
    of_ponds.retain(|write| {
        let is_of_pond = write.resource == "ponds" || write.name.ends_with("-pond");
        is_of_pond && !write.name.starts_with("full")
    });
    ensure!(of_ponds.is_empty(), "{}", waters::lines(&of_ponds));

    keep(&scenario, "no").await?;
    for (name, colour) in [("north", "white"), ("east", "pink"), ("west", "grey")] {
        let map = format!("{name}-pond");
        maps.until_equal(&map, "/data/colour", json!(colour), LIMIT)
            .await?;
        ponds.until_ready(name).await?;
    }
    scenario.katalog_is("waters", "True", "Running").await?;
    assert_eq!(maps.get("old-pond").await?, None);
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependencies_change_while_everything_runs() -> Result<()> {
    let mut scenario = filled("change").await?;
    let (maps, process) = (scenario.objects("configmaps"), scenario.pid());
    keep(&scenario, "yes").await?;
    until_waiting(&scenario, "degraded").await?;
    let passes = scenario.passes("pond").await?;
    let ponds = scenario.objects("ponds");
    ponds
        .patch("north", &json!({ "spec": { "colour": "white" } }))
        .await?;

    // The dependency now requires only that the lakes' operator has started.
    let katalog = input(KATALOG)?.replace("{ lake: { condition: healthy } }", "[lake]");
    scenario.apply(&katalog)?;
    maps.until_equal("north-pond", "/data/colour", json!("white"), LIMIT)
        .await?;
    scenario.operator_is("waters", "pond", "Running").await?;
    ensure!(
        scenario.passes("pond").await? > passes,
        "the pond's operator was restarted"
    );

    scenario.apply(&input(KATALOG)?)?;
    until_waiting(&scenario, "degraded").await?;
    // Once the failing lake is deleted, no lake fails.
    scenario.objects("lakes").delete("deep").await?;
    eventually("the pond's operator resumes", LIMIT, async || {
        let page = scenario.http("/katalog/pond/health").await?;
        Ok(page
            .contains("\"hasUnhealthyDependencies\":false")
            .then_some(()))
    })
    .await?;
    assert_eq!(scenario.pid(), process);
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_whose_own_spec_is_wrong_neither_degrade_their_operator_nor_pause_its_dependents()
-> Result<()> {
    // One failed pass of the lakes' operator would degrade it.
    let mut scenario = Scenario::running("wrong", &["kinds/crds.yaml"], KATALOG).await?;
    let wrong = json!({ "bed": "No Name At All", "colour": "blue" });
    let lakes = scenario.objects("lakes");
    for name in ["one", "two", "three", "four", "five", "six"] {
        waters::lake(&scenario, name, &wrong).await?;
    }
    for name in ["one", "two", "three", "four", "five", "six"] {
        lakes
            .until(name, "is stalled", LIMIT, |lake| {
                condition(lake, "Stalled").is_some_and(|one| one["reason"] == "InvalidName")
            })
            .await?;
    }
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    scenario.objects("ponds").until_ready("north").await?;
    // Once the status counts the lakes, no other report is pending.
    let wanted = json!({ "state": "Running", "instances": 6, "ready": 0 });
    scenario.operator_reports("waters", "lake", &wanted).await?;
    let katalog = scenario.katalog_is("waters", "True", "Running").await?;
    ensure!(condition(&katalog, "Degraded").is_none(), "{katalog}");
    let page = scenario.page("/katalog/lake/health").await?;
    ensure!(
        page["state"] == "healthy" && page["consecutiveFails"] == 0,
        "{page}"
    );
    let log = scenario.log();
    ensure!(
        !log.contains("operator is degraded"),
        "the operator was degraded"
    );
    scenario.check_running()
}
