//! The accepted revisions of a Katalog: listed, compared, and returned to.

use anyhow::{Result, bail, ensure};
use serde_json::json;

use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

/// Applies the Katalog with that colour, and waits until it runs.
async fn apply(scenario: &Scenario, katalog: &str, colour: &str) -> Result<()> {
    scenario.apply(&katalog.replace("green", colour))?;
    runs(scenario, colour).await
}

/// Waits until the child of the Pond has that colour.
async fn runs(scenario: &Scenario, colour: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    maps.until_equal("north-pond", "/data/colour", json!(colour), LIMIT)
        .await?;
    scenario.katalog_is("ponds", "True", "Running").await?;
    Ok(())
}

/// Runs `ork` in the namespace of the scenario.
fn ork(scenario: &Scenario, args: &[&str]) -> Result<String> {
    scenario.ork(&[args, &["--namespace", &scenario.namespace]].concat())
}

/// Returns the message of a command that must fail.
fn refused(scenario: &Scenario, args: &[&str]) -> Result<String> {
    match ork(scenario, args) {
        Ok(printed) => bail!("`ork {}` succeeded: {printed}", args.join(" ")),
        Err(error) => Ok(error.to_string()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revisions_are_listed_compared_and_returned_to() -> Result<()> {
    let katalog = input("komposer/ponds.yaml")?;
    let mut scenario = Scenario::with_katalog("history", &["kinds/crds.yaml"], &katalog).await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    runs(&scenario, "green").await?;
    apply(&scenario, &katalog, "blue").await?;
    apply(&scenario, &katalog, "red").await?;

    let listed = ork(&scenario, &["history", "ponds"])?;
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let numbers: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    ensure!(numbers == ["REVISION", "1", "2", "3"], "{listed}");
    ensure!(
        listed
            .lines()
            .last()
            .is_some_and(|line| line.ends_with("in force")),
        "{listed}"
    );
    ensure!(listed.contains("kubectl-client-side-apply"), "{listed}");
    let first = ork(&scenario, &["history", "ponds", "--revision", "1"])?;
    ensure!(first.contains("green") && !first.contains("red"), "{first}");
    let differs = refused(&scenario, &["diff", "ponds@1", "ponds@3"])?;
    ensure!(
        differs.contains("green") && differs.contains("red"),
        "{differs}"
    );
    let same = ork(&scenario, &["diff", "ponds@1", "ponds@1"])?;
    ensure!(same.is_empty(), "{same}");
    let unknown = refused(&scenario, &["rollback", "ponds", "--to", "9"])?;
    ensure!(
        unknown.contains("revision 9 is not kept: 1, 2, 3"),
        "{unknown}"
    );

    ork(&scenario, &["rollback", "ponds"])?;
    runs(&scenario, "blue").await?;
    ork(&scenario, &["rollback", "ponds", "--to", "1"])?;
    runs(&scenario, "green").await?;
    let listed = ork(&scenario, &["history", "ponds"])?;
    ensure!(listed.contains("ork-rollback"), "{listed}");
    // An earlier revision that is accepted again gets the next number.
    let again = ork(&scenario, &["rollback", "ponds", "--to", "5"])?;
    ensure!(
        again.contains("has the spec of revision 5 already"),
        "{again}"
    );

    a_tool_that_applies_the_katalog_keeps_it(&scenario, &katalog).await?;
    the_limit_holds(&scenario, &katalog).await?;
    scenario.check_running()
}

/// Checks that a rollback is refused where Argo CD would undo it.
async fn a_tool_that_applies_the_katalog_keeps_it(
    scenario: &Scenario,
    katalog: &str,
) -> Result<()> {
    let file = scenario.file("argo.yaml", &katalog.replace("green", "white"))?;
    let file = file.display().to_string();
    let manager = "--field-manager=argocd-controller";
    scenario.kubectl(&[
        "apply",
        "--server-side",
        "--force-conflicts",
        manager,
        "-f",
        &file,
    ])?;
    runs(scenario, "white").await?;
    let refused = refused(scenario, &["rollback", "ponds"])?;
    ensure!(
        refused.contains("Argo CD") && refused.contains("argocd-controller"),
        "{refused}"
    );
    let katalogs = scenario.objects("katalogs");
    let spec = katalogs.fetch("ponds").await?["spec"].to_string();
    ensure!(spec.contains("white"), "{spec}");
    ork(scenario, &["rollback", "ponds", "--force"])?;
    runs(scenario, "green").await
}

/// Checks that the limit of the spec decides how many revisions are kept.
async fn the_limit_holds(scenario: &Scenario, katalog: &str) -> Result<()> {
    let limited = katalog.replace("spec:\n", "spec:\n  revisionHistoryLimit: 1\n");
    ensure!(limited != katalog, "the Katalog has another form");
    let file = scenario.file("limited.yaml", &limited.replace("green", "black"))?;
    let file = file.display().to_string();
    scenario.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file])?;
    runs(scenario, "black").await?;
    let listed = ork(scenario, &["history", "ponds"])?;
    ensure!(listed.lines().count() == 3, "{listed}");
    let stored = scenario.objects("controllerrevisions").list().await?;
    let count = stored
        .iter()
        .filter(|one| one["metadata"]["ownerReferences"][0]["name"] == "ponds")
        .count();
    ensure!(count == 2, "{count} revisions are stored");
    Ok(())
}
