//! `ork plan`

use std::path::PathBuf;

use orkestra_cluster::requests::Cluster;

use super::{
    Failure, changes,
    connection::ConnectionOptions,
    options::{FileOptions, parse_namespace},
    output::{self, Counts},
    sources::SourceOptions,
};
use orkestra_author::plan::{self, PlanRequest, Planned};

/// The exit code if the plan failed: 1 means changes.
const TROUBLE: u8 = 2;

/// Show what a Katalog would do to every custom resource in the cluster, before it is applied
///
/// The command decides for each live custom resource what the next reconcile pass would do to its children, with the pass that runs in
/// the cluster: which are created, changed field by field, replaced, adopted, refused or deleted, including those of kinds that the
/// Katalog no longer declares. Custom resources that change alike are one group; groups with deletions come first. If the Katalog is
/// in the cluster, permissions that would be added or dropped follow.
///
/// Unlike `ork diff`, it makes no dry run: it needs only permissions to read, and reads each kind once.
///
/// Exit codes: 0 no changes, 1 changes, 2 an error, 3 the cluster is unreachable.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    files: FileOptions,
    /// Namespace of the custom resources in the cluster [default: all namespaces]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// Responses to `external` calls and hooks, in the format of `ork render --external`; no call is made
    #[arg(long, value_name = "FILE")]
    external: Option<PathBuf>,
    /// Show the values of Secrets instead of `***`
    #[arg(long)]
    show_secrets: bool,
    /// Format of the output
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    cluster: ConnectionOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

/// The format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for a terminal
    Text,
    /// JSON
    Json,
    /// Markdown, for a comment of a pull request
    Markdown,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let changes = planned(args).await.map_err(|failure| match failure {
        Failure::Input(error) => {
            output::error(&error);
            Failure::Code(TROUBLE)
        }
        Failure::Reported => Failure::Code(TROUBLE),
        failure => failure,
    })?;
    if changes {
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Prints the plan; true if anything changes.
async fn planned(args: Args) -> Result<bool, Failure> {
    let katalogs = args.files.or_default()?;
    let fetch = args.sources.fetch(&katalogs)?;
    let request = PlanRequest {
        katalogs,
        namespace: args.namespace,
        calls: args.external,
        secrets: args.show_secrets,
        now: jiff::Timestamp::now(),
        fetch,
    };
    let connection = args.cluster.connect().await?;
    let cluster = Cluster::new(connection.client.clone());
    let planning = Box::pin(plan::plan(&cluster, &request));
    let planned = output::progress("reading the cluster", planning).await;
    let planned = planned?;
    output::snippets(&planned.problems.0, &planned.texts);
    let counts = Counts::of(&planned.problems);
    let permissions = permissions(&args.cluster, &args.sources, &planned).await?;
    let text = match args.output {
        Format::Text => format!("{}{}", plan::text(&planned), listed(&permissions)),
        Format::Markdown => format!("{}{}", plan::markdown(&planned), marked(&permissions)),
        Format::Json => {
            let mut json = serde_json::to_value(&planned).map_err(anyhow::Error::from)?;
            json["permissions"] = serde_json::json!({
                "added": permissions.added, "dropped": permissions.dropped,
            });
            let text = serde_json::to_string_pretty(&json).map_err(anyhow::Error::from)?;
            text + "\n"
        }
    };
    output::print(&text)?;
    if counts.errors > 0 {
        output::note(&counts.to_string());
        return Err(Failure::Reported);
    }
    Ok(planned.changed > 0)
}

/// Permissions that differ from those of the revision in the cluster.
#[derive(Default)]
struct Permissions {
    added: Vec<String>,
    dropped: Vec<String>,
}

/// Compares the permissions with those of the newest accepted revision of the Katalog of that name; none if there is none.
async fn permissions(
    options: &ConnectionOptions,
    sources: &SourceOptions,
    planned: &Planned,
) -> Result<Permissions, Failure> {
    let (Some(summary), Some((name, namespace))) = (&planned.summary, &planned.katalog) else {
        return Ok(Permissions::default());
    };
    let found = super::katalog::history(options, namespace.as_deref(), name).await;
    let Ok((_, _, history)) = found else {
        return Ok(Permissions::default());
    };
    let in_force = history.in_force.as_deref();
    let mut all = history.revisions.iter();
    let in_force = all.find(|one| Some(&*one.name) == in_force);
    let Some(newest) = in_force.or(history.revisions.last()) else {
        return Ok(Permissions::default());
    };
    let fetcher = sources.fetcher()?;
    let before = changes::permissions_of(&fetcher, name, newest).await?;
    let after = changes::permissions(Some(summary));
    Ok(Permissions {
        added: after.difference(&before).cloned().collect(),
        dropped: before.difference(&after).cloned().collect(),
    })
}

fn listed(permissions: &Permissions) -> String {
    let Permissions { added, dropped } = permissions;
    if added.is_empty() && dropped.is_empty() {
        return String::new();
    }
    let added = added.iter().map(|line| format!("  + {line}\n"));
    let dropped = dropped.iter().map(|line| format!("  - {line}\n"));
    let lines: String = added.chain(dropped).collect();
    format!("permissions:\n{lines}")
}

fn marked(permissions: &Permissions) -> String {
    let text = listed(permissions);
    if text.is_empty() {
        return text;
    }
    format!(
        "\n### Permissions\n\n```diff\n{}```\n",
        text.replace("permissions:\n", "").replace("  ", "")
    )
}
