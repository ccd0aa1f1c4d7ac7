//! `ork gateway`

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use orkestra_cluster::client;
use orkestra_ground::tasks::{self, Task, Vitals};
use tokio_util::sync::CancellationToken;

use super::{
    Failure,
    connection::ConnectionOptions,
    controller,
    options::{Http, Process, parse_namespace},
    serve::{Ports, reach, stop_on_signals},
    webhooks::WebhookOptions,
};
use orkestra_controller::{Feed, Namespaces, Runtime};
use orkestra_http_api::{Liveness, Pages, Stage};
use orkestra_operator::context::Context;

/// The time to wait for an unreachable cluster at the start.
const PATIENCE: Duration = Duration::from_mins(1);

/// Serve the webhooks of the Katalogs of a cluster, without operators
///
/// It reviews custom resources and Katalogs when they are written, converts custom resources between versions, and keeps the
/// webhook configurations, policies and certificates. It runs no operators, keeps no records of custom resources and takes no
/// part in leader election; any number of replicas may run. `ork controller` serves the same webhooks in addition to its operators.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Namespace whose Katalogs to serve; may be repeated [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    /// Require of authors what `ork controller --manage-crds` does for them: set it on both or on neither
    #[arg(long, env = "ORK_MANAGE_CRDS")]
    manage_crds: bool,
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
pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    args.process.start_logging();
    let namespaces = Namespaces::of(args.namespaces);
    let shutdown = stop_on_signals()?;
    let Some(bound) = args.webhooks.bind(true).await? else {
        return Err(
            anyhow::anyhow!("with `--webhooks=off`, `ork gateway` has nothing to serve").into(),
        );
    };
    let ports = Ports::bind(
        &args.http,
        args.http.listen.unwrap_or_else(controller::default_address),
    )
    .await?;
    let cluster = args.cluster.options();
    let connection = client::connect(&cluster).await?;
    let context = Context::new(connection.client.clone(), &connection.flow);
    let mut context = context.context("cannot set up metrics")?;
    context.external = args.process.external(&connection);
    context.rules.admission = Some(args.webhooks.enable_admission);
    context.rules.manages_definitions = args.manage_crds;
    let context = Arc::new(context);
    let runtime = Runtime::observing(Arc::clone(&context));
    let (directory, is_listed) = (runtime.directory(), runtime.synced());
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
        .start(
            (bound, &args.webhooks.alone()),
            (&context, &cluster, false),
            katalogs,
            ends,
        )
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
        followed = runtime.run(Feed::Cluster(namespaces), shutdown.clone(), PATIENCE) => drop(followed?),
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
