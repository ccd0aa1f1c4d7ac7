//! `ork diff`

use std::path::PathBuf;

use orkestra_cluster::{client, requests::Cluster};

use super::{
    Failure, changes,
    connection::ConnectionOptions,
    history, katalog,
    options::{FileOptions, parse_namespace},
    output::{self, Counts},
    sources::SourceOptions,
};
use orkestra_author::diff::{self, DiffRequest, Diffed};

/// The exit code if the comparison failed: 1 means differences.
const TROUBLE: u8 = 2;

/// Show the changes that a Katalog would make in the cluster, like `kubectl diff`
///
/// The command compares the live children of the custom resources in the cluster with the children that the files declare.
/// With --cr, custom resources are read from files, and the content of a file replaces that of the live one. Each object is
/// applied as a server-side dry run, so defaults and admission are included; nothing is written. The default path is
/// katalog.yaml in the current directory.
///
/// With two references to artifacts of registries, such as `oci://host/path:v1` and `oci://host/path:v2`, the command prints the
/// operators, permissions and fields that differ between the two, without a cluster.
///
/// With two accepted revisions of a Katalog in the cluster, such as `ponds@3` and `ponds@5`, the same is printed for these; `ork history`
/// lists them.
///
/// Exit codes: 0 no differences, 1 differences, 2 an error, 3 the cluster is unreachable.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    files: FileOptions,
    /// Custom resources to compare instead of those in the cluster; may be repeated
    #[arg(short, long = "cr", value_name = "FILE", num_args = 1..)]
    crs: Vec<PathBuf>,
    /// Namespace of the custom resources in the cluster [default: all namespaces]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace, conflicts_with = "crs")]
    namespace: Option<String>,
    /// Responses to `external` calls, in the format of `ork render --external`; no call is made
    #[arg(long, value_name = "FILE")]
    external: Option<PathBuf>,
    /// Show the values of Secrets instead of `***`
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    cluster: ConnectionOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

impl From<diff::Error> for Failure {
    fn from(error: diff::Error) -> Self {
        let is_unreachable = error.is_unreachable();
        Self::of(error, is_unreachable)
    }
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let differs = differs(args).await.map_err(|failure| match failure {
        Failure::Input(error) => {
            output::error(&error);
            Failure::Code(TROUBLE)
        }
        Failure::Reported => Failure::Code(TROUBLE),
        failure => failure,
    })?;
    if differs {
        return Err(Failure::Reported);
    }
    Ok(())
}

async fn differs(args: Args) -> Result<bool, Failure> {
    let paths = <[PathBuf; 2]>::try_from(args.files.clone().given());
    if let Ok([before, after]) = &paths
        && let (Some(before), Some(after)) = (changes::revision(before), changes::revision(after))
    {
        return compare_revisions(&args, [before, after]).await;
    }
    if let Ok(both) = &paths
        && both.iter().all(|path| changes::is_reference(path))
    {
        return changes::compare(&args.sources.fetcher()?, both).await;
    }
    Ok(!compare(args).await?.changes.is_empty())
}

/// Compares two accepted revisions of the cluster.
async fn compare_revisions(args: &Args, revisions: [(String, i64); 2]) -> Result<bool, Failure> {
    let [before, after] = &revisions;
    let read = async |name: &str| {
        let found = katalog::history(&args.cluster, args.namespace.as_deref(), name).await?;
        Ok::<_, Failure>(found.2)
    };
    let histories = [read(&before.0).await?, read(&after.0).await?];
    let found = [
        (&*before.0, history::find(&histories[0], before.1)?),
        (&*after.0, history::find(&histories[1], after.1)?),
    ];
    changes::compare_revisions(&args.sources.fetcher()?, found).await
}

async fn compare(args: Args) -> Result<Diffed, Failure> {
    let katalogs = args.files.or_default()?;
    let fetch = args.sources.fetch(&katalogs)?;
    let request = DiffRequest {
        katalogs,
        resources: args.crs,
        namespace: args.namespace,
        calls: args.external,
        secrets: args.show_secrets,
        now: jiff::Timestamp::now(),
        fetch,
    };
    let connection = client::connect(&args.cluster.options()).await?;
    let cluster = Cluster::new(connection.client);
    let comparing = Box::pin(diff::diff(&cluster, &request));
    let diffed = output::progress("comparing with the cluster", comparing).await;
    let diffed = diffed?;
    output::snippets(&diffed.problems.0, &diffed.texts);
    output::print(&diff::unified(&diffed.changes).map_err(anyhow::Error::new)?)?;
    let counts = Counts::of(&diffed.problems);
    if counts.errors > 0 {
        output::note(&counts.to_string());
        return Err(Failure::Reported);
    }
    if diffed.changes.is_empty() {
        let resources = output::count(diffed.resources, "custom resource");
        output::note(&format!("no differences in the children of {resources}"));
    }
    Ok(diffed)
}
