//! The tables of definitions and custom resources that a genuine API server accepts and refuses: the tests of
//! `crates/plan/src/definitions` compare our own checks with the same tables.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{ControlPlane, eventually};

use crate::scenario::LIMIT;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TANKS: &str = "/apis/checks.example.com/v1/namespaces/default/tanks";
/// As `kubectl` creates objects: unknown fields are refused. Nothing is stored.
const CHECKED: &str = "?dryRun=All&fieldValidation=Strict";

/// Creates an object. Returns why the API server refuses it; none if it does not.
async fn refusal(client: &kube::Client, path: &str, object: &Value) -> Result<Option<String>> {
    let request = http::Request::post(path)
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(object)?)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status))
            if (400..500).contains(&status.code) && status.code != 429 =>
        {
            Ok(Some(status.message.clone()))
        }
        Err(error) => Err(error).context("the API server does not answer"),
    }
}

/// Compares the rows of a table with the API server's verdicts.
async fn compare(
    client: &kube::Client,
    path: &str,
    table: &str,
    complete: impl Fn(&mut Value),
) -> Result<usize> {
    let rows: Vec<Value> = serde_saphyr::from_str(table)?;
    let mut wrong = Vec::new();
    for row in &rows {
        let mut object = row["object"].clone();
        complete(&mut object);
        let refused = refusal(client, path, &object).await?;
        if refused.is_some() != (row["refused"] == true) {
            wrong.push(format!("{}: {refused:?}", row["name"]));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(rows.len())
}

#[tokio::test]
async fn the_api_server_gives_the_verdicts_of_the_tables() -> Result<()> {
    let client = ControlPlane::shared().admin().client()?;
    let table = include_str!("../../crates/plan/tests/inputs/definitions/definitions.yaml");
    let definitions = compare(&client, &format!("{CRDS}{CHECKED}"), table, |crd| {
        crd["apiVersion"] = json!("apiextensions.k8s.io/v1");
        crd["kind"] = json!("CustomResourceDefinition");
    })
    .await?;
    ensure!(definitions >= 20, "only {definitions} definitions");

    let tank = include_str!("../../crates/plan/tests/inputs/definitions/tank.yaml");
    let tank: Value = serde_saphyr::from_str(tank)?;
    ensure!(
        refusal(&client, CRDS, &tank).await?.is_none(),
        "the definition is refused"
    );
    eventually("the kind is served", LIMIT, async || {
        let request = http::Request::get(TANKS).body(Vec::new())?;
        Ok(client.request::<Value>(request).await.ok())
    })
    .await?;
    let table = include_str!("../../crates/plan/tests/inputs/definitions/resources.yaml");
    let resources = compare(&client, &format!("{TANKS}{CHECKED}"), table, |tank| {
        tank["apiVersion"] = json!("checks.example.com/v1");
        tank["kind"] = json!("Tank");
    })
    .await?;
    ensure!(resources >= 30, "only {resources} custom resources");
    let name = tank["metadata"]["name"].as_str().context("no name")?;
    let request = http::Request::delete(format!("{CRDS}/{name}")).body(Vec::new())?;
    client.request::<Value>(request).await?;
    Ok(())
}
