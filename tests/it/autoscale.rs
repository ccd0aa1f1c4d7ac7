//! The capacity of operators by conditions: `autoscale`.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use orkestra::meta::{Directory, Feed, FileError, Namespaces, OperatorView, Runtime};
use orkestra::metrics::Metrics;
use orkestra::runtime::OperatorStatus;
use orkestra::runtime::context::{Context, Faults};
use serde_json::json;
use testbed::eventually;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

/// How long nothing must happen.
const QUIET: Duration = Duration::from_secs(2);

/// A gate in front of every pass: while it is shut, passes that begin wait, and their workers are busy.
#[derive(Default)]
struct Sluice {
    shut: Mutex<Vec<&'static str>>,
    opened: Condvar,
}

impl Sluice {
    fn shut(&self, operators: &[&'static str]) {
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = operators.to_vec();
        self.opened.notify_all();
    }

    /// Waits until passes of that operator may go on.
    fn pass(&self, operator: &str) {
        let shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |shut: &mut Vec<&str>| shut.contains(&operator);
        drop(self.opened.wait_while(shut, waits));
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
    run: JoinHandle<Result<(), FileError>>,
}

impl Engine {
    fn start(scenario: &Scenario) -> Result<Self> {
        let sluice = Arc::new(Sluice::default());
        let mut context = Context::new(scenario.identity.client()?)?;
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
        let run = tokio::spawn(runtime.run(feed, shutdown.clone()));
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
        let text = self.metrics.encode()?;
        let label = format!("crd=\"{operator}\"");
        let is_it = |line: &&str| line.starts_with(&format!("{series}{{")) && line.contains(&label);
        let line = text.lines().find(is_it).unwrap_or_default();
        Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
    }

    async fn stop(self) -> Result<()> {
        drop(self.sluice);
        self.shutdown.cancel();
        Ok(self.run.await??)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
async fn an_operator_gets_more_workers_while_it_and_another_have_too_much_to_do() -> Result<()> {
    let mut scenario = Scenario::new("scale").await?;
    let katalog = input("autoscale/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    let engine = Engine::start(&scenario)?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let calm = engine
        .until("lake", "has its worker", |status| status.workers == 1)
        .await?;
    assert_eq!((calm.queue_max_depth, calm.autoscaled), (20, false));

    // One worker stands in a pass, and five lakes wait for it; that alone is not enough.
    engine.sluice.0.shut(&["lake", "db"]);
    for number in 0..6 {
        let lake = format!("lake-{number}");
        waters::lake(&scenario, &lake, &json!({ "colour": "blue" })).await?;
    }
    engine
        .until("lake", "has a queue", |status| status.queue_depth == 5)
        .await?;
    tokio::time::sleep(QUIET).await;
    assert_eq!(
        engine.value("orkestra_autoscale_overrides_total", "lake")?,
        0
    );
    assert_eq!(engine.value("orkestra_workers_active", "lake")?, 1);

    // Now the other operator has too much to do as well.
    for number in 0..5 {
        let pond = format!("pond-{number}");
        waters::pond(&scenario, &pond, &json!({ "colour": "green" })).await?;
    }
    let scaled = engine
        .until("lake", "has more workers", |status| status.workers == 5)
        .await?;
    assert_eq!((scaled.queue_max_depth, scaled.autoscaled), (100, true));
    scenario
        .operator_tells(
            "waters",
            "lake",
            &json!({ "workers": 5, "state": "Running" }),
        )
        .await?;
    eventually("all five are at work", LIMIT, async || {
        let active = engine.value("orkestra_workers_active", "lake")?;
        ensure!(active == 5, "{active} are");
        Ok(Some(()))
    })
    .await?;
    assert_eq!(
        engine.value("orkestra_workers", "db")?,
        2,
        "the other has no autoscaler"
    );

    // The work is done, and after a while everything is as declared.
    engine.sluice.0.shut(&[]);
    for number in 0..6 {
        let lake = format!("lake-{number}");
        scenario.objects("lakes").until_ready(&lake).await?;
    }
    let restored = engine
        .until("lake", "has its own capacity", |status| !status.autoscaled)
        .await?;
    assert_eq!((restored.workers, restored.queue_max_depth), (1, 20));
    for (series, value) in [
        ("orkestra_autoscale_overrides_total", 1),
        ("orkestra_autoscale_restores_total", 1),
        ("orkestra_autoscale_override_active", 0),
    ] {
        assert_eq!(engine.value(series, "lake")?, value, "{series}");
    }
    engine.stop().await
}
