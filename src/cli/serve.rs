//! What `ork controller` and `ork run` share: a process that stays until it is told to stop.
//!
//! ```text
//!  port taken ─► client ─► probes answer ─► cluster answers? ─► election, engine runs
//!                                                                    │ signal
//!                          exit ◄─ lease released ◄─ Events out ◄─ engine stops: writes in flight end
//! ```

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Failure,
    options::{Election, Process},
};
use crate::{
    client::{self, ClusterOptions, Connection},
    lead::{self, Candidacy, Elector},
    meta::{Feed, FileError, Runtime},
    runtime::{context::Context, entropy::Entropy},
    server::{self, Pages, Stage, listen},
};

/// How long one question to a silent API server waits.
const QUESTION: Duration = Duration::from_secs(10);
/// How long Events may take at the end.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// Exit code after a second signal: that of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// What the two commands do differently.
pub(super) struct Service<'a> {
    pub(super) process: &'a Process,
    pub(super) cluster: &'a ClusterOptions,
    /// How long a cluster that cannot be reached is waited for.
    pub(super) patience: Duration,
    /// Where the process takes part in an election; one that does not is alone.
    pub(super) election: Option<&'a Election>,
    pub(super) feed: Feed,
}

/// What runs once the cluster has answered.
struct Engine {
    runtime: Runtime,
    feed: Feed,
    stage: Stage,
    /// How long a shutdown may take.
    timeout: Duration,
}

/// A candidate that does not take part yet, and the client for its Lease.
struct Candidate {
    candidacy: Candidacy,
    client: kube::Client,
}

/// Runs until SIGTERM or SIGINT; the second one ends the process at once.
pub(super) async fn serve(service: Service<'_>) -> Result<(), Failure> {
    let Service {
        process,
        cluster,
        patience,
        election,
        feed,
    } = service;
    let shutdown = stop_on_signals()?;
    let listener = listen::bind(process.listen)
        .await
        .map_err(anyhow::Error::new)?;
    let candidate = match election {
        Some(election) => Some(stand(election, cluster).await?),
        None => None,
    };
    let gate = candidate.as_ref().map(|one| &one.candidacy.gate);
    let connection = client::connect_through(cluster, gate).await?;
    let mut context = Context::new(connection.client.clone(), &connection.flow)
        .context("cannot set up metrics")?;
    context.external = process.external(&connection);
    if let Some(candidate) = &candidate {
        context.leadership = candidate.candidacy.leadership.clone();
        context.metrics.leader().set(0);
    }
    let context = Arc::new(context);
    let runtime = Runtime::new(context.clone());
    let stage = Stage::default();
    let pages = Pages::new(
        runtime.directory(),
        context.metrics.clone(),
        stage.clone(),
        connection.client.clone(),
        context.clock.clone(),
    )
    .with_leadership(context.leadership.clone())
    .reaching(context.wire.reach().clone());
    let address = listener
        .local_addr()
        .context("cannot tell the address that was taken")?;
    tracing::info!(%address, version = crate::VERSION, "listening");
    let server_stop = CancellationToken::new();
    let server = tokio::spawn(listen::serve(
        listener,
        server::router(pages),
        server_stop.clone(),
    ));
    let engine = Engine {
        runtime,
        feed,
        stage,
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
    server.await.context("the HTTP server failed")?;
    ended
}

/// Prepares a candidate; its Lease is in the namespace that was asked for, else in the Pod's or the kubeconfig's.
async fn stand(election: &Election, cluster: &ClusterOptions) -> Result<Candidate, Failure> {
    let client = client::connect(cluster).await?.client;
    let namespace = election.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let (host, entropy) = (lead::host(), Entropy::system());
    let candidacy = Candidacy::new(namespace, election.name.clone(), &host, &entropy);
    Ok(Candidate { candidacy, client })
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
        timeout,
    } = engine;
    tokio::select! {
        reached = reach(connection, patience) => reached?,
        () = shutdown.cancelled() => return Ok(()),
    }
    tracing::info!(server = connection.server, "connected");
    let elector = candidate.map(|Candidate { candidacy, client }| {
        let (clock, entropy) = (context.clock.clone(), context.entropy.clone());
        Elector::start(
            client,
            candidacy,
            (clock, entropy),
            context.metrics.leader(),
        )
    });
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
    // What is left of the time is for Events and for the Lease.
    let engine_timeout = timeout.saturating_sub(LAST_EVENTS.min(timeout / 5));
    let ended = tokio::select! {
        ended = runtime.run(feed, shutdown.clone(), engine_timeout) => ended,
        () = announce => Ok(true),
        () = stopping => Ok(true),
    };
    context.events.flush(LAST_EVENTS.min(timeout)).await;
    if let Some(elector) = elector {
        // After the last write: who takes over meets no other's.
        elector.end(matches!(ended, Ok(true))).await;
    }
    ended?;
    Ok(())
}

/// Asks until the cluster answers or patience ends.
async fn reach(connection: &Connection, patience: Duration) -> Result<(), Failure> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(500);
    loop {
        let error = match connection.check(QUESTION).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if start.elapsed() + pause > patience {
            return Err(error.into());
        }
        tracing::warn!(error = %anyhow::Error::new(error), "the cluster cannot be reached; trying again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(QUESTION);
    }
}

fn stop_on_signals() -> Result<CancellationToken, Failure> {
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    let mut term = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut int = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            if !first {
                std::process::exit(INTERRUPTED);
            }
            token.cancel();
        }
    });
    Ok(shutdown)
}

/// Files that cannot run are wrong input, unless it was the cluster that did not answer.
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
