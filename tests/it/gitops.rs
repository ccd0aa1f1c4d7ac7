//! Behaviour that `GitOps` tools and other tenants rely on: reconcile requests that the status repeats, deterministic output, few
//! Events, and custom resources that do not delay others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use orkestra_operator::queue::BREAKER_BURST;
use serde_json::json;
use testbed::eventually;
use tokio_util::sync::CancellationToken;

use crate::neighbours::toggle;
use crate::scenario::{LIMIT, Objects, Rate, Scenario, condition, input, within};
use crate::waters;

/// The number of custom resources that converge at once.
const INSTANCES: usize = 300;
/// The number of ponds that change seldom, next to one that changes all the time.
const NEIGHBOURS: usize = 20;
/// The number of clients that change the custom resources of a namespace, each about a hundred times a second. Each change needs a
/// reconcile pass of several requests, so the queue fills.
const CLIENTS: usize = 4;
/// The minimum number of custom resources that then wait for a worker.
const FLOODED: f64 = 150.0;
/// The number of measured changes in another namespace.
const MEASURED: usize = 20;
/// The factor by which the slowest of them may take longer during the flood than before it.
const SLOWER: u32 = 5;
/// The time that it may take in any case, since the API server is busy, too. A wait for the whole queue would be about 300 passes.
const UNFELT: Duration = Duration::from_secs(2);

/// A Katalog that creates a `ConfigMap` for each pond.
const PONDS: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "resync": "0s",
        "operatorBox": { "onReconcile": { "configMaps": [
            { "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }
        ] } }
    } } }
}"#;

async fn ponds(prefix: &str) -> Result<Scenario> {
    Scenario::with_katalog(prefix, &["kinds/crds.yaml"], PONDS).await
}

/// Annotates an object, and waits until `status.lastHandledReconcileAt` is the value of the annotation.
async fn asked_and_handled(
    scenario: &Scenario,
    (plural, name): (&str, &str),
    (annotation, value): (&str, &str),
) -> Result<()> {
    let objects = scenario.objects(plural);
    let asks = json!({ "metadata": { "annotations": { annotation: value } } });
    objects.patch(name, &asks).await?;
    objects
        .until_equal(name, "/status/lastHandledReconcileAt", json!(value), LIMIT)
        .await?;
    Ok(())
}

const OURS: &str = "orkestra.orkspace.io/reconcile";
const FLUX: &str = "reconcile.fluxcd.io/requestedAt";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotation_forces_a_pass_and_the_status_repeats_it() -> Result<()> {
    let scenario = ponds("asked").await?;
    waters::pond(&scenario, "deep", &json!({ "depth": "3" })).await?;
    scenario.objects("ponds").until_ready("deep").await?;
    let passes = scenario.passes("pond").await?;
    let requests = [
        (OURS, "2026-11-23T08:00:00Z"),
        (FLUX, "2026-11-23T08:00:01.5Z"),
        (OURS, "2026-11-23T08:00:02Z"),
    ];
    for request in requests {
        asked_and_handled(&scenario, ("ponds", "deep"), request).await?;
    }
    eventually("each annotation caused a pass", LIMIT, async || {
        Ok((scenario.passes("pond").await? >= passes + 3.0).then_some(()))
    })
    .await?;
    for request in requests {
        asked_and_handled(&scenario, ("katalogs", "waters"), request).await?;
    }
    scenario.katalog_is("waters", "True", "Running").await?;
    scenario.until_settled().await?;
    // A reconcile pass without a change leaves the condition in the status.
    let pond = scenario.objects("ponds").fetch("deep").await?;
    ensure!(condition(&pond, "Ready").is_some(), "{pond}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_does_not_keep_the_answer_costs_no_write() -> Result<()> {
    let scenario = Scenario::running("pruned", &["website/crd.yaml"], "drift/katalog.yaml").await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    let websites = scenario.objects("websites");
    websites.until_ready("hello").await?;
    scenario.until_settled().await?;
    let mark = Scenario::mark()?;
    for (annotation, value) in [(OURS, "one"), (FLUX, "two")] {
        let asks = json!({ "metadata": { "annotations": { annotation: value } } });
        websites.patch("hello", &asks).await?;
    }
    scenario.until_passed("website", &websites, "hello").await?;
    let mut writes = scenario.writes_since(mark)?;
    // The counts in the Katalog's status are written a few seconds later, and may change.
    writes.retain(|write| write.resource != "katalogs");
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));
    let website = websites.fetch("hello").await?;
    ensure!(
        website["status"].get("lastHandledReconcileAt").is_none(),
        "{website}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_generated_is_the_same_in_each_process() -> Result<()> {
    let scenario = Scenario::new("same").await?;
    let file = scenario.file("katalog.yaml", PONDS)?;
    let katalog = file.to_str().unwrap_or_default().to_owned();
    let pond = waters::resource(&scenario, "Pond", "deep", &json!({ "depth": "3" }));
    let pond = scenario.file("pond.json", &pond.to_string())?;
    let pond = pond.to_str().unwrap_or_default().to_owned();
    for args in [
        &["crds"][..],
        &["generate", "rbac", "-k", &katalog],
        &["render", "-k", &katalog, "--cr", &pond],
    ] {
        let first = scenario.ork(args)?;
        ensure!(!first.trim().is_empty(), "{args:?} prints nothing");
        for turn in 1..10 {
            ensure!(
                scenario.ork(args)? == first,
                "{args:?} differs in turn {turn}"
            );
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_definition_and_the_instances_outlive_their_katalog() -> Result<()> {
    let scenario = ponds("outlived").await?;
    waters::pond(&scenario, "deep", &json!({ "depth": "3" })).await?;
    scenario.objects("ponds").until_ready("deep").await?;
    let crds = crate::scenario::Objects::of_cluster(&scenario.client, "customresourcedefinitions");
    let name = format!("ponds.{}", scenario.group);
    let before = crds.fetch(&name).await?;
    let katalogs = scenario.objects("katalogs");
    katalogs.delete("waters").await?;
    katalogs.until_gone("waters", LIMIT).await?;
    let after = crds.fetch(&name).await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    ensure!(
        after["metadata"].get("ownerReferences").is_none(),
        "{after}"
    );
    ensure!(
        after["metadata"].get("deletionTimestamp").is_none(),
        "{after}"
    );
    let pond = scenario.objects("ponds").fetch("deep").await?;
    ensure!(pond["metadata"].get("finalizers").is_none(), "{pond}");
    scenario.objects("configmaps").fetch("deep").await?;
    Ok(())
}

/// Returns the name of a custom resource.
fn instance(n: usize) -> String {
    format!("p{n:03}")
}

async fn make_instances(scenario: &Scenario) -> Result<()> {
    let spec = json!({ "depth": "1" });
    let spec = &spec;
    stream::iter(0..INSTANCES)
        .map(async |n| waters::pond(scenario, &instance(n), spec).await)
        .buffer_unordered(8)
        .try_for_each(async |_| Ok(()))
        .await
}

/// Returns the number of Events of each pond by reason: a repeated Event increases `series.count`.
async fn reported(scenario: &Scenario) -> Result<BTreeMap<(String, String), u64>> {
    let mut reported = BTreeMap::new();
    for event in scenario.objects("events").list().await? {
        if event["involvedObject"]["kind"] == "Pond" {
            let text = |pointer| waters::text(&event, pointer).to_owned();
            let key = (text("/involvedObject/name"), text("/reason"));
            let times = event["series"]["count"].as_u64().unwrap_or(1);
            *reported.entry(key).or_default() += times;
        }
    }
    Ok(reported)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_instances_converge_with_an_event_each() -> Result<()> {
    let mut scenario = ponds("events").await?;
    let objects = scenario.objects("ponds");
    make_instances(&scenario).await?;
    let rows = json!({ "instances": INSTANCES, "ready": INSTANCES });
    scenario.operator_reports("waters", "pond", &rows).await?;
    let wanted = INSTANCES;
    eventually("each pond has its Event", LIMIT, async || {
        Ok((reported(&scenario).await?.len() >= wanted).then_some(()))
    })
    .await?;
    // Each pond had one transition, its first convergence. Neither a requested pass nor a restart may lead to another Event.
    let resynced = json!({ "metadata": { "annotations": { OURS: "again" } } });
    objects.patch("p000", &resynced).await?;
    scenario.terminate()?;
    scenario.start().await?;
    scenario.operator_reports("waters", "pond", &rows).await?;
    scenario.until_settled().await?;
    let after = reported(&scenario).await?;
    let more: Vec<_> = after.iter().filter(|(_, times)| **times > 1).collect();
    ensure!(more.is_empty(), "{more:?}");
    assert_eq!(after.len(), INSTANCES, "{after:?}");
    let dropped = scenario
        .metric("orkestra_events_dropped_total", &[])
        .await?;
    ensure!(dropped < 0.5, "{dropped} Events were dropped");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_or_a_namespace_that_changes_all_the_time_takes_nothing_from_its_neighbours()
-> Result<()> {
    let one_worker = PONDS.replace(
        r#""operatorBox": {"#,
        r#""operatorBox": { "reconciler": { "workers": 1 },"#,
    );
    let scenario = Scenario::with_katalog("toggled", &["kinds/crds.yaml"], &one_worker).await?;
    waters::pond(&scenario, "hot", &json!({ "depth": "0" })).await?;
    for n in 0..NEIGHBOURS {
        waters::pond(&scenario, &format!("calm-{n}"), &json!({ "depth": "0" })).await?;
    }
    let rows = json!({ "instances": NEIGHBOURS + 1, "ready": NEIGHBOURS + 1 });
    scenario.operator_reports("waters", "pond", &rows).await?;
    let (objects, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    let (mark, started) = (Scenario::mark()?, Instant::now());
    let stop = CancellationToken::new();
    let changes = Arc::new(AtomicU64::new(0));
    let toggles = toggle(
        objects.clone(),
        vec!["hot".to_owned()],
        (stop.clone(), changes.clone()),
    );
    each_neighbour_follows_three_changes(&objects, &maps).await?;
    // The writes show the number of passes: far fewer than the changes, once the burst is used up.
    let allowed = || u64::from(BREAKER_BURST) + started.elapsed().as_secs() + 2;
    eventually("the pond changes often enough", LIMIT, async || {
        let (changes, allowed) = (changes.load(Ordering::SeqCst), allowed());
        ensure!(
            changes > 2 * allowed,
            "{changes} changes, {allowed} passes are allowed"
        );
        Ok(Some(()))
    })
    .await?;
    stop.cancel();
    let toggles = toggles.await??;
    let written = |name: &str| -> Result<usize> {
        let writes = scenario.writes_since(mark)?;
        let of =
            |write: &&testbed::AuditEvent| write.resource == "configmaps" && write.name == name;
        Ok(writes.iter().filter(of).count())
    };
    let hot = written("hot")? as u64;
    println!("{toggles} changes led to {hot} writes");
    for n in 0..NEIGHBOURS {
        let calm = written(&format!("calm-{n}"))?;
        ensure!(calm == 3, "calm-{n} was written {calm} times");
    }
    // A burst of passes is permitted, and then one pass per second.
    let rate = Rate::since(started, f64::from(u32::try_from(hot)?));
    rate.ensure_at_most(Duration::from_secs(1), BREAKER_BURST + 2)?;
    // The child converges to the last change.
    let last = json!((toggles - 1).to_string());
    maps.until_equal("hot", "/data/depth", last, LIMIT).await?;
    ensure_a_flooded_queue_does_not_delay_another_namespace(&scenario).await
}

/// Changes all custom resources of the scenario's namespace all the time. Checks that changes of a pond in another namespace do
/// not take much longer than before.
async fn ensure_a_flooded_queue_does_not_delay_another_namespace(
    scenario: &Scenario,
) -> Result<()> {
    let far = waters::second_namespace(&scenario.client).await?;
    let at_far = |plural| scenario.objects_in(&far, plural);
    let calm = waters::resource(scenario, "Pond", "calm", &json!({ "depth": "0" }));
    at_far("ponds").create(&calm).await?;
    make_instances(scenario).await?;
    let all = NEIGHBOURS + 1 + INSTANCES + 1;
    let rows = json!({ "instances": all, "ready": all });
    scenario.operator_reports("waters", "pond", &rows).await?;
    let (ponds, maps) = (at_far("ponds"), at_far("configmaps"));
    let before = slowest_change(&ponds, &maps, "before").await?;
    let stop = CancellationToken::new();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let names = (client..INSTANCES).step_by(CLIENTS).map(instance).collect();
            let changes = Arc::default();
            toggle(scenario.objects("ponds"), names, (stop.clone(), changes))
        })
        .collect();
    is_flooded(scenario).await?;
    let allowed = UNFELT.max(before * SLOWER);
    let mut measurement = 0;
    let during = within("the slowest change during the flood", allowed, async || {
        measurement += 1;
        let phase = format!("during-{measurement}");
        let during = slowest_change(&ponds, &maps, &phase).await?;
        is_flooded(scenario).await?;
        Ok(during)
    })
    .await;
    stop.cancel();
    let mut changes = 0;
    for client in clients {
        changes += client.await??;
    }
    println!("{before:?} before, and {during:?} during {changes} changes");
    during.map(drop)
}

/// Waits until the queue is flooded: half of the custom resources wait for a worker.
async fn is_flooded(scenario: &Scenario) -> Result<()> {
    eventually("the queue is flooded", LIMIT, async || {
        let depth = scenario
            .metric("orkestra_queue_depth", &[("crd", "pond")])
            .await?;
        ensure!(depth >= FLOODED, "only {depth} custom resources wait");
        Ok(Some(()))
    })
    .await
}

/// Changes the pond `calm` [`MEASURED`] times, and returns the longest time until its child had the change.
async fn slowest_change(ponds: &Objects, maps: &Objects, phase: &str) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for n in 0..MEASURED {
        let depth = json!(format!("{phase}-{n}"));
        let change = json!({ "spec": { "depth": depth } });
        ponds.patch("calm", &change).await?;
        let changed = Instant::now();
        maps.until_equal("calm", "/data/depth", depth, LIMIT)
            .await?;
        slowest = slowest.max(changed.elapsed());
    }
    Ok(slowest)
}

/// Changes each neighbour three times, and waits each time until its child has the change.
async fn each_neighbour_follows_three_changes(objects: &Objects, maps: &Objects) -> Result<()> {
    for round in 1..=3 {
        for n in 0..NEIGHBOURS {
            let change = json!({ "spec": { "depth": round.to_string() } });
            objects.patch(&format!("calm-{n}"), &change).await?;
        }
        for n in 0..NEIGHBOURS {
            maps.until_equal(
                &format!("calm-{n}"),
                "/data/depth",
                json!(round.to_string()),
                LIMIT,
            )
            .await?;
        }
    }
    Ok(())
}
