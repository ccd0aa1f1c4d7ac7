//! `ork gateway`

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use orkestra_cluster::client;
use orkestra_ground::tasks::{self, Task, Vitals};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Failure,
    options::{ConnectionOptions, Http, Process, parse_namespace},
    serve::{Ports, reach, stop_on_signals},
    webhooks::WebhookOptions,
};
use crate::{
    meta::{Namespaces, Publisher, follow_plans},
    runtime::context::Context,
    server::{Liveness, Pages, Stage},
};

/// All interfaces: the kubelet and Prometheus connect from other machines.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 8080));
/// The time to wait for an unreachable cluster at the start.
const PATIENCE: Duration = Duration::from_mins(1);

/// Serve the webhooks of the Katalogs of a cluster, without operators
///
/// It reviews custom resources and Katalogs when they are written, converts custom resources between versions, and keeps the
/// webhook configurations, policies and certificates. It runs no operators, keeps no records of custom resources and takes no
/// part in leader election; any number of replicas may run. `ork controller` serves the same webhooks in addition to its operators.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Namespace whose Katalogs to serve; may be repeated [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    #[command(flatten)]
    process: Process,
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    webhooks: WebhookOptions,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

// Over 60 lines: the parts of a process in the order in which they start and stop.
pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    args.process.start_logging();
    let namespaces = Namespaces::of(args.namespaces);
    let shutdown = stop_on_signals()?;
    let Some(bound) = args.webhooks.bind(true).await? else {
        return Err(
            anyhow::anyhow!("with `--webhooks=off`, `ork gateway` has nothing to serve").into(),
        );
    };
    let ports = Ports::bind(&args.http, args.http.listen.unwrap_or(LISTEN)).await?;
    let cluster = args.cluster.options();
    let connection = client::connect(&cluster).await?;
    let context = Context::new(connection.client.clone(), &connection.flow);
    let mut context = context.context("cannot set up metrics")?;
    context.external = args.process.external(&connection);
    context.admission = args.webhooks.enable_admission;
    let context = Arc::new(context);
    let (publisher, directory) = Publisher::new();
    let (listed, is_listed) = watch::channel(false);
    let stage = Stage::default();
    let vitals = Vitals::start();
    let pages = Pages::new(
        directory.clone(),
        context.metrics.clone(),
        stage.clone(),
        &context.cluster,
        context.clock.clone(),
    )
    .with_access(ports.access(&args.http, &context.cluster)?)
    .with_liveness(Liveness::new(move || vitals.check()));
    let server_stop = CancellationToken::new();
    let answering = ports.serve(pages, server_stop.clone());
    let server = tasks::named(Task::HttpServer, "").start_needed(&server_stop, answering);
    tokio::select! {
        reached = reach(&connection, PATIENCE) => reached?,
        () = shutdown.cancelled() => return Ok(()),
    }
    tracing::info!(server = connection.server, "connected");
    let katalogs = (directory, is_listed.clone(), namespaces.clone());
    let ends = (&shutdown, &shutdown);
    let gateway = args
        .webhooks
        .start(bound, (&context, &cluster, false), katalogs, ends)
        .await?;
    let mut is_listed = is_listed;
    let ready = async {
        if is_listed.wait_for(|listed| *listed).await.is_ok() {
            stage.set_ready();
        }
        std::future::pending::<()>().await;
    };
    let fatal = async {
        if tasks::fatal_error().wait_for(Option::is_some).await.is_ok() {
            shutdown.cancel();
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = follow_plans(context, namespaces, publisher, listed, shutdown.clone()) => {}
        () = ready => {}
        () = fatal => {}
    }
    stage.set_stopping();
    gateway.await.context("the webhooks failed")?;
    server_stop.cancel();
    server.await.context("the HTTP server failed")?;
    let why = tasks::fatal_error().borrow().clone();
    why.map_or(Ok(()), |why| Err(anyhow::anyhow!(why).into()))
}
