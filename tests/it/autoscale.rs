//! The capacity of operators by conditions: `autoscale`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use orkestra::meta::{Directory, Feed, FileError, Namespaces, OperatorView, Runtime};
use orkestra::metrics::Metrics;
use orkestra::runtime::OperatorStatus;
use orkestra::runtime::context::{Context, Faults};
use orkestra_cluster::client::flow::Flow;
use parking_lot::{Condvar, Mutex};
use serde_json::json;
use testbed::eventually;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::scenario::{LIMIT, Scenario, input, is_observed};
use crate::{seed, waters};

/// How long nothing must happen.
const QUIET: Duration = Duration::from_secs(2);

/// Demos that are made: with twelve workers at work, more than three still wait.
const DEMOS: usize = 17;

/// The sample, with times and numbers that a test can wait for, for an operator that has one worker; and the other operator,
/// which the sample reads.
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

/// A gate in front of every pass: while it is shut, passes that begin wait, and their workers are busy.
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

    /// Waits until passes of that operator may go on.
    fn pass(&self, operator: &str) {
        let mut shut = self.shut.lock();
        let waits = |shut: &mut Vec<&str>| shut.contains(&operator);
        self.opened.wait_while(&mut shut, waits);
    }
}

/// Holds the sluice; a test that fails leaves it open, or its passes would never end.
struct Keeper(Arc<Sluice>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.shut(&[]);
    }
}

/// The engine of `ork controller`, in this process, so that passes can be held up.
struct Engine {
    metrics: Metrics,
    directory: Directory,
    sluice: Keeper,
    shutdown: CancellationToken,
    run: JoinHandle<Result<bool, FileError>>,
}

impl Engine {
    fn start(scenario: &Scenario) -> Result<Self> {
        let sluice = Arc::new(Sluice::default());
        let mut context = Context::new(scenario.identity.client()?, &Flow::new(|| 0.0))?;
        let before = sluice.clone();
        context.faults = Faults::before_pass(move |operator, _| {
            // The runtime's other tasks go on meanwhile.
            tokio::task::block_in_place(|| before.pass(operator));
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
            shutdown,
            run,
        })
    }

    fn operator(&self, name: &str) -> Option<OperatorView> {
        let katalogs = self.directory.katalogs();
        katalogs.iter().find_map(|one| one.operator(name).cloned())
    }

    /// Waits until the operator says that of itself.
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
            ensure!(wanted(&status), "it says {status:?}");
            Ok(Some(status))
        })
        .await
    }

    /// The value of an operator's series.
    fn value(&self, series: &str, operator: &str) -> Result<u64> {
        let text: String = self.metrics.parts().collect::<Result<_, _>>()?;
        let label = format!("crd=\"{operator}\"");
        let is_it = |line: &&str| line.starts_with(&format!("{series}{{")) && line.contains(&label);
        let line = text.lines().find(is_it).unwrap_or_default();
        Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
    }

    /// How many passes of an operator have ended.
    fn passes(&self, operator: &str) -> Result<u64> {
        self.value("orkestra_reconcile_duration_seconds_count", operator)
    }

    async fn stop(self) -> Result<()> {
        drop(self.sluice);
        self.shutdown.cancel();
        ensure!(self.run.await??, "a write has not ended in time");
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

/// Checks that the operator keeps its one worker while its own queue is long and the other operator has nothing to do.
async fn a_queue_of_its_own_is_not_enough(scenario: &Scenario, engine: &Engine) -> Result<()> {
    // One worker stands in a pass, and the other Demos wait for it; that alone is not enough.
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
    tokio::time::sleep(QUIET).await;
    assert_eq!(
        engine.value("orkestra_autoscale_overrides_total", "demo")?,
        0
    );
    assert_eq!(engine.value("orkestra_workers_active", "demo")?, 1);
    Ok(())
}

/// Gives the other operator too much to do as well, and waits until all added workers are busy.
async fn more_workers_are_at_work(scenario: &Scenario, engine: &Engine) -> Result<()> {
    // Now the other operator has too much to do as well.
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
    eventually("all twelve are at work", LIMIT, async || {
        let active = engine.value("orkestra_workers_active", "demo")?;
        ensure!(active == 12, "{active} are");
        Ok(Some(()))
    })
    .await?;
    assert_eq!(
        engine.value("orkestra_workers", "db")?,
        2,
        "the other has no autoscaler"
    );
    Ok(())
}

/// Lets all passes go on, and checks that the operator returns to the capacity that it declares.
async fn the_declared_capacity_is_restored(scenario: &Scenario, engine: &Engine) -> Result<()> {
    // The work is done, and after a while everything is as declared.
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
    // What was due is still looked at once.
    let rests = async || {
        eventually("the lake is left alone", LIMIT, async || {
            let passes = engine.passes("lake")?;
            tokio::time::sleep(QUIET).await;
            Ok((engine.passes("lake")? == passes).then_some(()))
        })
        .await
    };
    rests().await?;

    engine.sluice.0.shut(&["pond"]);
    for number in 0..4 {
        waters::pond(&scenario, &format!("pond-{number}"), &json!({})).await?;
    }
    let scaled = engine.until("lake", "is scaled", |status| status.autoscaled);
    assert_eq!(scaled.await?.workers, 1, "nothing is said of workers");
    let passes = engine.passes("lake")?;
    eventually("the lake is looked at again and again", LIMIT, async || {
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
    // Two steps, the second of them when the cooldown is over: no event and no resync leads to it.
    ponds
        .patch("north", &json!({ "spec": { "load": 90 } }))
        .await?;
    until(4).await?;
    until(5).await?;
    // Within the bounds others may set the count, once the operator has seen that the load asks for no more.
    ponds
        .patch("north", &json!({ "spec": { "load": 50 } }))
        .await?;
    ponds
        .until("north", "is observed", LIMIT, is_observed)
        .await?;
    scenario.kubectl(&["scale", "deployment/north-pump", "--replicas=3"])?;
    tokio::time::sleep(QUIET).await;
    until(3).await?;

    scenario.terminate()?;
    scenario.start().await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::until_counted(&scenario).await?;
    waters::ensure_no_writes(&scenario, QUIET).await?;
    until(3).await?;
    ponds
        .patch("north", &json!({ "spec": { "load": 10 } }))
        .await?;
    until(1).await?;
    Ok(())
}
