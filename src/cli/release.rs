//! `ork release`

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context as _, anyhow};
use orkestra_cluster::{
    client::{ClusterOptions, Connection},
    requests::{Cluster, ClusterError},
};
use orkestra_plan::{Declaring, GroupKind, KatalogRef};

use super::{
    Failure,
    connection::{ConnectionOptions, connect},
    files,
    options::{FileFlags, parse_namespace},
    output, run,
    sources::SourceOptions,
    webhooks,
};
use orkestra_controller::{self, Installation, ReleaseOutcome};
use orkestra_loader::compose::Fetch;

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
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) katalogs: FileFlags,
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

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let cluster = args.cluster.options();
    if args.names.is_empty() {
        let fetch = args.sources.fetch(&args.katalogs.files)?;
        return release_files(&args.katalogs.files, &*fetch, &cluster).await;
    }
    let connection = connect(&cluster).await?;
    let namespace = args.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace().to_owned());
    for name in &args.names {
        let katalog = reference(&namespace, name);
        release_katalog(&connection, &katalog, args.force).await?;
    }
    Ok(())
}

/// Returns what a name with or without its kind refers to.
pub(crate) fn reference(namespace: &str, name: &str) -> KatalogRef {
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
    let releasing = orkestra_controller::release_katalog(&cluster, katalog, force);
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
    let plans = files::compile(katalogs, fetch, false).await?;
    let connection = connect(cluster).await?;
    let mut done: BTreeSet<GroupKind> = BTreeSet::new();
    let mut failed = 0;
    for operator in plans.iter().flat_map(|plan| &plan.operators) {
        let kind = operator.resource.group_kind();
        if !done.insert(kind.clone()) {
            continue;
        }
        let operated = orkestra_controller::operated(operator);
        let releasing = release_free(&connection, katalogs, (&kind, &operated));
        match output::progress("releasing custom resources", releasing).await {
            Ok(released) => note(&kind, released),
            Err(error) => {
                failed += 1;
                output::error(&error.context(format!("cannot release {kind}")));
            }
        }
    }
    failed += usize::from(!remove_policies(&connection, katalogs).await);
    match failed {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of {} kinds could not be released", done.len()).into()),
    }
}

/// Removes the policies that an `ork run` of these files left behind because it was killed. False if they stay.
async fn remove_policies(connection: &Connection, katalogs: &[PathBuf]) -> bool {
    let installation = Installation::of_files(run::INSTALLATION, katalogs);
    let cluster = Cluster::new(connection.client.clone());
    let options = webhooks::of_files(&installation.name, cluster.default_namespace());
    match orkestra_gateway::remove_policies(&cluster, &options).await {
        Ok(removed) => {
            for policy in removed {
                output::note(&format!("{policy}: removed"));
            }
            true
        }
        // Without the permission to list them, `ork run` wrote none.
        Err(ClusterError::Forbidden { .. }) => true,
        Err(error) => {
            output::error(&anyhow::Error::new(error).context("cannot remove policies"));
            false
        }
    }
}

/// Releases a kind that no other installation operates.
async fn release_free(
    connection: &Connection,
    katalogs: &[PathBuf],
    (kind, operated): (&GroupKind, &orkestra_language::api::OperatedKind),
) -> anyhow::Result<orkestra_controller::Released> {
    let installation = Installation::of_files(run::INSTALLATION, katalogs);
    let (cluster, own) = (Cluster::new(connection.client.clone()), installation.name);
    let now = jiff::Timestamp::now();
    if let Some(holder) = orkestra_controller::claimed_elsewhere(&cluster, kind, &own, now).await? {
        return Err(anyhow!("{holder} operates it; delete or stop that first"));
    }
    Ok(orkestra_controller::release_kind(
        &cluster,
        operated,
        &orkestra_controller::ReleaseProgress::default(),
    )
    .await?)
}

fn note(kind: &GroupKind, released: orkestra_controller::Released) {
    output::note(&format!(
        "{kind}: released {} custom resources and {} children without an owner",
        released.resources, released.children
    ));
}
