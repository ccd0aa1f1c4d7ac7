//! `ork list` and `ork search`

use anyhow::anyhow;
use orkestra_registry::{Repository, artifact::Kind, catalogue::Pattern};
use serde_json::json;

use super::{Format, Registry, base, to_json};
use crate::cli::{Failure, output};

/// List the artifacts of a folder of a registry
///
/// Reads the index that `ork push` stores next to the artifacts.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Folder, as `oci://host/path` [default: $`ORK_REGISTRY`]
    #[arg(value_name = "FOLDER")]
    folder: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Search the artifacts of a folder of a registry
///
/// Prints the artifacts whose name, description, author or keywords contain the text, ignoring case.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SearchArgs {
    /// Text to search for
    #[arg(value_name = "TEXT")]
    text: String,
    /// Folder, as `oci://host/path` [default: $`ORK_REGISTRY`]
    #[arg(value_name = "FOLDER")]
    folder: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Use $`ORK_MOTIFS_REGISTRY` as default
    #[arg(short, long)]
    motif: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    show(args.folder, &args.common, |_| true).await
}

pub(crate) async fn search(args: SearchArgs) -> Result<(), Failure> {
    show(args.folder, &args.common, |pattern| {
        pattern.matches(&args.text)
    })
    .await
}

async fn show(
    folder: Option<String>,
    common: &Common,
    wanted: impl Fn(&Pattern) -> bool,
) -> Result<(), Failure> {
    let kind = if common.motif {
        Kind::Motif
    } else {
        Kind::Katalog
    };
    let folder = folder.unwrap_or_else(|| base(kind));
    let folder = Repository::parse(&folder).map_err(|error| anyhow!(error))?;
    let client = common.registry.client()?;
    let reading = client.catalogue(&folder);
    let catalogue = output::progress("reading the index", reading).await;
    let catalogue = match catalogue {
        Err(error) if error.is_not_found() => {
            return Err(Failure::Input(anyhow!(
                "{folder} has no index: nothing was pushed there with `ork push`"
            )));
        }
        catalogue => catalogue?,
    };
    let found: Vec<&Pattern> = catalogue
        .patterns
        .iter()
        .filter(|pattern| wanted(pattern))
        .collect();
    if common.output == Format::Json {
        let value = json!({"updatedAt": catalogue.updated_at, "patterns": found});
        return Ok(output::print(&to_json(&value)?)?);
    }
    Ok(output::print(&table(&found))?)
}

/// Columns as `kubectl get` has them.
fn table(patterns: &[&Pattern]) -> String {
    if patterns.is_empty() {
        return "nothing found\n".to_owned();
    }
    let rows = patterns.iter().map(|pattern| {
        let deprecated = if pattern.deprecated {
            " (deprecated)"
        } else {
            ""
        };
        [
            pattern.name.clone(),
            pattern.kind.map_or("-", Kind::name).to_owned(),
            format!("{}{deprecated}", pattern.latest_version),
            pattern.description.clone(),
        ]
        .map(|cell| output::one_line(&cell).clone())
    });
    let head = ["NAME", "KIND", "LATEST", "DESCRIPTION"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(rows).collect();
    output::table(&rows)
}
