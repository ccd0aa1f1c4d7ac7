//! `ork why`

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use orkestra_cluster::requests::Cluster;
use orkestra_plan::{GroupKind, KatalogRef};
use orkestra_registry::artifact;
use tempfile::TempDir;

use super::{
    Failure, changes, history,
    object::{FoundObject, ObjectOptions},
    options::FileFlags,
    output,
    sources::SourceOptions,
};
use orkestra_author::why::{self, Answer, WhyRequest};

/// Explain why a field of a child is as it is, or why a custom resource is not ready
///
/// With `KIND/NAME.PATH` of a child, such as `deployment/north.spec.replicas`, the command prints the expression that renders the field
/// with its place, the values that decide it, its value in the cluster, who holds it, and what the next pass does with it. A value counts
/// if another one would change the field: the command runs the pass again with each value changed. Items of lists are named by
/// index or by their keys: `spec.template.spec.containers[name=web].image`.
///
/// Without a child, it prints what the custom resource waits for, the cause first, and what the next pass does.
///
/// The Katalog is the revision in force in the cluster, with the lines of `ork history KATALOG --revision N`; with --file, it is read from
/// files. Only permissions to read are needed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    object: ObjectOptions,
    /// Child of the custom resource, and the path of a field in it, such as `deployment/north.spec.replicas`
    #[arg(value_name = "CHILD.PATH")]
    child: Option<String>,
    #[command(flatten)]
    files: FileFlags,
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
    sources: SourceOptions,
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for a terminal
    Text,
    /// JSON
    Json,
}

/// The files of a Katalog; those of a revision are in a folder that is deleted with this.
struct Files {
    paths: Vec<PathBuf>,
    folder: Option<TempDir>,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let object = args.object.find().await?;
    let target = object.target();
    let kind = target.served.group_kind();
    let files = match &*args.files.files {
        [] => in_force(&object, &kind).await?,
        given => Files {
            paths: given.to_vec(),
            folder: None,
        },
    };
    let request = WhyRequest {
        fetch: args.sources.fetch(&files.paths)?,
        katalogs: files.paths.clone(),
        kind,
        key: target.key.clone(),
        child: args.child,
        calls: args.external,
        secrets: args.show_secrets,
        now: jiff::Timestamp::now(),
        root: files.folder.as_ref().map(|folder| folder.path().to_owned()),
    };
    let asking = Box::pin(why::explain(target.cluster, &request));
    let answered = output::progress("reading the cluster", asking).await;
    let (answer, problems, texts) = answered?;
    output::snippets(&problems.0, &texts);
    let (text, json) = match answer {
        Answer::Invalid => return Err(Failure::Reported),
        Answer::Unknown(why) => return Err(Failure::Input(anyhow!(why))),
        Answer::Field(explained) => (why::text(&explained), serde_json::to_value(&explained)),
        Answer::Resource(found) => (why::overview_text(&found), serde_json::to_value(&found)),
    };
    match args.output {
        Format::Text => output::print_text(&text)?,
        Format::Json => {
            let json = json.and_then(|json| serde_json::to_string_pretty(&json));
            output::print(&(json.map_err(anyhow::Error::from)? + "\n"))?;
        }
    }
    Ok(())
}

/// Writes the revision in force of the Katalog that operates the kind to files.
async fn in_force(object: &FoundObject, kind: &GroupKind) -> Result<Files, Failure> {
    let cluster = object.target().cluster;
    let katalog = operating(cluster, kind).await?;
    let history = orkestra_controller::history(cluster, &katalog).await?;
    let mut revisions = history.revisions.iter();
    let revision = revisions.find(|one| Some(&*one.name) == history.in_force.as_deref());
    let revision =
        revision.ok_or_else(|| anyhow!("{} has no revision in force", katalog.titled()))?;
    if !revision.sources.is_empty() {
        return Err(anyhow!(
            "{} is composed from sources, which are not fetched again: name its files with `--file`",
            katalog.titled()
        )
        .into());
    }
    let document = history::document(&history, revision.number)?;
    let folder = TempDir::new().context("cannot create a temporary folder")?;
    let named = format!("{}@{}", katalog.name, revision.number);
    let path = folder.path().join(named);
    artifact::write(&path, &changes::files_of(revision, document)?)
        .context("cannot write the files of the revision")?;
    Ok(Files {
        paths: vec![path],
        folder: Some(folder),
    })
}

async fn operating(cluster: &Cluster, kind: &GroupKind) -> Result<KatalogRef, Failure> {
    let mut found = orkestra_controller::operating(cluster, kind).await?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(anyhow!(
            "no Katalog in the cluster operates {kind}: if `ork run` does, name its files with `--file`"
        )
        .into()),
        _ => {
            let names: Vec<String> = found.iter().map(KatalogRef::titled).collect();
            Err(anyhow!(
                "several Katalogs have {kind} in their status, such as during a takeover: name the files of one with `--file`; {}",
                names.join(", ")
            )
            .into())
        }
    }
}
