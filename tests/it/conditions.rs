//! Conditions on a real control plane, without resync: each is evaluated again as soon as its inputs change.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use orkestra_ground::Clock;
use serde_json::{Value, json};
use testbed::eventually;

use crate::panics::{Engine, Moments};
use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

/// The time that a test waits to show that nothing happens.
const QUIET: Duration = Duration::from_secs(4);
/// The maximum delay of a pass that is due at a point in time.
const LATE: SignedDuration = SignedDuration::from_secs(1);

async fn running(prefix: &str) -> Result<Scenario> {
    Scenario::running(prefix, &["kinds/crds.yaml"], "conditions/katalog.yaml").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_unique_as_long_as_no_other_resource_has_it() -> Result<()> {
    let scenario = running("unique").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "a", &json!({ "host": "x.example" })).await?;
    maps.until_equal("a-host", "/data/host", json!("x.example"), LIMIT)
        .await?;
    // Once a second resource has the value, it is unique for neither.
    waters::pond(&scenario, "b", &json!({ "host": " x.example" })).await?;
    maps.until_gone("a-host", LIMIT).await?;
    ponds.until_ready("b").await?;
    ensure!(maps.get("b-host").await?.is_none(), "b has a map");
    ponds
        .patch("b", &json!({ "spec": { "host": "y.example" } }))
        .await?;
    for (map, host) in [("a-host", "x.example"), ("b-host", "y.example")] {
        maps.until_equal(map, "/data/host", json!(host), LIMIT)
            .await?;
    }
    ponds
        .patch("a", &json!({ "spec": { "host": "y.example" } }))
        .await?;
    maps.until_gone("b-host", LIMIT).await?;
    maps.until_gone("a-host", LIMIT).await?;
    ponds.delete("a").await?;
    maps.until_equal("b-host", "/data/host", json!("y.example"), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_number_is_reported_once_and_fails_nothing() -> Result<()> {
    let scenario = running("doubt").await?;
    waters::pond(&scenario, "odd", &json!({ "depth": "bottomless" })).await?;
    let ponds = scenario.objects("ponds");
    let odd = ponds.until_ready("odd").await?;
    ensure!(condition(&odd, "Deep").is_some_and(|deep| deep["status"] == "False"));
    let reported = async || -> Result<Vec<Value>> {
        let mut events = waters::warnings(&scenario, "odd").await?;
        events.retain(|event| event["reason"] == "NotCompared");
        Ok(events)
    };
    let event = eventually("an Event reports it", LIMIT, async || {
        Ok(reported().await?.into_iter().next())
    })
    .await?;
    let note = waters::text(&event, "/message");
    ensure!(
        note.contains("`spec.depth` is not a number") && !note.contains("bottomless"),
        "{note}"
    );
    ponds
        .patch("odd", &json!({ "spec": { "depth": 7 } }))
        .await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("odd-deep", "/data/depth", json!("7"), LIMIT)
        .await?;
    ensure!(reported().await?.len() == 1, "{:?}", reported().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gated_resource_is_left_alone_says_so_and_is_looked_at_when_its_gate_opens() -> Result<()>
{
    let scenario = running("gated").await?;
    let ponds = scenario.objects("ponds");
    waters::pond(&scenario, "shut", &json!({ "closed": true, "depth": 9 })).await?;
    let health = async || scenario.page("/katalog/pond/health").await;
    eventually("health counts it", LIMIT, async || {
        Ok((health().await?["gated"] == 1).then_some(()))
    })
    .await?;
    waters::until_counted(&scenario).await?;
    waters::ensure_no_writes(&scenario, QUIET).await?;
    let shut = ponds.fetch("shut").await?;
    let closed = |kind| condition(&shut, kind).is_some_and(|one| one["reason"] == "GateClosed");
    ensure!(closed("Gated") && closed("Reconciling"), "{shut}");
    ensure!(shut["metadata"].get("finalizers").is_none(), "{shut}");

    ponds
        .patch("shut", &json!({ "spec": { "closed": false } }))
        .await?;
    let open = ponds.until_ready("shut").await?;
    ensure!(condition(&open, "Gated").is_none(), "{open}");
    let deep = condition(&open, "Deep").context("no condition Deep")?;
    ensure!(
        deep["status"] == "True" && deep["message"] == "9 m",
        "{deep}"
    );
    eventually("health counts none", LIMIT, async || {
        Ok((health().await?["gated"] == 0).then_some(()))
    })
    .await?;

    // A resource whose gate closes keeps its children, and can be deleted.
    ponds
        .patch("shut", &json!({ "spec": { "closed": true, "depth": 1 } }))
        .await?;
    ponds
        .until("shut", "is gated", LIMIT, |pond| {
            condition(pond, "Gated").is_some() && condition(pond, "Stalled").is_none()
        })
        .await?;
    waters::ensure_no_writes(&scenario, QUIET).await?;
    let maps = scenario.objects("configmaps");
    ensure!(maps.fetch("shut-deep").await?["data"]["depth"] == "9");
    ponds.delete("shut").await?;
    ponds.until_gone("shut", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requeued_resource_is_looked_at_again_until_its_gate_closes_and_nothing_is_written()
-> Result<()> {
    let scenario = running("requeue").await?;
    let ponds = scenario.objects("ponds");
    waters::pond(&scenario, "busy", &json!({ "again": "1s" })).await?;
    ponds.until_ready("busy").await?;
    scenario
        .operator_reports("waters", "pond", &json!({ "instances": 1, "ready": 1 }))
        .await?;
    let before = scenario.passes("pond").await?;
    waters::ensure_no_writes(&scenario, Duration::from_secs(6)).await?;
    let passes = scenario.passes("pond").await? - before;
    ensure!((3.0..=8.0).contains(&passes), "{passes} passes in 6 s");

    ponds
        .patch("busy", &json!({ "spec": { "calm": true } }))
        .await?;
    ponds
        .until_equal("busy", "/status/calm", json!("yes"), LIMIT)
        .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = scenario.passes("pond").await?;
    tokio::time::sleep(QUIET).await;
    let passes = scenario.passes("pond").await? - before;
    ensure!(passes < 0.5, "{passes} passes of a calm pond");

    // A cleared field opens the gate again.
    ponds
        .patch("busy", &json!({ "spec": { "calm": false } }))
        .await?;
    ponds
        .until_equal("busy", "/status/calm", json!(""), LIMIT)
        .await?;
    let before = scenario.passes("pond").await?;
    eventually("it is reconciled again", LIMIT, async || {
        Ok((scenario.passes("pond").await? - before > 2.5).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_waits_for_what_the_katalog_asks() -> Result<()> {
    let scenario = running("readywhen").await?;
    let ponds = scenario.objects("ponds");
    waters::pond(&scenario, "wild", &json!({ "wild": true })).await?;
    let wild = ponds
        .until("wild", "waits for readyWhen", LIMIT, |pond| {
            condition(pond, "Ready").is_some_and(|ready| ready["reason"] == "ConditionsNotMet")
        })
        .await?;
    let ready = condition(&wild, "Ready").context("no condition Ready")?;
    let message = waters::text(ready, "/message");
    ensure!(message.ends_with("status.readyWhen[0]"), "{message}");
    ensure!(condition(&wild, "Reconciling").is_some(), "{wild}");
    ponds
        .patch("wild", &json!({ "spec": { "wild": false } }))
        .await?;
    ponds.until_ready("wild").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_time_window_opens_and_another_closes_at_their_moment() -> Result<()> {
    let mut scenario = Scenario::new("clock").await?;
    let katalog = input("conditions/clock.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    let shift = Arc::new(AtomicI64::new(0));
    // Set the clock so that the first pass runs twenty seconds before nine o'clock.
    let nine: Timestamp = "2026-03-02T09:00:00Z".parse()?;
    let set = |shift: &AtomicI64| {
        let ahead = nine.duration_since(Timestamp::now()) - SignedDuration::from_secs(20);
        let millis = i64::try_from(ahead.as_millis()).unwrap_or_default();
        shift.store(millis, Ordering::SeqCst);
    };
    set(&shift);
    let hand = Arc::clone(&shift);
    let clock = Clock::new(move || {
        let shift = SignedDuration::from_millis(hand.load(Ordering::SeqCst));
        Timestamp::now().checked_add(shift).unwrap_or_default()
    });
    let moments = Moments::default();
    let engine = Engine::start(&scenario, |context| moments.note(context, clock))?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    set(&shift);
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "east", &json!({})).await?;
    maps.until_equal("east-night", "/data/open", json!("no"), LIMIT)
        .await?;
    ensure!(
        maps.get("east-day").await?.is_none(),
        "it is open before nine"
    );
    ponds
        .until_equal("east", "/status/light", json!("on"), LIMIT)
        .await?;

    maps.until_equal("east-day", "/data/open", json!("yes"), LIMIT)
        .await?;
    let late = moments.late(nine).context("no pass since nine")?;
    ensure!(late <= LATE, "{late:#} after nine");
    maps.until_gone("east-night", Duration::from_secs(5))
        .await?;
    ponds
        .until_equal("east", "/status/light", json!(""), LIMIT)
        .await?;
    engine.stop().await
}
