//! `ork plan`: what it predicts for every custom resource is what applying the Katalog then does.

use std::{collections::BTreeMap, process::Output};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    scenario::{LIMIT, Scenario, input},
    waters,
};

const NAMES: [&str; 3] = ["north", "south", "west"];

/// Runs a command of `ork` on the text of a Katalog, as the controller's identity.
fn run(scenario: &Scenario, command: &[&str], katalog: &str) -> Result<Output> {
    let file = scenario.file("plan.yaml", &scenario.text(katalog))?;
    let mut ork = scenario.command_as(&scenario.identity);
    ork.args(command).arg("-k").arg(&file);
    Ok(ork.args(["--namespace", &scenario.namespace]).output()?)
}

/// Runs `ork plan` on the text of a Katalog; returns the exit code and the plan.
fn plan(scenario: &Scenario, katalog: &str) -> Result<(Option<i32>, Value)> {
    let output = run(scenario, &["plan", "--output", "json"], katalog)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_str(&text).with_context(|| format!("{text}\n{errors}"))?;
    Ok((output.status.code(), json))
}

/// Returns what a group predicts, by object without the name of its custom resource: the action and the fields.
fn predicted(group: &Value) -> BTreeMap<String, (String, Value)> {
    let changes = group["changes"].as_array().cloned().unwrap_or_default();
    let of = |change: &Value| {
        let object = change["object"].as_str().unwrap_or_default().to_owned();
        let action = change["action"].as_str().unwrap_or_default().to_owned();
        (object, (action, change["fields"].clone()))
    };
    changes.iter().map(of).collect()
}

// Over 60 lines: one change, from its plan to what it did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_predicts_what_applying_does_deletions_first() -> Result<()> {
    let (before, after) = (input("plan/before.yaml")?, input("plan/after.yaml")?);
    let mut scenario = Scenario::new("plan").await?;
    for katalog in [&before, &after] {
        scenario.grant(katalog).await?;
    }
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(&before)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for name in NAMES {
        waters::pond(&scenario, name, &json!({ "depth": 3 })).await?;
        ponds.until_ready(name).await?;
    }
    // An object of another client has the name of a child that the next revision declares.
    let taken =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "west" } });
    scenario.objects("serviceaccounts").create(&taken).await?;

    let (code, same) = plan(&scenario, &before)?;
    ensure!(
        code == Some(0) && same["changed"] == 0 && same["instances"] == 3,
        "{same}"
    );

    let (code, planned) = plan(&scenario, &after)?;
    ensure!(
        code == Some(1) && planned["changed"] == 3 && planned["deletions"] == 3,
        "{planned:#}"
    );
    let groups = planned["groups"].as_array().context("no groups")?;
    ensure!(groups.len() == 2, "{planned:#}");
    let (two, one) = (&groups[0], &groups[1]);
    ensure!(two["count"] == 2 && one["count"] == 1, "{planned:#}");
    ensure!(
        two["changes"][0]["action"] == "delete",
        "deletions are not first: {planned:#}"
    );
    let namespace = &scenario.namespace;
    let changes = predicted(two);
    ensure!(
        changes[&format!("Secret {namespace}/north-key")].0 == "delete",
        "{planned:#}"
    );
    ensure!(
        changes[&format!("ServiceAccount {namespace}/north")].0 == "create",
        "{planned:#}"
    );
    let (action, fields) = &changes[&format!("ConfigMap {namespace}/north-map")];
    let expected = json!([
        { "path": "data.colour", "before": "green", "after": "red" },
        { "path": "data.extra", "after": "3" },
        { "path": "data.gone", "before": "x" },
    ]);
    ensure!(action == "update" && *fields == expected, "{fields:#}");
    ensure!(
        predicted(one)[&format!("ServiceAccount {namespace}/west")].0 == "refuse",
        "{planned:#}"
    );
    let added = planned["permissions"]["added"].to_string();
    ensure!(
        added.contains("serviceaccounts") && !added.contains("secrets"),
        "{added}"
    );
    ensure!(
        planned["permissions"]["dropped"]
            .to_string()
            .contains("secrets"),
        "{planned:#}"
    );

    let compared = run(&scenario, &["diff"], &after)?;
    let text = String::from_utf8_lossy(&compared.stdout);
    let deleted = format!("--- Secret {namespace}/north-key\n+++ /dev/null\n");
    ensure!(
        compared.status.code() == Some(1) && text.contains(&deleted),
        "{text}"
    );

    // Nothing was written by planning, and applying does what was said.
    ensure!(maps.fetch("north-map").await?["data"]["colour"] == "green");
    scenario.objects("serviceaccounts").delete("west").await?;
    scenario.apply(&after)?;
    for name in NAMES {
        maps.until_equal(&format!("{name}-map"), "/data/colour", json!("red"), LIMIT)
            .await?;
        scenario
            .objects("secrets")
            .until_gone(&format!("{name}-key"), LIMIT)
            .await?;
        scenario
            .objects("serviceaccounts")
            .until(name, "exists", LIMIT, |_| true)
            .await?;
        ponds.until_ready(name).await?;
    }
    let map = maps.fetch("north-map").await?;
    ensure!(
        map["data"]["extra"] == "3" && map["data"].get("gone").is_none(),
        "{map}"
    );
    let (code, same) = plan(&scenario, &after)?;
    ensure!(code == Some(0) && same["changed"] == 0, "{same:#}");
    scenario.check_running()
}
