//! `ork pull`

use std::path::PathBuf;

use anyhow::Context as _;
use orkestra_registry::{
    Client, Reference,
    artifact::{self, File, MOST_FILE, RemoteArtifact},
};
use serde_json::json;

use super::{Artifact, Format, Registry, digest, keys::Trust, size, steps::Steps, to_json, today};
use crate::cli::{Failure, output};
use orkestra_author::publish;
use orkestra_loader::compose::Fetch;

/// Pull the files of an artifact into a folder
///
/// Every file is checked against its digest. With --key, nothing is pulled unless the artifact is signed with that key. The
/// folder must be empty, or not exist.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    artifact: Artifact,
    /// Folder to write the files to [default: the last part of the reference's path]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let reference = args.artifact.parse()?;
    let client = args.registry.client()?;
    // The tag is looked up once: what is verified is what is pulled.
    let digest = digest(&client, &reference).await?;
    let verified = if args.trust.is_empty() && args.trust.formats.is_empty() {
        None
    } else {
        Some(
            args.trust
                .check(&client, &reference.repository, &digest)
                .await?,
        )
    };
    let pinned = reference.at(digest);
    let opened = client.open(&pinned).await?;
    if let Some(lifecycle) = &opened.lifecycle {
        output::note(&format!("warning: {}", lifecycle.sentence(today())));
    }
    let files = download(&client, &pinned, &opened).await?;
    let name = reference
        .repository
        .path
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(name));
    artifact::write(&folder, &files).context("cannot write the files")?;
    compare(&folder, &opened, &args.registry.fetch()?).await;
    if args.output == Format::Json {
        let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        let value = json!({
            "reference": reference.to_string(),
            "digest": digest,
            "folder": folder,
            "files": names,
            "verified": verified.map(|verified| verified.format.name()),
        });
        return Ok(output::print(&to_json(&value)?)?);
    }
    let checked = if verified.is_some() {
        ", signature verified"
    } else {
        ""
    };
    Ok(output::print(&format!(
        "{reference}@{digest}{checked}\n{}\n",
        folder.display()
    ))?)
}

async fn download(
    client: &Client,
    reference: &Reference,
    opened: &RemoteArtifact,
) -> Result<Vec<File>, Failure> {
    let steps = Steps::new(opened.size());
    let most = usize::try_from(MOST_FILE).unwrap_or(usize::MAX);
    let mut files = Vec::new();
    for (name, layer) in &opened.files {
        steps.begin(name);
        let mut content = Vec::new();
        let reading = client.stream_blob(&reference.repository, layer, most, |piece| {
            content.extend_from_slice(piece);
            steps.advance(piece.len() as u64);
        });
        reading.await?;
        steps.done(&format!("pulled {name} ({})", size(layer.size)));
        files.push(File {
            name: name.clone(),
            content: content.into(),
        });
    }
    Ok(files)
}

/// Warns if the files differ from what the artifact declares: another version of `ork` may have pushed it, or the
/// declaration is false.
async fn compare(folder: &std::path::Path, opened: &RemoteArtifact, fetch: &dyn Fetch) {
    let Some(said) = &opened.summary else {
        return;
    };
    let described = publish::describe(folder, opened.kind, fetch).await;
    let Some((mut found, _)) = described.summary else {
        output::note(
            "warning: the documents are not valid for this version of ork: `ork validate` shows why",
        );
        return;
    };
    found.orkestra.clone_from(&said.orkestra);
    found.name.clone_from(&said.name);
    if found != *said {
        output::note(
            "warning: the files differ from the metadata of the artifact: inspect them before you run them",
        );
    }
}
