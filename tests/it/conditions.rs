//! Conditions on a real control plane, without resync: each is evaluated again as soon as its inputs change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use orkestra_ground::Clock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use testbed::eventually;

use crate::panics::{Engine, Moments};
use crate::scenario::{LIMIT, Rate, Scenario, condition, input, within};
use crate::waters;

/// The maximum delay of a pass that is due at a point in time.
const LATE: Duration = Duration::from_secs(1);

async fn running(prefix: &str) -> Result<Scenario> {
    Scenario::running(prefix, &["kinds/crds.yaml"], "conditions/katalog.yaml").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_holder_of_a_unique_value_keeps_it_and_a_newcomer_fails_itself() -> Result<()> {
    let mut scenario = running("unique").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "b", &json!({ "host": "y.example" })).await?;
    waters::pond(&scenario, "a", &json!({ "host": "x.example" })).await?;
    for (map, host) in [("a-host", "x.example"), ("b-host", "y.example")] {
        maps.until_equal(map, "/data/host", json!(host), LIMIT)
            .await?;
    }
    // An older resource takes the value of a younger one: it loses its own map, and the holder loses nothing.
    let map = maps.fetch("a-host").await?;
    let taken = json!({ "spec": { "host": " x.example" } });
    ponds.patch("b", &taken).await?;
    maps.until_gone("b-host", LIMIT).await?;
    ponds.until_ready("b").await?;
    // Those who wait are in the order of their creation, after a restart too.
    let waiting = ponds.fetch("b").await?;
    let created = waters::text(&waiting, "/metadata/creationTimestamp");
    scenario.until_later_than(created).await?;
    waters::pond(&scenario, "c", &json!({ "host": "x.example" })).await?;
    ponds.until_ready("c").await?;
    // The order outlives the process.
    scenario.kill9()?;
    scenario.start().await?;
    waters::until_counted(&scenario).await?;
    ensure!(maps.get("b-host").await?.is_none(), "b has a map");
    ensure!(maps.get("c-host").await?.is_none(), "c has a map");
    let now = maps.fetch("a-host").await?;
    ensure!(now["metadata"]["uid"] == map["metadata"]["uid"]);
    // The next one follows.
    ponds
        .patch("a", &json!({ "spec": { "host": "y.example" } }))
        .await?;
    maps.until_equal("b-host", "/data/host", json!(" x.example"), LIMIT)
        .await?;
    maps.until_equal("a-host", "/data/host", json!("y.example"), LIMIT)
        .await?;
    ponds.delete("b").await?;
    maps.until_equal("c-host", "/data/host", json!("x.example"), LIMIT)
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

/// Checks that a requested pass of a gated pond writes nothing, not even that the request was handled.
async fn ensure_left_alone(scenario: &Scenario, name: &str) -> Result<()> {
    let mark = Scenario::mark()?;
    let ponds = scenario.objects("ponds");
    scenario.until_passed("pond", &ponds, name).await?;
    let writes = scenario.writes_since(mark)?;
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));
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
    ensure_left_alone(&scenario, "shut").await?;
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
    waters::until_counted(&scenario).await?;
    ensure_left_alone(&scenario, "shut").await?;
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
    waters::until_counted(&scenario).await?;
    let mark = Scenario::mark()?;
    let rate = Rate::until("it is reconciled again", 6.0, async || {
        scenario.passes("pond").await
    });
    rate.await?.ensure_at_most(Duration::from_secs(1), 2)?;
    let writes = scenario.writes_since(mark)?;
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));

    ponds
        .patch("busy", &json!({ "spec": { "calm": true } }))
        .await?;
    ponds
        .until_equal("busy", "/status/calm", json!("yes"), LIMIT)
        .await?;
    // No pass of a calm pond is scheduled.
    scenario.until_at_rest("pond").await?;

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

/// A clock that stands still until it is started.
#[derive(Clone)]
struct Hand(Arc<Mutex<(Timestamp, Option<Instant>)>>);

impl Hand {
    /// Stops the clock at a moment.
    fn stop(&self, at: Timestamp) {
        *self.0.lock() = (at, None);
    }

    /// Starts the clock.
    fn start(&self) {
        self.0.lock().1 = Some(Instant::now());
    }

    fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::new(move || {
            let (at, started) = *hand.0.lock();
            let passed = started.map(|started| started.elapsed()).unwrap_or_default();
            at.checked_add(passed).unwrap_or(at)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_time_window_opens_and_another_closes_at_their_moment() -> Result<()> {
    let mut scenario = Scenario::new("clock").await?;
    let katalog = input("conditions/clock.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    let mut nine: Timestamp = "2026-03-02T09:00:00Z".parse()?;
    let hand = Hand(Arc::new(Mutex::new((nine, None))));
    let moments = Moments::default();
    let engine = Engine::start(&scenario, |context| moments.note(context, hand.clock()))?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let ponds = scenario.objects("ponds");
    within("the pass at nine is late", LATE, async || {
        // One pond a day; its first pass runs five seconds before nine o'clock.
        nine += SignedDuration::from_hours(24);
        hand.stop(nine - SignedDuration::from_secs(5));
        let pond = format!("east-{}", nine.as_second());
        waters::pond(&scenario, &pond, &json!({})).await?;
        is_before_nine(&scenario, &pond).await?;
        hand.start();
        is_after_nine(&scenario, &pond).await?;
        ponds.delete(&pond).await?;
        ponds.until_gone(&pond, LIMIT).await?;
        let late = moments.late(nine).context("no pass since nine")?;
        Ok(late.unsigned_abs())
    })
    .await?;
    engine.stop().await
}

/// Waits until the pond is as declared for the time before nine o'clock.
async fn is_before_nine(scenario: &Scenario, pond: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    maps.until_equal(&format!("{pond}-night"), "/data/open", json!("no"), LIMIT)
        .await?;
    let ponds = scenario.objects("ponds");
    ponds
        .until_equal(pond, "/status/light", json!("on"), LIMIT)
        .await?;
    let day = maps.get(&format!("{pond}-day")).await?;
    ensure!(day.is_none(), "it is open before nine");
    Ok(())
}

/// Waits until the pond is as declared for the time after nine o'clock.
async fn is_after_nine(scenario: &Scenario, pond: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    maps.until_equal(&format!("{pond}-day"), "/data/open", json!("yes"), LIMIT)
        .await?;
    maps.until_gone(&format!("{pond}-night"), LIMIT).await?;
    let ponds = scenario.objects("ponds");
    ponds
        .until_equal(pond, "/status/light", json!(""), LIMIT)
        .await
        .map(drop)
}
