//! `autoscale`: an operator's workers, queue depth and resync, and a Deployment's replicas, are changed by conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use orkestra_cluster::client::flow::Flow;
use orkestra_controller::{Directory, Feed, FileError, Namespaces, OperatorView, Runtime};
use orkestra_ground::Clock;
use orkestra_operator::OperatorStatus;
use orkestra_operator::context::{Context, Faults};
use orkestra_operator::metrics::Metrics;
use parking_lot::{Condvar, Mutex};
use serde_json::json;
use testbed::eventually;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::scenario::{LIMIT, Scenario, input, is_observed, until_unchanged};
use crate::{seed, waters};

/// The time that a test waits to show that nothing happens.
const QUIET: Duration = Duration::from_secs(2);

/// The number of Demos: with twelve busy workers, more than three Demos still wait.
const DEMOS: usize = 17;

/// Returns the sample with one worker, short times and small numbers, so that a test can wait for them, and the operator `db`,
/// whose metrics the sample reads.
fn sample() -> Result<String> {
    let mut text = seed::sample("autoscale")?;
    for (printed, quick) in [
        ("interval: 30s", "interval: 200ms"),
        ("cooldown: 2m", "cooldown: 1s"),
        ("greaterThan: \"300\"", "greaterThan: \"3\""),
        ("greaterThan: \"500\"", "greaterThan: \"2\""),
        (
            "      operatorBox:\n",
            "      operatorBox:\n        reconciler: { workers: 1, resync: 1h, queue: { maxDepth: 20 } }\n",
        ),
    ] {
        text = seed::changed(&text, printed, quick)?;
    }
    Ok(text + &input("autoscale/db.yaml")?)
}

/// Blocks passes: while an operator is in `shut`, its passes wait before they start, and keep their workers busy.
#[derive(Default)]
struct Sluice {
    shut: Mutex<Vec<&'static str>>,
    opened: Condvar,
}

impl Sluice {
    fn shut(&self, operators: &[&'static str]) {
        *self.shut.lock() = operators.to_vec();
        self.opened.notify_all();
    }

    /// Waits until passes of the operator are not blocked.
    fn pass(&self, operator: &str) {
        let mut shut = self.shut.lock();
        let waits = |shut: &mut Vec<&str>| shut.contains(&operator);
        self.opened.wait_while(&mut shut, waits);
    }
}

/// Opens the sluice when it is dropped: otherwise the passes of a failed test would never end.
struct Keeper(Arc<Sluice>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.shut(&[]);
    }
}

/// The engine of `ork controller`, run in this process so that the test can block passes.
struct Engine {
    metrics: Metrics,
    directory: Directory,
    sluice: Keeper,
    /// How often the clock was read.
    looks: Arc<AtomicU64>,
    shutdown: CancellationToken,
    run: JoinHandle<Result<bool, FileError>>,
}

impl Engine {
    fn start(scenario: &Scenario) -> Result<Self> {
        let sluice = Arc::new(Sluice::default());
        let mut context = Context::new(scenario.identity.client()?, &Flow::new(|| 0.0))?;
        let before = sluice.clone();
        context.faults = Faults::before_pass(move |operator, _| {
            // The runtime's other tasks continue meanwhile.
            tokio::task::block_in_place(|| before.pass(operator));
        });
        let looks = Arc::new(AtomicU64::new(0));
        let count = looks.clone();
        context.clock = Clock::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Timestamp::now()
        });
        let metrics = context.metrics.clone();
        let shutdown = CancellationToken::new();
        let runtime = Runtime::new(Arc::new(context));
        let directory = runtime.directory();
        let feed = Feed::Cluster(Namespaces::Some(vec![scenario.namespace.clone()]));
        let run = tokio::spawn(runtime.run(feed, shutdown.clone(), LIMIT));
        Ok(Self {
            metrics,
            directory,
            sluice: Keeper(sluice),
            looks,
            shutdown,
            run,
        })
    }

    fn operator(&self, name: &str) -> Option<OperatorView> {
        let katalogs = self.directory.katalogs();
        katalogs.iter().find_map(|one| one.operator(name).cloned())
    }

    /// Waits until the operator's own status satisfies `wanted`.
    async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&OperatorStatus) -> bool,
    ) -> Result<OperatorStatus> {
        eventually(&format!("{name} {what}"), LIMIT, async || {
            let Some(view) = self.operator(name) else {
                return Ok(None);
            };
            let status = view.status.borrow().clone();
            ensure!(wanted(&status), "its status is {status:?}");
            Ok(Some(status))
        })
        .await
    }

    /// Returns the value of a metric of an operator.
    fn value(&self, series: &str, operator: &str) -> Result<u64> {
        let text: String = self.metrics.parts().collect::<Result<_, _>>()?;
        let label = format!("crd=\"{operator}\"");
        let is_it = |line: &&str| line.starts_with(&format!("{series}{{")) && line.contains(&label);
        let line = text.lines().find(is_it).unwrap_or_default();
        Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
    }

    /// Returns the number of completed passes of an operator.
    fn passes(&self, operator: &str) -> Result<u64> {
        self.value("orkestra_reconcile_duration_seconds_count", operator)
    }

    async fn stop(self) -> Result<()> {
        drop(self.sluice);
        self.shutdown.cancel();
        ensure!(self.run.await??, "a write did not end in time");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
pub(crate) async fn an_operator_gets_more_workers_while_it_and_another_have_too_much_to_do()
-> Result<()> {
    let mut scenario = Scenario::new("scale").await?;
    let katalog = sample()?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.install(&input(seed::DEMO)?).await?;
    let engine = Engine::start(&scenario)?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("sample", "True", "Running").await?;
    let calm = engine
        .until("demo", "has its worker", |status| status.workers == 1)
        .await?;
    assert_eq!((calm.queue_max_depth, calm.autoscaled), (20, false));

    a_queue_of_its_own_is_not_enough(&scenario, &engine).await?;
    more_workers_are_at_work(&scenario, &engine).await?;
    the_declared_capacity_is_restored(&scenario, &engine).await?;
    engine.stop().await
}

/// Checks that the operator keeps its one worker while its own queue is long and the other operator is idle.
async fn a_queue_of_its_own_is_not_enough(scenario: &Scenario, engine: &Engine) -> Result<()> {
    // The only worker is blocked in a pass and the other Demos wait in the queue. That alone does not scale the operator.
    engine.sluice.0.shut(&["demo", "db"]);
    for number in 0..DEMOS {
        let name = format!("demo-{number}");
        seed::demo(scenario, &name, &json!({})).await?;
    }
    engine
        .until("demo", "has a queue", |status| {
            status.queue_depth == DEMOS - 1
        })
        .await?;
    // The autoscaler reads the clock in each evaluation.
    let before = engine.looks.load(Ordering::Relaxed);
    eventually("the autoscaler evaluates", LIMIT, async || {
        let looks = engine.looks.load(Ordering::Relaxed) - before;
        ensure!(looks > 40, "the clock was read {looks} times");
        Ok(Some(()))
    })
    .await?;
    assert_eq!(
        engine.value("orkestra_autoscale_overrides_total", "demo")?,
        0
    );
    assert_eq!(engine.value("orkestra_workers_active", "demo")?, 1);
    Ok(())
}

/// Fills the queue of the other operator as well, and waits until all added workers are busy.
async fn more_workers_are_at_work(scenario: &Scenario, engine: &Engine) -> Result<()> {
    for number in 0..5 {
        let pond = format!("pond-{number}");
        waters::pond(scenario, &pond, &json!({ "colour": "green" })).await?;
    }
    let scaled = engine
        .until("demo", "has more workers", |status| status.workers == 12)
        .await?;
    assert_eq!((scaled.queue_max_depth, scaled.autoscaled), (1000, true));
    scenario
        .operator_reports(
            "sample",
            "demo",
            &json!({ "workers": 12, "state": "Running" }),
        )
        .await?;
    eventually("all twelve workers are busy", LIMIT, async || {
        let active = engine.value("orkestra_workers_active", "demo")?;
        ensure!(active == 12, "{active} are busy");
        Ok(Some(()))
    })
    .await?;
    assert_eq!(
        engine.value("orkestra_workers", "db")?,
        2,
        "operator `db` has no autoscaler"
    );
    Ok(())
}

/// Unblocks all passes, and checks that the operator returns to its declared capacity.
async fn the_declared_capacity_is_restored(scenario: &Scenario, engine: &Engine) -> Result<()> {
    // The declared capacity is restored once the queue is empty and the cooldown is over.
    engine.sluice.0.shut(&[]);
    for number in 0..DEMOS {
        let name = format!("demo-{number}");
        seed::demos(scenario).until_ready(&name).await?;
    }
    let restored = engine
        .until("demo", "has its own capacity", |status| !status.autoscaled)
        .await?;
    assert_eq!((restored.workers, restored.queue_max_depth), (1, 20));
    for (series, value) in [
        ("orkestra_autoscale_overrides_total", 1),
        ("orkestra_autoscale_restores_total", 1),
        ("orkestra_autoscale_override_active", 0),
    ] {
        assert_eq!(engine.value(series, "demo")?, value, "{series}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shorter_resync_counts_while_it_is_asked_for_and_the_declared_one_again_afterwards()
-> Result<()> {
    let mut scenario = Scenario::new("scaleresync").await?;
    let katalog = input("autoscale/resync.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    let engine = Engine::start(&scenario)?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::lake(&scenario, "deep", &json!({})).await?;
    scenario.objects("lakes").until_ready("deep").await?;
    // A pass that is already due still runs.
    let rests = async || {
        until_unchanged("the lake has no passes", QUIET, async || {
            engine.passes("lake")
        })
        .await
    };
    rests().await?;

    engine.sluice.0.shut(&["pond"]);
    for number in 0..4 {
        waters::pond(&scenario, &format!("pond-{number}"), &json!({})).await?;
    }
    let scaled = engine.until("lake", "is scaled", |status| status.autoscaled);
    assert_eq!(scaled.await?.workers, 1, "`do` sets no workers");
    let passes = engine.passes("lake")?;
    eventually("the lake is reconciled repeatedly", LIMIT, async || {
        Ok((engine.passes("lake")? >= passes + 4).then_some(()))
    })
    .await?;

    engine.sluice.0.shut(&[]);
    engine
        .until("lake", "has its own capacity", |status| !status.autoscaled)
        .await?;
    scenario.objects("ponds").until_ready("pond-3").await?;
    rests().await?;
    engine.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_gets_more_and_fewer_pods_by_conditions_and_keeps_them_over_a_restart()
-> Result<()> {
    let crds = ["kinds/crds.yaml"];
    let mut scenario = Scenario::running("pods", &crds, "autoscale/pumps.yaml").await?;
    let (ponds, pumps) = (scenario.objects("ponds"), scenario.objects("deployments"));
    let until = async |pods: u64| {
        pumps
            .until_equal("north-pump", "/spec/replicas", json!(pods), LIMIT)
            .await
    };
    waters::pond(&scenario, "north", &json!({ "load": 50 })).await?;
    until(2).await?;
    // Two steps. The second follows when the cooldown is over, without an event or a resync.
    ponds
        .patch("north", &json!({ "spec": { "load": 90 } }))
        .await?;
    until(4).await?;
    until(5).await?;
    // Within the bounds, others may set the count once the operator has seen that the load requires no more pods.
    ponds
        .patch("north", &json!({ "spec": { "load": 50 } }))
        .await?;
    ponds
        .until("north", "is observed", LIMIT, is_observed)
        .await?;
    scenario.kubectl(&["scale", "deployment/north-pump", "--replicas=3"])?;
    // Drift of another field is corrected, and the count is left alone.
    let image = "/spec/template/spec/containers/0/image";
    let declared = json!("registry.example/pump:1");
    let name = pumps.fetch("north-pump").await?;
    let name = &name.pointer("/spec/template/spec/containers/0/name");
    let containers = json!([{ "name": name, "image": "registry.example/other:1" }]);
    let other = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let changed = pumps.patch("north-pump", &other).await?;
    let generation = changed["metadata"]["generation"].as_i64();
    pumps
        .until("north-pump", "is corrected", LIMIT, |pump| {
            pump["metadata"]["generation"].as_i64() > generation
                && pump.pointer(image) == Some(&declared)
        })
        .await?;
    until(3).await?;

    scenario.terminate()?;
    scenario.start().await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::ensure_no_writes(&scenario).await?;
    until(3).await?;
    ponds
        .patch("north", &json!({ "spec": { "load": 10 } }))
        .await?;
    until(1).await?;
    Ok(())
}
