//! Panics and exhausted budgets: the failure of one reconcile pass affects no other pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use orkestra_cluster::client::flow::Flow;
use orkestra_controller::{Feed, FileError, Namespaces, Runtime};
use orkestra_ground::Clock;
use orkestra_operator::context::{Context, Faults};
use orkestra_operator::metrics::Metrics;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use testbed::eventually;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::scenario::{LIMIT, Scenario, condition, input};
use crate::waters;

/// The maximum time that the controller's writes may take to finish after a shutdown.
const END: Duration = Duration::from_secs(25);

/// The engine of `ork controller`, run in the test process so that a test can inject faults or a clock.
pub(crate) struct Engine {
    metrics: Metrics,
    shutdown: CancellationToken,
    run: JoinHandle<Result<bool, FileError>>,
}

impl Engine {
    /// Starts the engine. `prepare` changes its context before the start.
    pub(crate) fn start(scenario: &Scenario, prepare: impl FnOnce(&mut Context)) -> Result<Self> {
        let mut context = Context::new(scenario.identity.client()?, &Flow::new(|| 0.0))?;
        prepare(&mut context);
        let metrics = context.metrics.clone();
        let shutdown = CancellationToken::new();
        let runtime = Runtime::new(Arc::new(context));
        let feed = Feed::Cluster(Namespaces::Some(vec![scenario.namespace.clone()]));
        let run = tokio::spawn(runtime.run(feed, shutdown.clone(), END));
        Ok(Self {
            metrics,
            shutdown,
            run,
        })
    }

    /// Returns the number of panics in reconcile passes of an operator.
    fn panics(&self, operator: &str) -> Result<u64> {
        let text: String = self.metrics.parts().collect::<Result<_, _>>()?;
        let label = format!("crd=\"{operator}\"");
        let series = text
            .lines()
            .find(|line| line.starts_with("orkestra_panics_total{") && line.contains(&label));
        let value = series
            .and_then(|line| line.rsplit(' ').next())
            .with_context(|| format!("no series of panics for {operator} in\n{text}"))?;
        Ok(value.parse()?)
    }

    /// Stops the engine as SIGTERM stops the process.
    pub(crate) async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        ensure!(self.run.await??, "a write did not finish in time");
        Ok(())
    }
}

/// The start times of reconcile passes, by the clock that the context has.
#[derive(Clone, Default)]
pub(crate) struct Moments(Arc<Mutex<Vec<Timestamp>>>);

impl Moments {
    /// Sets the clock of `context`, and records the start time of each pass.
    pub(crate) fn note(&self, context: &mut Context, clock: Clock) {
        let moments = self.clone();
        context.clock = clock.clone();
        context.faults = Faults::before_pass(move |_, _| moments.all().push(clock.now()));
    }

    /// Returns the delay between `due` and the first pass that began at or after it.
    pub(crate) fn late(&self, due: Timestamp) -> Option<SignedDuration> {
        let since = |moment: &Timestamp| moment.duration_since(due);
        let late = self.all().iter().map(since).collect::<Vec<_>>();
        late.into_iter().filter(|late| !late.is_negative()).min()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Timestamp>> {
        self.0.lock()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_panic_in_one_operators_pass_is_counted_and_everything_else_continues()
-> Result<()> {
    let mut scenario = Scenario::new("panic").await?;
    let katalog = input("panic/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    let armed = Arc::new(AtomicBool::new(true));
    let fuse = Arc::clone(&armed);
    let faults = Faults::before_pass(move |operator, key| {
        let is_meant = operator == "pond" && &*key.name == "doomed";
        assert!(
            !(is_meant && fuse.load(Ordering::SeqCst)),
            "a fault on purpose"
        );
    });
    let engine = Engine::start(&scenario, |context| context.faults = faults)?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let maps = scenario.objects("configmaps");

    waters::pond(&scenario, "doomed", &json!({ "colour": "red" })).await?;
    eventually("the pass is retried and panics again", LIMIT, async || {
        Ok((engine.panics("pond")? >= 3).then_some(()))
    })
    .await?;
    waters::pond(&scenario, "sound", &json!({ "colour": "green" })).await?;
    waters::lake(&scenario, "doomed", &json!({ "colour": "blue" })).await?;
    scenario.objects("ponds").until_ready("sound").await?;
    scenario.objects("lakes").until_ready("doomed").await?;
    maps.until_equal("sound-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    maps.until_equal("doomed-lake", "/data/colour", json!("blue"), LIMIT)
        .await?;
    // The other resources still react to changes.
    scenario
        .objects("ponds")
        .patch("sound", &json!({ "spec": { "colour": "brown" } }))
        .await?;
    maps.until_equal("sound-pond", "/data/colour", json!("brown"), LIMIT)
        .await?;
    assert_eq!(engine.panics("lake")?, 0);
    assert_eq!(
        maps.get("doomed-pond").await?,
        None,
        "a pass that panics at its start creates no child"
    );

    armed.store(false, Ordering::SeqCst);
    scenario.objects("ponds").until_ready("doomed").await?;
    maps.until_equal("doomed-pond", "/data/colour", json!("red"), LIMIT)
        .await?;
    assert!(!engine.run.is_finished(), "the engine stopped");
    engine.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_exhausts_its_budget_fails_its_resource_alone() -> Result<()> {
    let mut scenario = Scenario::new("budget").await?;
    let katalog = input("panic/budget.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));

    // The template takes 64 million steps for 400 fish, and 27 for 3.
    waters::pond(&scenario, "crowded", &json!({ "fish": vec![1; 400] })).await?;
    waters::pond(&scenario, "calm", &json!({ "fish": [1, 1, 1] })).await?;
    ponds.until_ready("calm").await?;
    maps.until_equal("calm-pond", "/data/fish", json!("o".repeat(27)), LIMIT)
        .await?;
    let is_exhausted = |pond: &Value| {
        condition(pond, "Ready")
            .is_some_and(|ready| ready["status"] == "False" && ready["reason"] == "BudgetExhausted")
    };
    let crowded = ponds
        .until(
            "crowded",
            "is Ready=False for BudgetExhausted",
            LIMIT,
            is_exhausted,
        )
        .await?;
    ensure!(
        condition(&crowded, "Stalled").is_some(),
        "`Stalled` is not set, although only a change of the resource can help: {}",
        crowded["status"]
    );
    assert_eq!(maps.get("crowded-pond").await?, None);
    // There is no retry loop, and the other resources are not delayed. Only passes of this resource fail; the writes of its own
    // finalizer and status may trigger one more pass.
    scenario.until_at_rest("pond").await?;
    ponds
        .patch("calm", &json!({ "spec": { "fish": [1] } }))
        .await?;
    maps.until_equal("calm-pond", "/data/fish", json!("o"), LIMIT)
        .await?;
    ponds
        .patch("crowded", &json!({ "spec": { "fish": [1, 1] } }))
        .await?;
    ponds.until_ready("crowded").await?;
    maps.until_equal("crowded-pond", "/data/fish", json!("o".repeat(8)), LIMIT)
        .await?;
    scenario.check_running()
}
