//! `ork tag`

use anyhow::anyhow;
use serde_json::json;

use super::{Artifact, Format, Registry, to_json};
use crate::cli::{Failure, output};

/// Add a tag to an artifact in its repository
///
/// The tag is moved if it exists. The content is not transferred.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    artifact: Artifact,
    /// Tags to set
    #[arg(value_name = "TAG", required = true)]
    tags: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let reference = args.artifact.parse()?;
    let targets = args.tags.iter().map(|tag| reference.tagged(tag));
    let targets = targets
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| anyhow!(error))?;
    let client = args.registry.client()?;
    let fetched = client.fetch(&reference).await?;
    for target in &targets {
        client
            .put_manifest(target, &fetched.media_type, fetched.bytes.clone())
            .await?;
        output::note(&format!("tagged {target}"));
    }
    let digest = fetched.digest;
    if args.output == Format::Json {
        let references: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let value = json!({"digest": digest, "references": references});
        return Ok(output::print(&to_json(&value)?)?);
    }
    Ok(output::print(&format!("{digest}\n"))?)
}
