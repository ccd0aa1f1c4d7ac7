//! `ork controller`

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    sync::Arc,
    time::Duration,
};

use orkestra_core::plan::policy::ChildPolicy;

use super::{
    Failure,
    options::{ConnectionOptions, ElectionOptions, Http, Process, parse_namespace},
    serve::{Service, serve},
    sources::Fetching,
    webhooks::WebhookOptions,
};
use crate::meta::{ClusterFetch, Feed, Installation, Namespaces};

/// All interfaces: the kubelet and Prometheus connect from other machines.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 8080));
/// The time to wait for an unreachable cluster at the start: a Pod may start before its network works.
const PATIENCE: Duration = Duration::from_mins(1);

/// Watch the Katalogs of a cluster and run their operators
///
/// Several replicas may run: one leads, the others keep their caches warm and take over when it stops. On SIGTERM or
/// SIGINT, a replica finishes the writes in flight and releases the lease. `ork generate rbac` prints the permissions that
/// the controller needs. When it stops, custom resources and children stay as they are.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Namespace whose Katalogs to run; may be repeated [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    /// Sensitive children that Katalogs may declare: `all`, `none`, or a comma-separated list of names
    ///
    /// Such children are objects of RBAC, admission, definitions and certificates, and pods with permissions on their node;
    /// docs/permissions.md lists the names. A Katalog that declares one that is not permitted is refused.
    #[arg(long, value_name = "NAMES", default_value = "all", value_parser = ChildPolicy::parse)]
    sensitive_children: ChildPolicy,
    #[command(flatten)]
    process: Process,
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    election: ElectionOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
    #[command(flatten)]
    cluster: ConnectionOptions,
    #[command(flatten)]
    sources: Fetching,
}

pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    args.process.start_logging();
    let fetcher = args.sources.in_cluster()?;
    let installation = Installation {
        name: alone(&args.namespaces).into(),
        long_running: true,
    };
    let feed = Feed::Cluster(Namespaces::of(args.namespaces));
    serve(Service {
        process: &args.process,
        http: &args.http,
        listen: args.http.listen.unwrap_or(LISTEN),
        cluster: &args.cluster.options(),
        patience: PATIENCE,
        election: args.election.elect.then_some(&args.election),
        feed,
        children: args.sensitive_children,
        webhooks: Some(&args.webhooks),
        installation,
        fetch: Some(Arc::new(ClusterFetch(fetcher))),
    })
    .await
}

/// The installation name of a process without leader election: no other process runs these Katalogs.
fn alone(namespaces: &[String]) -> String {
    if namespaces.is_empty() {
        return "ork controller of all namespaces".to_owned();
    }
    let namespaces: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
    let namespaces: Vec<&str> = namespaces.into_iter().collect();
    format!("ork controller of {}", namespaces.join(","))
}
