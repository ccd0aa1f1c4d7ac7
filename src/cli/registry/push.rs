//! `ork push`

use std::{fmt::Write as _, path::PathBuf};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use jiff::Timestamp;
use orkestra_registry::{
    Client, LATEST, ManifestState, Reference,
    artifact::{Kind, Summary},
    catalogue::Pattern,
    media,
};
use serde_json::json;

use super::{Format, Registry, base, size, steps::Steps, to_json, today};
use crate::cli::{Failure, output};
use orkestra_author::publish::{self, Prepared};

/// Push a folder with a Katalog or a Motif to a registry
///
/// The folder must contain katalog.yaml or motif.yaml. Its documents must be valid and must not refer to files outside of it.
/// Each file becomes a layer; hidden files are left out. Equal folders have equal digests.
///
/// Without a tag, the reference gets `metadata.version` of the document, else `latest`. A version that exists with other content is
/// not overwritten. The artifact is added to the index of its folder in the registry, which `ork list` shows.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Folder with the files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// `oci://host/path:tag`, or a short name below $`ORK_REGISTRY`, for a Motif below $`ORK_MOTIFS_REGISTRY`
    #[arg(value_name = "REF")]
    reference: String,
    /// Overwrite a version that exists with other content
    #[arg(long)]
    force: bool,
    /// Do not add the artifact to the index
    #[arg(long)]
    no_index: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let fetch = args.registry.fetch()?;
    let preparing = publish::prepare(&args.folder, &fetch);
    let prepared = output::progress("checking the documents", preparing).await;
    let prepared = prepared.map_err(report)?;
    output::snippets(&prepared.validated.problems.0, &prepared.validated.texts);
    let reference = target(&args.reference, &prepared.summary)?;
    if let Some(lifecycle) = &prepared.lifecycle {
        output::note(&format!("warning: {}", lifecycle.sentence(today())));
    }
    let client = args.registry.client()?;
    if !args.force {
        refuse_overwriting(&client, &reference, &prepared).await?;
    }
    upload(&client, &reference, &prepared).await?;
    let is_listed = !args.no_index && list(&client, &reference, &prepared).await?;
    print(&args, &reference, &prepared, is_listed)
}

/// Shows the problems of a folder that is not pushed.
fn report(error: publish::Error) -> Failure {
    match error {
        publish::Error::Invalid(validated) => {
            output::snippets(&validated.problems.0, &validated.texts);
            Failure::Reported
        }
        error => Failure::Input(error.into()),
    }
}

/// The reference that is pushed to: its tag agrees with the version of the document.
fn target(text: &str, summary: &Summary) -> anyhow::Result<Reference> {
    let reference = Reference::parse(text, &base(summary.kind))?;
    if reference.digest.is_some() {
        return Err(anyhow!(
            "{reference} names a digest: write a tag to push to"
        ));
    }
    let last = text.rsplit('/').next().unwrap_or_default();
    let is_tagged = last.contains([':', '@']);
    let Some(version) = &summary.version else {
        return Ok(reference);
    };
    let tag = reference.tag.as_deref().unwrap_or(LATEST);
    if !is_tagged {
        // The separator of build metadata is not a character of tags.
        return Ok(reference.tagged(&version.replace('+', "_"))?);
    }
    let plain = |text: &str| text.trim_start_matches('v').replace('+', "_");
    if is_version(tag) && plain(tag) != plain(version) {
        return Err(anyhow!(
            "the tag is `{tag}`, but `metadata.version` is `{version}`: change one of them"
        ));
    }
    Ok(reference)
}

/// True if a tag is a version in semantic versioning, which does not move.
fn is_version(tag: &str) -> bool {
    let parts = tag
        .trim_start_matches('v')
        .split(['-', '_'])
        .next()
        .unwrap_or_default();
    let numbers: Vec<&str> = parts.split('.').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 3 && numbers.iter().all(is_number)
}

async fn refuse_overwriting(
    client: &Client,
    reference: &Reference,
    prepared: &Prepared,
) -> Result<(), Failure> {
    let tag = reference.tag.as_deref().unwrap_or(LATEST);
    if !is_version(tag) {
        return Ok(());
    }
    let ours = orkestra_registry::Digest::of(&prepared.artifact.bytes);
    match client.look(reference, Some(&ours)).await {
        Ok(ManifestState::Unchanged) => Ok(()),
        Ok(ManifestState::Is(digest)) => Err(Failure::Input(anyhow!(
            "{reference} exists with other content ({digest}): raise `metadata.version`, or use --force"
        ))),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn upload(
    client: &Client,
    reference: &Reference,
    prepared: &Prepared,
) -> Result<(), Failure> {
    let blobs = &prepared.artifact.blobs;
    let steps = Steps::new(blobs.iter().map(|(_, content)| content.len() as u64).sum());
    for (name, content) in blobs {
        steps.begin(name);
        let mut before = 0;
        let sent = |bytes: u64| {
            steps.advance(bytes - before);
            before = bytes;
        };
        let is_new = client
            .push_blob(&reference.repository, content, sent)
            .await?;
        let done = if is_new { "pushed" } else { "exists" };
        steps.done(&format!("{done} {name} ({})", size(content.len() as u64)));
    }
    let bytes: Bytes = prepared.artifact.bytes.clone();
    client
        .put_manifest(reference, media::MANIFEST, bytes)
        .await?;
    Ok(())
}

/// Adds the artifact to the index; a failure is a warning, because the artifact was pushed.
async fn list(
    client: &Client,
    reference: &Reference,
    prepared: &Prepared,
) -> Result<bool, Failure> {
    let Some((folder, name)) = reference.repository.parent() else {
        output::note("warning: not added to an index: the path has no folder");
        return Ok(false);
    };
    let summary = &prepared.summary;
    let tag = reference.tag.as_deref().unwrap_or(LATEST);
    let pattern = Pattern {
        name: name.to_owned(),
        kind: Some(summary.kind),
        latest_version: tag.to_owned(),
        description: summary.description.clone().unwrap_or_default(),
        tags: summary.tags.clone(),
        author: summary.author.clone().unwrap_or_default(),
        deprecated: prepared.lifecycle.is_some(),
        versions: [tag.to_owned()].into(),
        pushed_at: Some(Timestamp::now()),
    };
    let digest = orkestra_registry::Digest::of(&prepared.artifact.bytes);
    match client.list_artifact(&folder, pattern, &digest).await {
        Ok(()) => Ok(true),
        Err(error) if error.is_unreachable() => Err(error.into()),
        Err(error) => {
            output::note(&format!("warning: not added to the index: {error}"));
            Ok(false)
        }
    }
}

fn print(
    args: &Args,
    reference: &Reference,
    prepared: &Prepared,
    is_listed: bool,
) -> Result<(), Failure> {
    let digest = orkestra_registry::Digest::of(&prepared.artifact.bytes);
    if args.output == Format::Json {
        let layers = prepared.artifact.manifest.layers.iter().map(|layer| {
            let name = layer.annotation(orkestra_registry::artifact::TITLE);
            json!({"name": name, "mediaType": layer.media_type, "digest": layer.digest, "size": layer.size})
        });
        let value = json!({
            "reference": reference.to_string(),
            "digest": digest,
            "kind": prepared.summary.kind,
            "listed": is_listed,
            "files": layers.collect::<Vec<_>>(),
        });
        return Ok(output::print(
            &to_json(&value).context("cannot write JSON")?,
        )?);
    }
    let mut text = format!("{reference}@{digest}\n");
    if prepared.summary.kind == Kind::Motif {
        // Writing to a String cannot fail.
        let _ = write!(text, "\nimport it:\n  imports:\n    - motif: {reference}\n");
    }
    Ok(output::print(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(version: Option<&str>) -> Summary {
        Summary {
            kind: Kind::Katalog,
            name: "a".to_owned(),
            version: version.map(str::to_owned),
            description: None,
            author: None,
            license: None,
            tags: Vec::new(),
            orkestra: String::new(),
            declares: Vec::new(),
            permissions: Vec::new(),
        }
    }

    #[test]
    fn a_tag_that_is_left_out_is_the_version_and_another_version_is_refused() {
        let tag = |text: &str, version| {
            target(text, &summary(version)).map(|found| found.tag.unwrap().to_string())
        };
        assert_eq!(
            tag("localhost:5000/a/b", Some("1.2.0+x")).unwrap(),
            "1.2.0_x"
        );
        assert_eq!(tag("localhost:5000/a/b", None).unwrap(), "latest");
        assert_eq!(
            tag("localhost:5000/a/b:v1.2.0", Some("1.2.0")).unwrap(),
            "v1.2.0"
        );
        assert_eq!(
            tag("localhost:5000/a/b:edge", Some("1.2.0")).unwrap(),
            "edge"
        );
        let error = tag("localhost:5000/a/b:1.3.0", Some("1.2.0")).unwrap_err();
        assert!(
            error.to_string().contains("`metadata.version` is `1.2.0`"),
            "{error}"
        );
    }

    #[test]
    fn only_versions_do_not_move() {
        for tag in ["1.2.3", "v1.2.3", "1.2.3-rc.1"] {
            assert!(is_version(tag), "{tag}");
        }
        for tag in ["latest", "v1", "1.2", "main-1.2.3", "1.2.x"] {
            assert!(!is_version(tag), "{tag}");
        }
    }
}
