//! The faults and their order: two decks, one of the control plane and the network, one of the controllers. Each is shuffled with
//! the seed and dealt until the time is up, and at least once in full.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use orkestra_ground::tasks::Task;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use testbed::{Cut, Faults, Proxy};

use super::controllers::Controller;
use super::rights;
use crate::private::Private;
use crate::scenario::{Objects, pause};

/// The faults that are always active.
pub(crate) const WEATHER: Faults = Faults {
    too_many: 10,
    internal: 10,
    unreached: 5,
    hung: 1,
    lost: 15,
    torn: 5,
    late: 40,
    expired: 10,
    short: 60,
};
/// The faults during a storm.
const STORM: Faults = Faults {
    too_many: 150,
    internal: 120,
    unreached: 60,
    hung: 10,
    lost: 120,
    torn: 60,
    late: 150,
    expired: 100,
    short: 300,
};

/// The name of the Lease that controllers compete for; its namespace follows.
pub(crate) const LEASE: &str = "orkestra";
pub(crate) const LEASE_NAMESPACE: &str = "orkestra-system";
/// The time for which the test retries to take the Lease, as the API server may be unreachable.
const STEALTH: Duration = Duration::from_mins(2);

/// A log of events, printed when the test fails.
pub(crate) struct Diary {
    began: Instant,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Diary {
    /// Returns an empty diary, whose time starts now.
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            counts: Mutex::default(),
        }
    }

    fn note(&self, what: &'static str, detail: &str) {
        let mut counts = self.counts.lock();
        *counts.entry(what).or_default() += 1;
        drop(counts);
        self.say(&format!("{what}{detail}"));
    }

    /// Prints a line with its time.
    pub(crate) fn say(&self, line: &str) {
        println!("{:7.1} s  {line}", self.began.elapsed().as_secs_f64());
    }

    /// Returns the number of events, by name.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let counts = &self.counts;
        counts.lock().clone()
    }
}

/// A deck of faults with its random number generator.
struct Deck<F: 'static> {
    all: &'static [F],
    left: Vec<F>,
    dealt: usize,
    dice: StdRng,
    until: Instant,
}

impl<F: Copy> Deck<F> {
    fn new(all: &'static [F], seed: u64, until: Instant) -> Self {
        Self {
            all,
            left: Vec::new(),
            dealt: 0,
            dice: StdRng::seed_from_u64(seed),
            until,
        }
    }

    /// Returns the next fault, or `None` when the time is up and each fault was dealt.
    fn deal(&mut self) -> Option<F> {
        if self.dealt >= self.all.len() && Instant::now() >= self.until {
            return None;
        }
        if self.left.is_empty() {
            self.left = self.all.to_vec();
            self.left.shuffle(&mut self.dice);
        }
        self.dealt += 1;
        self.left.pop()
    }

    /// Returns a random time between two numbers of milliseconds.
    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.dice.random_range(least..most))
    }
}

#[derive(Clone, Copy)]
enum Outage {
    RestartApiServer,
    PauseEtcd,
    CutWatches(Cut),
    StallWatches,
    Partition,
    Storm,
    TakeRights,
}

const OUTAGES: [Outage; 8] = [
    Outage::RestartApiServer,
    Outage::PauseEtcd,
    Outage::CutWatches(Cut::Ended),
    Outage::CutWatches(Cut::Broken),
    Outage::StallWatches,
    Outage::Partition,
    Outage::Storm,
    Outage::TakeRights,
];

/// Applies faults to the control plane and the network, one after the other. At the end none is active.
pub(crate) async fn break_cluster(
    private: Arc<Private>,
    proxies: Vec<Arc<Proxy>>,
    (seed, until): (u64, Instant),
    diary: Arc<Diary>,
) -> Result<()> {
    let mut deck = Deck::new(&OUTAGES, seed, until);
    while let Some(outage) = deck.deal() {
        let time = deck.between(1000, 6000);
        let proxy = &proxies[deck.dice.random_range(0..proxies.len())];
        match outage {
            Outage::RestartApiServer => restart_api_server(&private, time, &diary).await?,
            Outage::PauseEtcd => {
                diary.note("etcd paused", &format!(" for {time:?}"));
                private.cluster.pause_etcd(true)?;
                pause(time).await;
                private.cluster.pause_etcd(false)?;
            }
            Outage::CutWatches(how) => {
                diary.note("watches cut", &format!(": {how:?}"));
                for proxy in &proxies {
                    proxy.cut_watches(how);
                }
            }
            Outage::StallWatches => {
                diary.note("watches stall", &format!(" for {time:?}"));
                proxy.stall_watches(true);
                pause(time).await;
                proxy.stall_watches(false);
            }
            Outage::Partition => {
                diary.note("partition", &format!(" for {:?}", time * 2));
                proxy.partition(true);
                pause(time * 2).await;
                proxy.partition(false);
            }
            Outage::Storm => {
                diary.note("storm", &format!(" for {:?}", time * 2));
                proxy.set(STORM);
                pause(time * 2).await;
                proxy.set(WEATHER);
            }
            Outage::TakeRights => take_rights(&private, time / 4, &diary).await?,
        }
        private.cluster.check()?;
        pause(deck.between(500, 3000)).await;
    }
    Ok(())
}

/// Kills the API server and restarts it after that time.
async fn restart_api_server(private: &Arc<Private>, time: Duration, diary: &Diary) -> Result<()> {
    diary.note("API server killed", &format!(" for {time:?}"));
    blocking(private, |private| private.cluster.stop_api_server()).await?;
    pause(time).await;
    // The garbage collector treats kinds that were not served yet as removed, until it discovers them again.
    blocking(private, |private| {
        private.cluster.start_api_server()?;
        private.cluster.relearn_kinds()
    })
    .await?;
    diary.say("API server is back");
    Ok(())
}

/// Removes each rule of each role of `ork` in turn for that time, and restores it.
async fn take_rights(private: &Private, time: Duration, diary: &Diary) -> Result<()> {
    for (role, rules) in rights::granted(private).await? {
        for taken in 0..rules.len() {
            let mut fewer = rules.clone();
            let rule = fewer.remove(taken);
            let detail = format!(" by {role} for {time:?}: {rule}");
            diary.note("permissions taken", &detail);
            // This also restores the rule that was removed before.
            rights::grant(private, &role, &fewer).await?;
            pause(time).await;
        }
        rights::grant(private, &role, &rules).await?;
    }
    Ok(())
}

/// Runs a blocking function on a thread for blocking work.
async fn blocking(
    private: &Arc<Private>,
    what: impl FnOnce(&Private) -> Result<()> + Send + 'static,
) -> Result<()> {
    let private = private.clone();
    tokio::task::spawn_blocking(move || what(&private))
        .await
        .context("the blocking function panicked")?
}

#[derive(Clone, Copy)]
enum Blow {
    Kill,
    KillSoon,
    Terminate,
    Pause,
    StealLease,
    EndTask,
}

/// The tasks that are ended; those listed twice, of operators, are ended more often. `Release` is not listed: the Katalog keeps
/// its kinds.
const TASKS: [Task; 22] = [
    Task::Driver,
    Task::Driver,
    Task::OperatorRestart,
    Task::OperatorStop,
    Task::Publisher,
    Task::Waiter,
    Task::Autoscaler,
    Task::Worker,
    Task::Worker,
    Task::Watch,
    Task::Watch,
    Task::Katalog,
    Task::Feed,
    Task::Motifs,
    Task::Duty,
    Task::Claims,
    Task::Elector,
    Task::LeaseWatcher,
    Task::Probe,
    Task::EventSender,
    Task::Connection,
    Task::Signals,
];
/// The number of tasks that one `EndTask` ends.
const TASKS_AT_ONCE: usize = 3;

const BLOWS: [Blow; 7] = [
    Blow::Kill,
    Blow::KillSoon,
    Blow::Terminate,
    Blow::Pause,
    Blow::StealLease,
    Blow::EndTask,
    Blow::EndTask,
];

/// Applies faults to the controllers, one after the other. At the end all run.
pub(crate) async fn break_controllers(
    mut controllers: Vec<Controller>,
    leases: Objects,
    (seed, until): (u64, Instant),
    diary: Arc<Diary>,
) -> Result<Vec<Controller>> {
    let mut deck = Deck::new(&BLOWS, seed, until);
    while let Some(blow) = deck.deal() {
        pause(deck.between(2000, 8000)).await;
        for controller in &mut controllers {
            controller.ensure_runs()?;
        }
        let which = deck.dice.random_range(0..controllers.len());
        let controller = &mut controllers[which];
        let time = deck.between(100, 3000);
        match blow {
            Blow::Kill => {
                diary.note("controller killed", &format!(": {which}, for {time:?}"));
                controller.kill()?;
                pause(time).await;
            }
            Blow::KillSoon => {
                let detail = format!(": {which}, and again after {time:?}");
                diary.note("controller killed", &detail);
                controller.kill()?;
                controller.ensure_runs()?;
                // The second kill comes at any time between the start, with empty caches, and the middle of the work.
                pause(time).await;
                controller.kill()?;
            }
            Blow::Terminate => {
                diary.note("controller terminated", &format!(": {which}"));
                controller.terminate()?;
                pause(time).await;
            }
            Blow::Pause => {
                let detail = format!(": {which}, for {:?}", time * 4);
                diary.note("controller paused", &detail);
                controller.pause(true)?;
                pause(time * 4).await;
                controller.pause(false)?;
            }
            Blow::StealLease => {
                diary.note("lease stolen", &steal(&leases).await?);
            }
            Blow::EndTask => {
                for _ in 0..TASKS_AT_ONCE {
                    let task = TASKS[deck.dice.random_range(0..TASKS.len())];
                    diary.note("task ended", &format!(": {} of {which}", task.name()));
                    controller.end_task(task)?;
                    pause(time / 4).await;
                }
            }
        }
        controller.ensure_runs()?;
    }
    Ok(controllers)
}

/// Takes the Lease for a holder that never renews it; returns the previous holder. Retries while the API server is unreachable.
async fn steal(leases: &Objects) -> Result<String> {
    let until = Instant::now() + STEALTH;
    loop {
        match take(leases).await {
            Err(_) if Instant::now() < until => pause(Duration::from_millis(200)).await,
            taken => return taken,
        }
    }
}

async fn take(leases: &Objects) -> Result<String> {
    let lease = leases.fetch(LEASE).await?;
    let now = MicroTime(Timestamp::now());
    let spec = json!({ "holderIdentity": "a-stranger", "acquireTime": now, "renewTime": now });
    leases.patch(LEASE, &json!({ "spec": spec })).await?;
    Ok(format!(" from {}", lease["spec"]["holderIdentity"]))
}
