//! The long-running process that `ork controller` and `ork run` share. It runs until a signal stops it.
//!
//! ```text
//!  ports bound ─► client ─► probes answer ─► cluster answers? ─► election, engine runs
//!                                                                    │ signal
//!                         exit ◄─ lease released ◄─ Events sent ◄─ engine stops: writes in flight finish
//! ```
//!
//! One file: the start and the end of a process, in order.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use crate::COMMIT;
use anyhow::Context as _;
use orkestra_cluster::{
    client::{self, ClusterOptions, Connection},
    requests::Cluster,
};
use orkestra_compiler::compilation::CompilationRules;
use orkestra_ground::VERSION;
use orkestra_ground::{
    Backoff, Entropy,
    tasks::{self, Ends, Task, Vitals},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Failure,
    options::{ElectionOptions, Http, Process, is_loopback},
    webhooks::{self, WebhookOptions},
};
use orkestra_cluster::leader_election::{self, CandidateConfig, Elector};
use orkestra_controller::{ClusterFetch, Feed, FileError, Installation, Namespaces, Runtime};
use orkestra_http_api::{
    self, Liveness, Pages, Stage,
    access::Access,
    listen::{self, Limits, Port},
};
use orkestra_operator::{context::Context, metrics::CallMetrics};
use orkestra_sources::{Fetcher, Options};

/// The timeout of one request to check that the API server answers.
const QUESTION: Duration = Duration::from_secs(10);
/// The delays between attempts to reach it at the start.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(500), QUESTION);
/// The time to send the last Events during shutdown.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// The exit code after a second signal: the code of a process that SIGINT terminated.
const INTERRUPTED: i32 = 130;

/// The parameters in which the two commands differ.
pub(crate) struct Service<'a> {
    pub(crate) process: &'a Process,
    pub(crate) http: &'a Http,
    /// Address of the pages.
    pub(crate) listen: SocketAddr,
    pub(crate) cluster: &'a ClusterOptions,
    /// The time to wait for an unreachable cluster.
    pub(crate) patience: Duration,
    /// The flags of leader election; `None` for a process without leader election.
    pub(crate) election: Option<&'a ElectionOptions>,
    pub(crate) feed: Feed,
    /// The sensitive children that Katalogs in the cluster may declare, and whether definitions are applied.
    pub(crate) rules: CompilationRules,
    /// The flags of the webhooks; `None` for a process without.
    pub(crate) webhooks: Option<&'a WebhookOptions>,
    /// How the sources of Komposers of the cluster are fetched; `None` for a process without.
    pub(crate) sources: Option<Options>,
    /// The installation that claims kinds. With leader election, it is named after the Lease.
    pub(crate) installation: Installation,
}

/// The part that starts once the cluster has answered.
struct Engine {
    runtime: Runtime,
    feed: Feed,
    stage: Stage,
    vitals: Vitals,
    /// The maximum time for a shutdown.
    timeout: Duration,
}

/// A candidate that has not joined the election yet, and the cluster of its Lease.
struct Candidate {
    candidacy: CandidateConfig,
    cluster: ClusterOptions,
}

/// Runs until SIGTERM or SIGINT. A second signal ends the process at once.
// Over 60 lines: the parts of a process in the order in which they start and stop.
pub(crate) async fn serve(service: Service<'_>) -> Result<(), Failure> {
    let Service {
        process,
        http,
        listen,
        cluster,
        patience,
        election,
        feed,
        rules,
        webhooks,
        sources,
        mut installation,
    } = service;
    let shutdown = stop_on_signals()?;
    let ports = Ports::bind(http, listen).await?;
    let bound = match webhooks {
        Some(webhooks) => webhooks.bind(false).await?,
        None => None,
    };
    let candidate = match election {
        Some(election) => Some(stand(election, cluster).await?),
        None => None,
    };
    let gate = candidate.as_ref().map(|one| &one.candidacy.gate);
    let connection = client::connect_through(cluster, gate).await?;
    let mut context = Context::new(connection.client.clone(), &connection.flow)
        .context("cannot set up metrics")?;
    let counted = CallMetrics::new(&context.metrics);
    context.version = format!("{VERSION}+{COMMIT}").into();
    context.home = home(cluster, &connection.client);
    context.rules = rules;
    context.logs_writes = matches!(feed, Feed::Files(_));
    context.rules.admission = Some(webhooks.is_some_and(|webhooks| webhooks.enable_admission));
    context.external = process.external(&connection).counting_into(counted);
    if let Some(candidate) = &candidate {
        context.leadership = candidate.candidacy.leadership.clone();
        context.metrics.leader().set(0);
    }
    context.webhooks = bound.is_some();
    let context = Arc::new(context);
    let alone = installation.name.clone();
    if let Some(Candidate { candidacy, .. }) = &candidate {
        // All processes that share the Lease are one installation.
        installation.name = format!("{}/{}", candidacy.namespace, candidacy.name).into();
    }
    let mut runtime = Runtime::new(context.clone()).of(installation);
    if let Some(options) = sources {
        runtime = runtime.fetching(Arc::new(fetch(options, &connection.server)));
    }
    let stage = Stage::default();
    let access = ports.access(http, &context.cluster)?;
    let vitals = Vitals::start();
    let pages = pages(&runtime, &context, access, &stage).with_liveness(liveness(&vitals));
    let server_stop = CancellationToken::new();
    let answering = ports.serve(pages, server_stop.clone());
    let server = tasks::named(Task::HttpServer, listen).start_needed(&server_stop, answering);
    let lease = election.map_or(&*alone, |election| election.name.as_str());
    if let Some(webhooks) = webhooks {
        webhooks.withdraw(bound.is_some(), lease, &context);
    }
    let known = (runtime.directory(), runtime.synced());
    let around = (&context, cluster, candidate.is_some());
    let ends = (&shutdown, &server_stop);
    let gateway = match webhooks.zip(bound) {
        None => {
            let namespace = context.cluster.default_namespace();
            let options = match webhooks {
                Some(webhooks) => webhooks.unserved(namespace, lease, namespaces(&feed)),
                None => webhooks::of_files(&alone, namespace),
            };
            webhooks::keep_policies(options, around, known, ends).await?
        }
        Some((webhooks, bound)) => {
            let known = (known.0, known.1, namespaces(&feed));
            webhooks.start((bound, lease), around, known, ends).await?
        }
    };
    let engine = Engine {
        runtime,
        feed,
        stage,
        vitals,
        timeout: process.shutdown_timeout,
    };
    let ended = run(
        engine,
        (&connection, patience),
        candidate,
        &context,
        &shutdown,
    )
    .await;
    server_stop.cancel();
    gateway.await.context("the webhooks failed")?;
    server.await.context("the HTTP server failed")?;
    ended?;
    let fatal = tasks::fatal_error().borrow().clone();
    fatal.map_or(Ok(()), |why| Err(anyhow::anyhow!(why).into()))
}

/// Reports whether the process works.
fn liveness(vitals: &Vitals) -> Liveness {
    let vitals = vitals.clone();
    Liveness::new(move || vitals.check())
}

/// Fetches sources, but not from the API server.
fn fetch(mut options: Options, server: &str) -> ClusterFetch {
    options.guard = options.guard.with_api_server(server);
    ClusterFetch(Fetcher::new(options))
}

/// Returns the namespaces whose Katalogs the webhooks serve.
fn namespaces(feed: &Feed) -> Namespaces {
    match feed {
        Feed::Cluster(namespaces) => namespaces.clone(),
        Feed::Files(_) => Namespaces::All,
    }
}

/// Returns the pages of the runtime.
fn pages(runtime: &Runtime, context: &Arc<Context>, access: Access, stage: &Stage) -> Pages {
    Pages::new(
        runtime.directory(),
        context.metrics.clone(),
        stage.clone(),
        &context.cluster,
        context.clock.clone(),
    )
    .with_leadership(context.leadership.clone())
    .with_access(access)
}

/// The ports of a process.
pub(crate) struct Ports {
    pages: Port,
    probes: Option<Port>,
}

impl Ports {
    /// Binds the ports.
    pub(crate) async fn bind(http: &Http, pages: SocketAddr) -> Result<Self, Failure> {
        let tls = http.tls().map_err(anyhow::Error::new)?;
        let probes = match http.probes_beside(pages) {
            None => None,
            Some(address) => {
                let listener = listen::bind(address, "--probe-listen").await;
                Some(Port {
                    listener: listener.map_err(anyhow::Error::new)?,
                    limits: Limits::PROBES,
                    tls: None,
                })
            }
        };
        let listener = listen::bind(pages, "--listen").await;
        let pages = Port {
            listener: listener.map_err(anyhow::Error::new)?,
            limits: Limits::PAGES,
            tls,
        };
        Ok(Self { pages, probes })
    }

    /// The access control of the pages. Logs it if authentication is off, or if tokens are sent unencrypted.
    pub(crate) fn access(&self, http: &Http, cluster: &Cluster) -> Result<Access, Failure> {
        let unknown = "cannot determine the bound address";
        let address = self.pages.listener.local_addr().context(unknown)?;
        let probes = self.probes.as_ref();
        let probes = probes.map(|port| port.listener.local_addr()).transpose();
        let probes = probes.context(unknown)?.map(tracing::field::display);
        tracing::info!(%address, probes, version = VERSION, "listening");
        if is_loopback(address) {
            return Ok(Access::open());
        }
        if http.insecure {
            tracing::warn!(%address, "metrics and /katalog are served without authentication: --insecure-http is set");
            return Ok(Access::open());
        }
        if self.pages.tls.is_none() {
            tracing::info!(%address, "bearer tokens are sent to this port unencrypted: --tls-cert-file is not set");
        }
        Ok(Access::reviewed(cluster))
    }

    /// Answers requests until `stop`.
    pub(crate) async fn serve(self, pages: Pages, stop: CancellationToken) {
        let Self {
            pages: main,
            probes,
        } = self;
        let tls = main.tls.clone();
        let follow = async {
            match tls {
                Some(tls) => tls.follow().await,
                None => std::future::pending().await,
            }
        };
        let probes = async {
            if let Some(port) = probes {
                listen::serve(port, orkestra_http_api::probes(pages.clone()), stop.clone()).await;
            }
        };
        let served = listen::serve(main, orkestra_http_api::router(pages.clone()), stop.clone());
        tokio::select! {
            _ = futures::future::join(served, probes) => {}
            () = follow => {}
        }
    }
}

/// The namespace of the Pod that this process runs in, if it works with the Pod's service account.
///
/// Source: Kubernetes, "Accessing the API from a Pod".
fn home(cluster: &ClusterOptions, client: &kube::Client) -> Option<Arc<str>> {
    let is_in_pod = cluster.kubeconfig.is_none()
        && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
        && std::env::var_os("KUBECONFIG").is_none();
    is_in_pod.then(|| client.default_namespace().into())
}

/// Prepares a candidate. Its Lease is in the namespace of the flag, else in that of the Pod or the kubeconfig.
async fn stand(election: &ElectionOptions, cluster: &ClusterOptions) -> Result<Candidate, Failure> {
    let client = client::connect(cluster).await?.client;
    let namespace = election.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let (host, entropy) = (leader_election::host(), Entropy::system());
    let candidacy = CandidateConfig::new(namespace, election.name.clone(), &host, &entropy);
    Ok(Candidate {
        candidacy,
        cluster: cluster.clone(),
    })
}

/// Starts the election for a candidate.
fn elect(candidate: Candidate, context: &Context, vitals: Vitals) -> Result<Elector, Failure> {
    let Candidate { candidacy, cluster } = candidate;
    let connect = move || {
        let cluster = cluster.clone();
        async move {
            let connection = client::connect(&cluster).await?;
            Ok::<_, client::Error>(connection.client)
        }
    };
    let sources = (context.clock.clone(), context.entropy.clone());
    let reach = context.cluster.reach().clone();
    let gauge = context.metrics.leader();
    let elector = Elector::start(connect, candidacy, sources, (reach, vitals), gauge);
    Ok(elector.context("cannot start a thread for leader election")?)
}

async fn run(
    engine: Engine,
    (connection, patience): (&Connection, Duration),
    candidate: Option<Candidate>,
    context: &Context,
    shutdown: &CancellationToken,
) -> Result<(), Failure> {
    let Engine {
        runtime,
        feed,
        stage,
        vitals,
        timeout,
    } = engine;
    tokio::select! {
        reached = reach(connection, patience) => reached?,
        () = shutdown.cancelled() => return Ok(()),
    }
    tracing::info!(server = connection.server, "connected");
    let fatal = async {
        let mut fatal = tasks::fatal_error();
        if fatal.wait_for(Option::is_some).await.is_ok() {
            shutdown.cancel();
        }
        std::future::pending::<()>().await;
    };
    let elector = candidate.map(|one| elect(one, context, vitals));
    let elector = elector.transpose()?;
    let (mut synced, directory) = (runtime.synced(), runtime.directory());
    let announce = async {
        if synced.wait_for(|synced| *synced).await.is_ok() {
            directory.warm().await;
            stage.set_ready();
        }
        std::future::pending::<()>().await;
    };
    let stopping = async {
        shutdown.cancelled().await;
        stage.set_stopping();
        tracing::info!("stopping; a second signal ends the process at once");
        std::future::pending::<()>().await;
    };
    // The remaining time is for Events and for the Lease.
    let engine_timeout = timeout.saturating_sub(LAST_EVENTS.min(timeout / 5));
    let ended = tokio::select! {
        ended = Box::pin(runtime.run(feed, shutdown.clone(), engine_timeout)) => ended,
        () = announce => Ok(true),
        () = stopping => Ok(true),
        () = fatal => Ok(true),
    };
    context.events.flush(LAST_EVENTS.min(timeout)).await;
    if let Some(elector) = elector {
        // After the last write, so that the next leader is the only writer.
        elector.end(matches!(ended, Ok(true))).await;
    }
    ended?;
    Ok(())
}

/// Retries until the cluster answers or `patience` has passed.
pub(crate) async fn reach(connection: &Connection, patience: Duration) -> Result<(), Failure> {
    let start = Instant::now();
    let mut failures = 0;
    loop {
        let error = match connection.check(QUESTION).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let pause = RETRY.after(failures);
        if start.elapsed() + pause > patience {
            return Err(error.into());
        }
        tracing::warn!(error = %anyhow::Error::new(error), "the cluster is unreachable; retrying");
        tokio::time::sleep(pause).await;
        failures += 1;
    }
}

/// A token that the first SIGTERM or SIGINT cancels; the second one ends the process.
pub(crate) fn stop_on_signals() -> Result<CancellationToken, Failure> {
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    let term = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let int = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    // Signals that arrive while the task restarts are kept.
    tasks::named(Task::Signals, "").keep(Ends::never(), (term, int, token), |signals| {
        let (term, int, token) = signals;
        Box::pin(async move {
            loop {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                }
                if token.is_cancelled() {
                    std::process::exit(INTERRUPTED);
                }
                token.cancel();
            }
        })
    });
    Ok(shutdown)
}

/// Files that cannot run are invalid input, unless the cluster did not answer.
impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Invalid(problems) => {
                super::output::diagnostics(&problems.0);
                Self::Reported
            }
            error if error.is_unreachable() => Self::Cluster(error.into()),
            error => Self::Input(error.into()),
        }
    }
}
