//! `ork release`

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use anyhow::{Context as _, anyhow};
use orkestra_cluster::{
    client::{self, ClusterOptions, Connection},
    requests::Cluster,
};
use orkestra_core::plan::{Declaring, GroupKind, KatalogRef};

use super::{
    Failure, files,
    options::{ConnectionOptions, FileFlags, parse_namespace},
    output, run,
    sources::SourceOptions,
};
use crate::{
    compose::Fetch,
    meta::{self, Installation, ReleaseOutcome},
};

/// The timeout of the first request to the cluster.
const PATIENCE: Duration = Duration::from_secs(10);

/// Remove Orkestra's finalizers from custom resources
///
/// Orkestra's labels and annotations are removed as well. The custom resources and their children stay.
///
/// With `--file`, the kinds in the Katalog files are released. Stop `ork run` first: kinds in use are refused.
///
/// With the name of a Katalog or Komposer in the cluster that is being deleted, the kinds that it operated are released, and
/// then the Katalog or Komposer itself. Use this if no controller is running, or if it lacks the permissions.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) katalogs: FileFlags,
    /// Katalogs and Komposers in the cluster, such as `waters`, `katalog/waters` or `komposer/waters`
    #[arg(
        value_name = "KATALOG",
        conflicts_with = "files",
        required_unless_present = "files"
    )]
    names: Vec<String>,
    /// Namespace of these Katalogs [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace, requires = "names")]
    namespace: Option<String>,
    /// Release the Katalog even if kinds cannot be released within a minute each: their finalizers and labels stay
    #[arg(long, requires = "names")]
    force: bool,
    #[command(flatten)]
    cluster: ConnectionOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    let cluster = args.cluster.options();
    if args.names.is_empty() {
        let fetch = args.sources.fetch(&args.katalogs.files)?;
        return release_files(&args.katalogs.files, &*fetch, &cluster).await;
    }
    let connection = client::connect(&cluster).await?;
    output::progress("connecting to the cluster", connection.check(PATIENCE)).await?;
    let namespace = args.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace().to_owned());
    for name in &args.names {
        let katalog = reference(&namespace, name);
        release_katalog(&connection, &katalog, args.force).await?;
    }
    Ok(())
}

/// Returns what a name with or without its kind refers to.
fn reference(namespace: &str, name: &str) -> KatalogRef {
    let (kind, name) = match name.split_once('/') {
        Some(("katalog" | "katalogs" | "kat", name)) => (Declaring::Katalog, name),
        Some(("komposer" | "komposers" | "komp", name)) => (Declaring::Komposer, name),
        _ => (Declaring::Katalog, name),
    };
    KatalogRef::new(namespace.to_owned(), name.to_owned()).of(kind)
}

async fn release_katalog(
    connection: &Connection,
    katalog: &KatalogRef,
    force: bool,
) -> Result<(), Failure> {
    let cluster = Cluster::new(connection.client.clone());
    let releasing = meta::release_katalog(&cluster, katalog, force);
    let outcomes = output::progress("releasing custom resources", releasing).await;
    let outcomes = outcomes.with_context(|| format!("cannot release {}", katalog.titled()))?;
    let mut failed = 0;
    for (kind, outcome) in &outcomes {
        match outcome {
            ReleaseOutcome::Released(released) => note(kind, *released),
            ReleaseOutcome::Claimed(holder) => {
                output::note(&format!("{kind}: not released, {holder} operates it"));
            }
            ReleaseOutcome::Unproven => output::note(&format!(
                "{kind}: not released, neither a claim nor a stored revision shows that {} operated it",
                katalog.titled()
            )),
            ReleaseOutcome::Failed(error) if force => output::note(&format!(
                "{kind}: left behind with finalizers and labels of Orkestra: {error}"
            )),
            ReleaseOutcome::Failed(error) => {
                failed += 1;
                output::error(&anyhow!("cannot release {kind}: {error}"));
            }
        }
    }
    if failed > 0 {
        let (kinds, declaring) = (outcomes.len(), katalog.kind.kind());
        return Err(anyhow!(
            "{failed} of {kinds} kinds could not be released; fix the cause, or use `--force` to delete the {declaring} \
             without releasing them"
        )
        .into());
    }
    output::note(&format!("{} released", katalog.titled()));
    Ok(())
}

async fn release_files(
    katalogs: &[PathBuf],
    fetch: &dyn Fetch,
    cluster: &ClusterOptions,
) -> Result<(), Failure> {
    let plans = files::compile(katalogs, fetch).await?;
    let connection = client::connect(cluster).await?;
    output::progress("connecting to the cluster", connection.check(PATIENCE)).await?;
    let mut done: BTreeSet<GroupKind> = BTreeSet::new();
    let mut failed = 0;
    for operator in plans.iter().flat_map(|plan| &plan.operators) {
        let kind = operator.resource.group_kind();
        if !done.insert(kind.clone()) {
            continue;
        }
        let operated = meta::operated(operator);
        let releasing = release_free(&connection, katalogs, (&kind, &operated));
        match output::progress("releasing custom resources", releasing).await {
            Ok(released) => note(&kind, released),
            Err(error) => {
                failed += 1;
                output::error(&error.context(format!("cannot release {kind}")));
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of {} kinds could not be released", done.len()).into()),
    }
}

/// Releases a kind that no other installation operates.
async fn release_free(
    connection: &Connection,
    katalogs: &[PathBuf],
    (kind, operated): (&GroupKind, &orkestra_core::api::OperatedKind),
) -> anyhow::Result<meta::Released> {
    let installation = Installation::of_files(run::INSTALLATION, katalogs);
    let (cluster, own) = (Cluster::new(connection.client.clone()), installation.name);
    let now = jiff::Timestamp::now();
    if let Some(holder) = meta::claimed_elsewhere(&cluster, kind, &own, now).await? {
        return Err(anyhow!("{holder} operates it; delete or stop that first"));
    }
    Ok(meta::release_kind(&cluster, operated, &meta::ReleaseProgress::default()).await?)
}

fn note(kind: &GroupKind, released: meta::Released) {
    output::note(&format!(
        "{kind}: released {} custom resources and {} children without an owner",
        released.resources, released.children
    ));
}
