//! Lifecycle blocks: the state of a child for each block, each event, and each kind of gate, as read from the cluster.
//!
//! Source: language reference, lifecycle blocks.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Objects, Scenario};
use crate::waters;

const CRDS: [&str; 1] = ["lifecycle/grove-crd.yaml"];
/// A finalizer of another controller: it keeps the resource after Orkestra has removed its own finalizer.
const HOLD: &str = "example.org/hold";

/// The state of a child after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// The child exists as declared.
    Declared,
    /// The child keeps a change of another client.
    Changed,
    /// The child does not exist.
    Absent,
}
use Becomes::{Absent, Changed, Declared};

/// The events, one resource for each: nothing, a change of the children, their deletion, and false gates. At the start all gates
/// are true.
const EVENTS: [&str; 4] = ["absent", "differs", "deleted", "closed"];
const GATES: [&str; 2] = ["spec", "live"];

/// The expected state of a child by block and event, with a gate on the spec and with a gate on the status.
const MATRIX: [(&str, [[Becomes; 2]; 4]); 3] = [
    (
        "once",
        [[Declared; 2], [Changed; 2], [Absent; 2], [Declared; 2]],
    ),
    (
        "repeat",
        [
            [Declared; 2],
            [Declared; 2],
            [Declared; 2],
            [Absent, Declared],
        ],
    ),
    (
        "reconcile",
        [
            [Declared; 2],
            [Declared; 2],
            [Declared; 2],
            [Absent, Declared],
        ],
    ),
];

fn becomes(map: Option<&Value>) -> Becomes {
    match map.map(|map| &map["data"]["value"]) {
        None => Absent,
        Some(value) if value == "declared" => Declared,
        Some(_) => Changed,
    }
}

/// Returns every cell: the event, the name of the child, and its expected state.
fn cells() -> impl Iterator<Item = (&'static str, String, Becomes)> {
    MATRIX.iter().flat_map(|(block, row)| {
        EVENTS.iter().zip(row).flat_map(move |(event, pair)| {
            let name = move |gate| format!("{event}-{block}-{gate}");
            GATES
                .iter()
                .zip(pair)
                .map(move |(gate, cell)| (*event, name(gate), *cell))
        })
    })
}

/// Creates a grove whose gates are true.
async fn grove(scenario: &Scenario, name: &str, finalizers: &[&str]) -> Result<()> {
    let groves = scenario.objects("groves");
    let grove = json!({
        "apiVersion": format!("{}/v1alpha1", scenario.group), "kind": "Grove",
        "metadata": { "name": name, "finalizers": finalizers }, "spec": { "on": "yes" },
    });
    groves.create(&grove).await?;
    live(&groves, name, "yes").await
}

async fn live(groves: &Objects, name: &str, on: &str) -> Result<()> {
    let status = json!({ "status": { "on": on } });
    groves
        .patch(&format!("{name}/status"), &status)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_of_the_lifecycle_blocks_is_as_the_language_says() -> Result<()> {
    let scenario = Scenario::running("matrix", &CRDS, "lifecycle/matrix.yaml").await?;
    let (groves, maps) = (scenario.objects("groves"), scenario.objects("configmaps"));
    for event in EVENTS {
        grove(&scenario, event, &[]).await?;
    }
    for (_, child, _) in cells() {
        let made = |map: &Value| becomes(Some(map)) == Declared;
        maps.until(&child, "exists", LIMIT, made).await?;
    }
    for (event, child, _) in cells() {
        match event {
            "differs" => {
                maps.patch(&child, &json!({ "data": { "value": "other" } }))
                    .await?;
            }
            "deleted" => maps.delete(&child).await?,
            _ => {}
        }
    }
    groves
        .patch("closed", &json!({ "spec": { "on": "no" } }))
        .await?;
    live(&groves, "closed", "no").await?;

    let ensure_right = async || {
        let mut wrong = Vec::new();
        for (event, child, wanted) in cells() {
            let found = becomes(maps.get(&child).await?.as_ref());
            if found != wanted {
                wrong.push(format!("{event}: {child} is {found:?}, not {wanted:?}"));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(Some(()))
    };
    eventually("each cell is right", LIMIT, async || ensure_right().await).await?;
    // Another pass of each grove changes nothing.
    waters::ensure_no_writes(&scenario).await?;
    ensure_right().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_entry_of_on_delete_is_done_or_skipped_as_its_gate_says() -> Result<()> {
    let scenario = Scenario::running("end", &CRDS, "lifecycle/matrix.yaml").await?;
    let (groves, maps) = (scenario.objects("groves"), scenario.objects("configmaps"));
    for name in ["ending", "gated"] {
        grove(&scenario, name, &[HOLD]).await?;
        for (block, _) in MATRIX {
            for gate in GATES {
                let made = |map: &Value| becomes(Some(map)) == Declared;
                maps.until(&format!("{name}-{block}-{gate}"), "exists", LIMIT, made)
                    .await?;
            }
        }
    }
    groves
        .patch("gated", &json!({ "spec": { "end": "no" } }))
        .await?;
    // A child that is already deleted is no error.
    maps.delete("ending-reconcile-live").await?;
    let mark = Scenario::mark()?;
    for name in ["gated", "ending"] {
        groves.delete(name).await?;
        let let_go = |grove: &Value| grove["metadata"]["finalizers"] == json!([HOLD]);
        groves
            .until(name, "has only the other finalizer", LIMIT, let_go)
            .await?;
    }
    for (child, there) in [
        ("ending-reconcile-spec", false),
        ("ending-reconcile-live", false),
        ("ending-repeat-spec", true),
        ("ending-repeat-live", true),
        ("gated-reconcile-spec", true),
    ] {
        assert_eq!(maps.get(child).await?.is_some(), there, "{child}");
    }
    scenario.until_idle().await?;
    let writes = scenario.writes_since(mark)?;
    let mut jobs: Vec<&str> = writes
        .iter()
        .filter(|write| write.resource == "jobs" && write.verb == "create")
        .map(|write| write.name.as_str())
        .collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["ending-end-live", "ending-end-spec"]);
    let left = scenario.objects("jobs").list().await?;
    assert_eq!(left, Vec::<Value>::new(), "Jobs of `onDelete` are left");
    let gated = groves.fetch("gated").await.context("it was deleted")?;
    ensure!(gated["metadata"]["deletionTimestamp"].is_string());
    for name in ["ending", "gated"] {
        groves
            .patch(name, &json!({ "metadata": { "finalizers": null } }))
            .await?;
        groves.until_gone(name, LIMIT).await?;
    }
    Ok(())
}
