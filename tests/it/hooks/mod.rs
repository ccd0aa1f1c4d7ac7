//! Hooks and constructors of a running controller: what they own, what a broken one costs, and how a resource leaves.

mod server;

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use self::server::{Answer, Hooks};
use crate::{
    external::reported,
    scenario::{LIMIT, Scenario, condition, input},
    waters,
};

/// The limit for a neighbour while hooks misbehave. A pass takes milliseconds; the machine runs other tests meanwhile.
const SOON: Duration = Duration::from_secs(5);

async fn running(hooks: &Hooks) -> Result<Scenario> {
    let mut scenario = Scenario::new("hooks").await?;
    let allowed = hooks.url().replace("http://", "");
    scenario
        .arguments
        .extend(["--external-allow".to_owned(), allowed]);
    scenario.accept_faults();
    let katalog = input("hooks/katalog.yaml")?.replace("HOOKS", &hooks.url());
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    Ok(scenario)
}

fn config_map(name: &str, text: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "text": text.to_string() } })
}

/// A `ConfigMap` for each metre of depth.
fn metres(request: &Value) -> Value {
    let name = request["object"]["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    let depth = request["args"]["depth"].as_i64().unwrap_or_default();
    let children: Vec<Value> = (1..=depth)
        .map(|metre| config_map(&format!("{name}-{metre}"), &json!(metre)))
        .collect();
    let seen = request["children"]["ConfigMap.v1"]
        .as_object()
        .map_or(0, serde_json::Map::len);
    json!({
        "children": children,
        "data": { "deepest": depth },
        "status": { "seen": seen },
        "conditions": [{ "type": "Measured", "status": "True", "message": "it is" }],
        "events": [{ "reason": "Measured", "message": format!("{depth} metres") }],
    })
}

/// Finalized once nothing is left but the first metre.
fn drained(request: &Value) -> Value {
    let name = request["object"]["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    let left = request["children"]["ConfigMap.v1"]
        .as_object()
        .map_or(0, serde_json::Map::len);
    json!({ "finalized": left <= 1, "children": [config_map(&format!("{name}-1"), &json!(1))] })
}

// Over 60 lines: one custom resource through its life.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_constructor_owns_repairs_prunes_and_finalizes() -> Result<()> {
    let hooks = Hooks::start().await?;
    hooks.answer("/sync", Answer::Of(metres));
    hooks.answer("/finalize", Answer::Of(drained));
    let mut scenario = running(&hooks).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "north", &json!({ "depth": 3, "tier": "gold" })).await?;
    maps.until_equal("north-3", "/data/text", json!("3"), LIMIT)
        .await?;
    let pond = ponds
        .until("north", "has seen its children", LIMIT, |pond| {
            pond["status"]["seen"] == 3
                && condition(pond, "Ready").is_some_and(|one| one["status"] == "True")
        })
        .await?;
    ensure!(pond["status"]["deepest"] == 3, "{pond}");
    ensure!(
        condition(&pond, "Measured").is_some_and(|one| one["status"] == "True"),
        "{pond}"
    );
    let owner = maps.fetch("north-1").await?["metadata"]["ownerReferences"][0].clone();
    ensure!(
        owner["kind"] == "Pond" && owner["name"] == "north",
        "{owner}"
    );

    // Drift is corrected from the answer that is known: the request is the one of the first pass in between.
    maps.patch("north-2", &json!({ "data": { "text": "x" } }))
        .await?;
    maps.until_equal("north-2", "/data/text", json!("2"), LIMIT)
        .await?;
    maps.delete("north-3").await?;
    maps.until("north-3", "is back", LIMIT, |_| true).await?;

    // An unchanged world costs no call: the hook has seen what there is now, and later passes use its answer.
    eventually(
        "the hook has seen its children as they are",
        LIMIT,
        async || {
            let requests = hooks.requests("/sync", "north");
            let last = requests.last().cloned().unwrap_or_default();
            let pond = ponds.fetch("north").await?;
            let mut is_seen = last["object"]["status"] == pond["status"];
            for name in ["north-1", "north-2", "north-3"] {
                let seen = &last["children"]["ConfigMap.v1"][name]["metadata"]["uid"];
                is_seen &= *seen == maps.fetch(name).await?["metadata"]["uid"];
            }
            Ok(is_seen.then_some(()))
        },
    )
    .await?;
    let asked = hooks.requests("/sync", "north").len();
    waters::pond(&scenario, "south", &json!({ "depth": 1 })).await?;
    ponds.until_ready("south").await?;
    let now = hooks.requests("/sync", "north").len();
    ensure!(now == asked, "{} calls more", now - asked);

    ponds
        .patch("north", &json!({ "spec": { "depth": 2 } }))
        .await?;
    maps.until_gone("north-3", LIMIT).await?;
    // A hook that fails changes nothing, and its message is in the condition.
    hooks.answer("/sync", Answer::Status(503));
    ponds
        .patch("north", &json!({ "spec": { "depth": 1 } }))
        .await?;
    let message = reported(&ponds, "north", "HookFailed").await?;
    ensure!(
        message.contains("the hook `constructor` failed") && message.contains("503"),
        "{message}"
    );
    ensure!(
        maps.get("north-2").await?.is_some(),
        "a failed hook deleted a child"
    );
    hooks.answer("/sync", Answer::Of(metres));
    maps.until_gone("north-2", LIMIT).await?;

    ponds
        .patch("north", &json!({ "spec": { "depth": 2 } }))
        .await?;
    maps.until("north-2", "exists", LIMIT, |_| true).await?;
    ponds.delete("north").await?;
    ponds.until_gone("north", LIMIT).await?;
    let last = hooks.requests("/finalize", "north");
    ensure!(
        last.iter()
            .all(|request| request["operation"] == "finalize"),
        "{last:?}"
    );
    let seen = |request: &Value| {
        request["children"]["ConfigMap.v1"]
            .as_object()
            .map_or(0, serde_json::Map::len)
    };
    ensure!(
        last.first().map(seen) == Some(2) && last.last().map(seen) == Some(1),
        "{last:?}"
    );

    a_resource_whose_hook_is_gone_says_so_and_can_be_released(&scenario, &hooks).await?;
    scenario.check_running()
}

async fn a_resource_whose_hook_is_gone_says_so_and_can_be_released(
    scenario: &Scenario,
    hooks: &Hooks,
) -> Result<()> {
    let ponds = scenario.objects("ponds");
    hooks.answer("/finalize", Answer::Status(500));
    ponds.delete("south").await?;
    let message = reported(&ponds, "south", "HookFailed").await?;
    ensure!(message.contains("500"), "{message}");
    let skip =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
    ponds.patch("south", &skip).await?;
    ponds.until_gone("south", LIMIT).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_hook_costs_its_own_resource_only() -> Result<()> {
    let hooks = Hooks::start().await?;
    hooks.answer("/meta", Answer::Of(|_| json!({ "children": [] })));
    let mut scenario = running(&hooks).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    let foreign = |request: &Value| {
        let mut child = config_map("stolen", &json!(1));
        child["metadata"]["namespace"] = json!("kube-system");
        json!({ "children": [child, config_map("innocent", &request["args"])] })
    };
    let wrong = |_: &Value| json!({ "children": [{ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "all" } }] });
    let cases: [(&str, Answer, &str); 6] = [
        ("never", Answer::Never, "HookFailed"),
        ("endless", Answer::Endless, "HookFailed"),
        ("text", Answer::Text("<html>"), "HookRefused"),
        ("foreign", Answer::Of(foreign), "HookRefused"),
        ("wrong", Answer::Of(wrong), "HookRefused"),
        ("missing", Answer::Status(404), "HookFailed"),
    ];
    for (name, answer, reason) in cases {
        hooks.answer("/sync", answer);
        waters::pond(&scenario, name, &json!({ "depth": 1 })).await?;
        // A neighbour is reconciled meanwhile.
        let neighbour = format!("beside-{name}");
        waters::lake(&scenario, &neighbour, &json!({})).await?;
        maps.until(&format!("{neighbour}-own"), "exists", SOON, |_| true)
            .await?;
        let message = reported(&ponds, name, reason).await?;
        ensure!(
            message.contains("the hook `constructor` failed"),
            "{name}: {message}"
        );
    }
    for name in ["stolen", "innocent"] {
        ensure!(
            maps.get(name).await?.is_none(),
            "{name} was created from an answer that is not valid"
        );
    }
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_of_metacontroller_works_beside_templates() -> Result<()> {
    let hooks = Hooks::start().await?;
    hooks.answer("/meta", Answer::Of(|request| {
        let name = request["parent"]["metadata"]["name"].as_str().unwrap_or_default();
        let mut status = request["parent"]["status"].clone();
        status["secrets"] = json!(request["children"]["Secret.v1"].as_object().map_or(0, serde_json::Map::len));
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("{name}-made") }, "stringData": { "a": "b" } });
        // As many of its hooks do, it returns the status that it got, with the conditions in it.
        json!({ "status": status, "children": [secret] })
    }));
    let mut scenario = running(&hooks).await?;
    let (lakes, secrets) = (scenario.objects("lakes"), scenario.objects("secrets"));
    waters::lake(&scenario, "long", &json!({})).await?;
    secrets
        .until("long-made", "exists", LIMIT, |_| true)
        .await?;
    lakes
        .until("long", "is ready and has counted", LIMIT, |lake| {
            lake["status"]["secrets"] == 1
                && condition(lake, "Ready").is_some_and(|one| one["status"] == "True")
        })
        .await?;
    secrets.delete("long-made").await?;
    secrets
        .until("long-made", "is back", LIMIT, |_| true)
        .await?;
    lakes.delete("long").await?;
    secrets.until_gone("long-made", LIMIT).await?;
    scenario.check_running()
}
