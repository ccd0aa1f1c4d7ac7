//! `ork controller`

use std::time::Duration;

use super::{
    Failure,
    options::{Election, Process, parse_namespace},
    serve::{Service, serve},
};
use crate::{
    client::ClusterOptions,
    meta::{Feed, Namespaces},
};

/// How long the cluster may be away at the start: a Pod may run before its network does.
const PATIENCE: Duration = Duration::from_mins(1);

/// Watches the Katalogs of a cluster and runs their operators
///
/// Several may run at a time: one works, the others keep their caches warm and take over when it ends. Each runs until
/// SIGTERM or SIGINT, and then lets writes in flight end and hands over. The rights it needs are those that
/// `ork generate rbac` prints; custom resources and children stay as they are when it ends.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Namespace whose Katalogs are run; may be repeated [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    #[command(flatten)]
    process: Process,
    #[command(flatten)]
    election: Election,
}

pub(super) async fn execute(args: Args, cluster: &ClusterOptions) -> Result<(), Failure> {
    args.process.start_logging();
    let feed = Feed::Cluster(match args.namespaces {
        none if none.is_empty() => Namespaces::All,
        mut some => {
            some.sort_unstable();
            some.dedup();
            Namespaces::Some(some)
        }
    });
    serve(Service {
        process: &args.process,
        cluster,
        patience: PATIENCE,
        election: args.election.elect.then_some(&args.election),
        feed,
    })
    .await
}
