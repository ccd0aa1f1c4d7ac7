//! Chaos: all kinds of faults at once, while users change resources; afterwards everything is as declared.
//!
//! ```text
//!  users (churn) ──────────────────────────────────────────┐
//!                                                          ▼
//!  ork controller ──► proxy: refuses, loses, hangs, cuts ──► API server, killed ──► etcd, paused
//!    killed, paused, its Lease taken, tasks ended,         ▲
//!    permissions removed                                   │
//!  hostile tenant ─────────────────────────────────────────┤
//!  history: all Jobs and passwords that ever existed ──────┘
//! ```
//!
//! `CHAOS_SECONDS` sets the duration, `CHAOS_SEED` the seed, and `CHAOS_LOGS` a folder to which all logs are copied. The seed
//! determines the faults and their order, but not the timing, which depends on the machine.

mod churn;
mod controllers;
mod history;
mod rights;
mod schedule;
mod tenant;
mod verdict;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testbed::{Faults, Options, eventually};

use self::churn::{Churn, Place};
use self::controllers::Controller;
use self::history::History;
use self::schedule::{Diary, LEASE_NAMESPACE, WEATHER, break_cluster, break_controllers};
use self::tenant::Tenant;
use crate::private::Private;
use crate::scenario::{LIMIT, Objects, until_no_writes};
use crate::waters;

const GROUP: &str = "chaos.example.org";
/// The default duration, as CI runs it.
const SECONDS: u64 = 90;
/// The default seed, as CI runs it.
const SEED: u64 = 6;
/// The number of controller processes.
const CONTROLLERS: u64 = 2;
/// The limit for convergence after the faults: a request that hangs takes 30 s, and the scheduler and the simulated node wait for
/// up to a minute each before they list the objects that they missed.
const CONVERGED: Duration = Duration::from_mins(5);
/// The time in which nothing may be written.
const QUIET: Duration = Duration::from_secs(8);

fn variable(name: &str, default: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}={text}")),
        Err(_) => Ok(default),
    }
}

/// The control plane, the controllers and the history.
struct Chaos {
    private: Arc<Private>,
    far: String,
    place: Place,
    controllers: Vec<Controller>,
    history: History,
    /// Ponds and `ConfigMaps` in the namespace of the hostile tenant.
    hostile: (Objects, Objects),
    diary: Arc<Diary>,
    /// The administrator's client, with short timeouts and without retries.
    client: kube::Client,
}

impl Chaos {
    /// Starts a control plane with the Katalog, and the controllers behind their proxies.
    async fn start(seed: u64) -> Result<Self> {
        let options = Options {
            nodes: true,
            ..Options::default()
        };
        let private = Private::start(options, GROUP)?;
        let far = waters::second_namespace(&private.client).await?;
        let katalog = waters::filled("chaos/katalog.yaml", "FAR", &far)?.replace("GROUP", GROUP);
        private.prepare(&katalog)?;
        let mut config = private.cluster.admin().config()?;
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(2));
        config.read_timeout = Some(Duration::from_secs(5));
        let client = kube::Client::try_from(config)?;
        let place = place(&private, &client, &far, katalog);
        let theirs = testbed::namespace(&private.client, "tenant").await?;
        let hostile =
            ["ponds", "configmaps"].map(|plural| private.objects(&client, &theirs, plural));
        let mut controllers = Vec::new();
        for index in 0..CONTROLLERS {
            let proxy = private.cluster.proxy(&private.identity, seed + index);
            let log = private.cluster.folder().join(format!("ork-{index}.log"));
            controllers.push(Controller::new(proxy.await?, log));
        }
        for controller in &mut controllers {
            controller.ensure_runs()?;
        }
        let history = History::start(&private.client, "default");
        private.apply(&place.katalog_text(0))?;
        let chaos = Self {
            private: Arc::new(private),
            far,
            place,
            controllers,
            history,
            hostile: hostile.into(),
            diary: Arc::new(Diary::new()),
            client,
        };
        let ready = |katalog: &serde_json::Value| {
            let ready = crate::scenario::condition(katalog, "Ready");
            ready.is_some_and(|ready| ready["status"] == "True")
        };
        let katalogs = &chaos.place.katalogs;
        katalogs.until("waters", "is ready", LIMIT, ready).await?;
        Ok(chaos)
    }

    /// Applies all faults for that time, and returns the users with the state that they want at the end.
    async fn rage(&mut self, seed: u64, time: Duration) -> Result<Churn> {
        let until = Instant::now() + time;
        let proxies: Vec<_> = self
            .controllers
            .iter()
            .map(|one| one.proxy.clone())
            .collect();
        for proxy in &proxies {
            proxy.set(WEATHER);
        }
        let (end, ended) = tokio::sync::watch::channel(false);
        let cluster = break_cluster(
            self.private.clone(),
            proxies.clone(),
            (seed + 1, until),
            self.diary.clone(),
        );
        let controllers = break_controllers(
            std::mem::take(&mut self.controllers),
            self.place.leases.clone(),
            (seed + 2, until),
            self.diary.clone(),
        );
        let raging = tokio::spawn(async move {
            let broken = tokio::join!(cluster, controllers);
            end.send_replace(true);
            broken
        });
        let tenant = Tenant::new(self.hostile.clone(), seed + 3).run(ended.clone());
        let churned = Churn::new(self.place.clone(), seed).run(ended);
        let (churned, tenant) = tokio::join!(churned, tenant);
        let (cluster, controllers) = raging.await?;
        for proxy in &proxies {
            proxy.set(Faults::default());
        }
        self.controllers = controllers?;
        cluster?;
        self.diary.say(&format!("tenant: {:?}", tenant.done));
        tenant.leave().await?;
        churned
    }

    /// Waits until everything is as the users wanted it.
    async fn converge(&mut self, churn: &Churn) -> Result<()> {
        let started = Instant::now();
        // The test judges how Orkestra recovers, not how Kubernetes' own controllers do.
        tokio::task::block_in_place(|| self.private.cluster.restart_controllers())?;
        let mut reported = 0;
        eventually("everything is as declared", CONVERGED, async || {
            for controller in &mut self.controllers {
                // A controller that has ended fails the test at once: a retry would not help.
                if let Err(error) = controller.ensure_runs() {
                    return Ok(Some(Err(error)));
                }
            }
            let place = (&self.place, &churn.wanted);
            let problems = verdict::problems(&self.client, &self.far, place).await?;
            if problems.len() != reported {
                reported = problems.len();
                self.diary
                    .say(&format!("{reported} things are not as declared"));
            }
            ensure!(problems.is_empty(), "{}", problems.join("\n"));
            Ok(Some(Ok(())))
        })
        .await??;
        let took = started.elapsed();
        self.diary.say(&format!("converged in {took:?}"));
        Ok(())
    }

    /// Waits until the controllers write nothing, and one of them leads with empty queues.
    async fn settle(&self) -> Result<()> {
        let private = &self.private;
        let writes_since = |mark| {
            let mut writes = private.cluster.audit_since(mark)?;
            writes.retain(|one| {
                one.user == private.identity.user()
                    && one.is_write()
                    && !matches!(one.resource.as_str(), "events" | "leases")
            });
            Ok(writes)
        };
        until_no_writes((QUIET, CONVERGED), || {
            let mark = private.cluster.mark()?;
            Ok(move || writes_since(mark))
        })
        .await?;
        eventually("an idle leader", LIMIT, async || {
            let problems = verdict::judge_pages(&self.controllers).await?;
            ensure!(problems.is_empty(), "{}", problems.join("\n"));
            Ok(Some(()))
        })
        .await
    }

    /// Deletes everything and waits until it is gone.
    async fn clear(&self) -> Result<()> {
        let path = |plural: &str| format!("/apis/{GROUP}/v1alpha1/namespaces/default/{plural}");
        for plural in ["ponds", "lakes"] {
            let objects = Objects::at(&self.client, &path(plural));
            for one in objects.list().await? {
                objects.delete(waters::text(&one, "/metadata/name")).await?;
            }
        }
        eventually("everything is gone", CONVERGED, async || {
            let left = verdict::judge_end(&self.client, &self.far).await?;
            ensure!(left.is_empty(), "{}", left.join("\n"));
            Ok(Some(()))
        })
        .await
    }
}

impl Drop for Chaos {
    /// Prints the end of the logs, which the test harness shows only if the test failed.
    fn drop(&mut self) {
        for controller in &self.controllers {
            println!("--- {:?}", controller.proxy.counts());
            let log = controller.log();
            let lines: Vec<_> = log.lines().collect();
            println!("--- the last of {} lines:", lines.len());
            println!("{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
        if let Some(folder) = std::env::var_os("CHAOS_LOGS").map(PathBuf::from) {
            let kept = keep_logs(self.private.cluster.folder(), &folder);
            println!("--- logs kept in {}: {kept:?}", folder.display());
        }
    }
}

/// Copies all logs in a control plane's folder.
fn keep_logs(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for folder in [from.to_owned(), from.join("logs")] {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if let (Some("log"), Some(name)) = (
                path.extension().and_then(|one| one.to_str()),
                path.file_name(),
            ) {
                std::fs::copy(&path, to.join(name))?;
            }
        }
    }
    Ok(())
}

fn place(private: &Private, client: &kube::Client, far: &str, katalog: String) -> Place {
    let near = |plural: &str| private.objects(client, "default", plural);
    Place {
        ponds: near("ponds"),
        lakes: near("lakes"),
        katalogs: near("katalogs"),
        maps: near("configmaps"),
        far: private.objects(client, far, "configmaps"),
        deployments: near("deployments"),
        jobs: near("jobs"),
        leases: private.objects(client, LEASE_NAMESPACE, "leases"),
        katalog,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_chaos_everything_is_as_declared_and_each_job_ran_once() -> Result<()> {
    let seed = variable("CHAOS_SEED", SEED)?;
    let time = Duration::from_secs(variable("CHAOS_SECONDS", SECONDS)?);
    println!("CHAOS_SEED={seed} CHAOS_SECONDS={}", time.as_secs());
    let mut chaos = Chaos::start(seed).await?;
    let churn = chaos.rage(seed, time).await?;
    let diary = chaos.diary.clone();
    diary.say(&format!("faults: {:?}", diary.counts()));
    diary.say(&format!("churn: {:?}", churn.done));
    chaos.converge(&churn).await?;
    chaos.settle().await?;
    let past = (&*chaos.private, &chaos.place);
    let past = verdict::judge_history(past, &chaos.history, &churn.made).await?;
    ensure!(past.is_empty(), "{}", past.join("\n"));
    chaos.clear().await?;
    for controller in &mut chaos.controllers {
        let panics = controller.panics();
        ensure!(panics.is_empty(), "{}", panics.join("\n"));
        controller.terminate()?;
    }
    Ok(())
}
