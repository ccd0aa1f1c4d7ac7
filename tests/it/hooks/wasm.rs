//! Hooks that are WebAssembly modules: from a `ConfigMap`, through changes and restarts, and what hostile ones cost.

use anyhow::{Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use orkestra_testkit::{hook_module, hook_program};
use serde_json::{Value, json};

use super::SOON;
use crate::{
    external::reported,
    scenario::{LIMIT, Scenario, condition, input},
    waters,
};

/// Returns the `ConfigMap` with a module.
fn module(bytes: &[u8]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "pond-hook" },
        "binaryData": { "hook.wasm": BASE64_STANDARD.encode(bytes) },
    })
}

/// Returns an answer with a child of that name.
fn child(name: &str) -> String {
    json!({
        "finalized": true,
        "data": { "deepest": 3 },
        "children": [{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "b" } }],
    })
    .to_string()
}

async fn running(bytes: &[u8]) -> Result<Scenario> {
    let mut scenario = Scenario::new("wasm").await?;
    scenario.accept_faults();
    let katalog = input("hooks/wasm.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario
        .objects("configmaps")
        .create(&module(bytes))
        .await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    Ok(scenario)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_of_a_config_map_runs_rolls_and_outlives_it() -> Result<()> {
    let mut scenario = running(&hook_module(&child("first"))).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "north", &json!({ "depth": 1 })).await?;
    maps.until("first", "exists", LIMIT, |_| true).await?;
    ponds
        .until("north", "is ready, with data of the hook", LIMIT, |pond| {
            pond["status"]["deepest"] == 3
                && condition(pond, "Ready").is_some_and(|one| one["status"] == "True")
        })
        .await?;
    let before = scenario.katalog_is("waters", "True", "Running").await?;

    // Another module is another revision.
    let next = module(&hook_module(&child("second")));
    maps.patch("pond-hook", &json!({ "binaryData": next["binaryData"] }))
        .await?;
    maps.until("second", "exists", LIMIT, |_| true).await?;
    maps.until_gone("first", LIMIT).await?;
    let after = scenario.katalog_is("waters", "True", "Running").await?;
    ensure!(
        before["status"]["revision"] != after["status"]["revision"],
        "{after}"
    );

    // One that is not valid is refused, and the accepted one runs on; after a restart as well.
    maps.patch(
        "pond-hook",
        &json!({ "binaryData": { "hook.wasm": BASE64_STANDARD.encode("text") } }),
    )
    .await?;
    let refused = scenario
        .katalog_is("waters", "False", "InvalidRevision")
        .await?;
    let message = condition(&refused, "Ready").map(|one| one["message"].to_string());
    let message = message.unwrap_or_default();
    ensure!(message.contains("is not a WebAssembly module"), "{message}");
    maps.delete("pond-hook").await?;
    scenario.terminate()?;
    scenario.launch().await?;
    maps.delete("second").await?;
    maps.until("second", "is back", LIMIT, |_| true).await?;

    ponds.delete("north").await?;
    ponds.until_gone("north", LIMIT).await?;
    maps.until_gone("second", LIMIT).await?;
    scenario.check_running()
}

// Over 60 lines: a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_module_costs_its_own_resource_only() -> Result<()> {
    let mut scenario = running(&hook_module("{}")).await?;
    let maps = scenario.objects("configmaps");
    let in_another = child("stolen").replace(
        r#"{"name":"stolen"}"#,
        r#"{"name":"stolen","namespace":"kube-system"}"#,
    );
    ensure!(in_another.contains("kube-system"), "{in_another}");
    let wrong = child("stolen").replace("ConfigMap", "Secret");
    let looped = r#"(func (export "_start") (loop $l (br $l)))"#;
    let grown = r#"(func (export "_start")
        (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1024)) (i32.const -1))))
        (unreachable))"#;
    let endless = r#"(func (export "_start") (i32.store (i32.const 4) (i32.const 65536))
        (loop $l (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) (br $l)))"#;
    let cases = [
        (
            "loop",
            hook_program(looped),
            "HookFailed",
            "did not end within 3 s",
        ),
        ("memory", hook_program(grown), "HookRefused", "was stopped"),
        (
            "output",
            hook_program(endless),
            "HookRefused",
            "more than 1024 KiB",
        ),
        (
            "foreign",
            hook_module(&in_another),
            "HookRefused",
            "another namespace",
        ),
        ("wrong", hook_module(&wrong), "HookRefused", "`Secret.v1`"),
        ("text", hook_module("<html>"), "HookRefused", "not JSON"),
    ];
    let ponds = scenario.objects("ponds");
    for (name, bytes, reason, why) in cases {
        let next = module(&bytes);
        maps.patch("pond-hook", &json!({ "binaryData": next["binaryData"] }))
            .await?;
        scenario.katalog_is("waters", "True", "Running").await?;
        waters::pond(&scenario, name, &json!({ "depth": 1 })).await?;
        // A neighbour is reconciled meanwhile.
        let neighbour = format!("beside-{name}");
        waters::lake(&scenario, &neighbour, &json!({})).await?;
        maps.until(&format!("{neighbour}-own"), "exists", SOON, |_| true)
            .await?;
        let message = reported(&ponds, name, reason).await?;
        ensure!(
            message.contains("the hook `constructor` failed") && message.contains(why),
            "{name}: {message}"
        );
        ponds.delete(name).await?;
        let skip = json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
        ponds.patch(name, &skip).await?;
        ponds.until_gone(name, LIMIT).await?;
    }
    ensure!(
        maps.get("stolen").await?.is_none(),
        "an invalid answer was used"
    );
    scenario.check_running()
}
