//! `ork controller`

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use orkestra_compiler::compilation::CompilationRules;
use orkestra_plan::policy::ChildPolicy;

use super::{
    Failure,
    connection::ConnectionOptions,
    options::{ElectionOptions, Http, Process, parse_namespace},
    serve::{Service, serve},
    sources::Fetching,
    webhooks::{WebhookOptions, is_in_pod},
};
use orkestra_controller::{Feed, Installation, Namespaces};
use orkestra_gateway::ALONE;

/// The default port of metrics and pages.
const PORT: u16 = 8080;
/// The time to wait for an unreachable cluster at the start: a Pod may start before its network works.
const PATIENCE: Duration = Duration::from_mins(1);

/// Watch the Katalogs of a cluster and run their operators
///
/// Several replicas may run: one leads, the others keep their caches warm and take over when it stops. On SIGTERM or
/// SIGINT, a replica finishes the writes in flight and releases the lease. `ork generate rbac` prints the permissions that
/// the controller needs. When it stops, custom resources and children stay as they are.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Namespace whose Katalogs to run; may be repeated [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    /// Sensitive children that Katalogs may declare: `all`, `none`, or a comma-separated list of names
    ///
    /// Such children are objects of RBAC, admission, definitions and certificates, and pods with permissions on their node;
    /// docs/operate/permissions.md lists the names. A Katalog that declares one that is not permitted is refused.
    #[arg(long, value_name = "NAMES", default_value = "all", value_parser = ChildPolicy::parse)]
    sensitive_children: ChildPolicy,
    /// Apply the definitions of custom resources that `schema` of entries generates
    ///
    /// A definition is replaced only if it is of the Katalog and no stored custom resource would lose a field or become invalid; it
    /// is never deleted. Authors of Katalogs with `schema` need the permission to create and patch these definitions.
    #[arg(long, env = "ORK_MANAGE_CRDS")]
    manage_crds: bool,
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

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    args.process.start_logging();
    let sources = args.sources.in_cluster()?;
    let installation = Installation {
        name: alone(&args.namespaces).into(),
        long_running: true,
    };
    let feed = Feed::Cluster(Namespaces::of(args.namespaces));
    serve(Service {
        process: &args.process,
        http: &args.http,
        listen: args.http.listen.unwrap_or_else(default_address),
        cluster: &args.cluster.options(),
        patience: PATIENCE,
        election: args.election.elect.then_some(&args.election),
        feed,
        rules: CompilationRules {
            children: args.sensitive_children,
            manages_definitions: args.manage_crds,
            ..CompilationRules::default()
        },
        webhooks: Some(&args.webhooks),
        installation,
        sources: Some(sources),
    })
    .await
}

/// The default address of metrics and pages.
pub(crate) fn default_address() -> SocketAddr {
    listen(is_in_pod())
}

/// The default address of metrics and pages: in a Pod all interfaces, since the kubelet and Prometheus connect from other machines;
/// elsewhere loopback, which needs no authentication and which no other machine reaches.
fn listen(in_pod: bool) -> SocketAddr {
    let address = if in_pod {
        Ipv4Addr::UNSPECIFIED
    } else {
        Ipv4Addr::LOCALHOST
    };
    SocketAddr::V4(SocketAddrV4::new(address, PORT))
}

/// The installation name of a process without leader election: no other process runs these Katalogs.
fn alone(namespaces: &[String]) -> String {
    if namespaces.is_empty() {
        return format!("{ALONE}all namespaces");
    }
    let namespaces: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
    let namespaces: Vec<&str> = namespaces.into_iter().collect();
    format!("{ALONE}{}", namespaces.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_on_a_desk_listens_on_loopback() {
        assert_eq!(listen(false).to_string(), "127.0.0.1:8080");
        assert_eq!(listen(true).to_string(), "0.0.0.0:8080");
    }
}
