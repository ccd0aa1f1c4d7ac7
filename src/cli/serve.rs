//! What `ork controller` and `ork run` share: a process that stays until it is told to stop.
//!
//! ```text
//!  port taken ─► client ─► probes answer ─► cluster answers? ─► engine runs ─► signal ─► engine stops ─► Events out ─► exit
//! ```

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{Failure, options::Process};
use crate::{
    client::{self, ClusterOptions, Connection},
    meta::{Feed, FileError, Runtime},
    runtime::context::Context,
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
    pub(super) feed: Feed,
}

/// What runs once the cluster has answered.
struct Engine {
    runtime: Runtime,
    feed: Feed,
    stage: Stage,
}

/// Runs until SIGTERM or SIGINT; the second one ends the process at once.
pub(super) async fn serve(service: Service<'_>) -> Result<(), Failure> {
    let Service {
        process,
        cluster,
        patience,
        feed,
    } = service;
    let shutdown = stop_on_signals()?;
    let listener = listen::bind(process.listen)
        .await
        .map_err(anyhow::Error::new)?;
    let connection = client::connect(cluster).await?;
    let mut context = Context::new(connection.client.clone()).context("cannot set up metrics")?;
    context.external = process.external(&connection);
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
    let events = context.events.clone();
    let ended = run(
        Engine {
            runtime,
            feed,
            stage,
        },
        &connection,
        patience,
        &shutdown,
    )
    .await;
    events.flush(LAST_EVENTS).await;
    server_stop.cancel();
    server.await.context("the HTTP server failed")?;
    ended
}

async fn run(
    engine: Engine,
    connection: &Connection,
    patience: Duration,
    shutdown: &CancellationToken,
) -> Result<(), Failure> {
    let Engine {
        runtime,
        feed,
        stage,
    } = engine;
    tokio::select! {
        reached = reach(connection, patience) => reached?,
        () = shutdown.cancelled() => return Ok(()),
    }
    tracing::info!(server = connection.server, "connected");
    let mut synced = runtime.synced();
    let announce = async {
        if synced.wait_for(|synced| *synced).await.is_ok() {
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
    tokio::select! {
        ended = runtime.run(feed, shutdown.clone()) => Ok(ended?),
        () = announce => Ok(()),
        () = stopping => Ok(()),
    }
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
