//! `ork inspect`

use std::fmt::Write as _;

use orkestra_registry::{
    Digest, Reference,
    artifact::{RemoteArtifact, Rule, Summary},
    signature::{Format as SignatureFormat, Verified},
};
use serde_json::json;

use super::{Artifact, Format, Registry, digest, keys::Trust, size, to_json, today};
use crate::cli::{Failure, output};

/// Show what an artifact declares, without pulling its files
///
/// Kinds and permissions are those that the publisher recorded; `ork pull` compares them with the files. With --key, the
/// signatures are verified; the exit code is 1 if none is valid.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    artifact: Artifact,
    /// Also show the tags of the repository
    #[arg(long)]
    versions: bool,
    #[command(flatten)]
    trust: Trust,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

/// The description of an artifact.
struct Shown {
    reference: Reference,
    digest: Digest,
    opened: RemoteArtifact,
    /// The number of signatures of each format.
    signatures: [(SignatureFormat, usize); 2],
    verified: Option<Verified>,
    tags: Option<Vec<String>>,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let reference = args.artifact.parse()?;
    let client = args.registry.client()?;
    let digest = digest(&client, &reference).await?;
    let opened = client.open(&reference.at(digest)).await?;
    let found = client.signatures(&reference.repository, &digest).await?;
    let count = |format| {
        found
            .candidates
            .iter()
            .filter(|candidate| candidate.format() == format)
            .count()
    };
    let signatures = SignatureFormat::ALL.map(|format| (format, count(format)));
    let tags = if args.versions {
        Some(client.tags(&reference.repository).await?)
    } else {
        None
    };
    let is_checked = !args.trust.is_empty();
    let checked = if is_checked {
        Some(
            args.trust
                .check(&client, &reference.repository, &digest)
                .await,
        )
    } else {
        None
    };
    let (verified, failure) = match checked {
        Some(Ok(verified)) => (Some(verified), None),
        Some(Err(failure)) => (None, Some(failure)),
        None => (None, None),
    };
    let shown = Shown {
        reference,
        digest,
        opened,
        signatures,
        verified,
        tags,
    };
    match args.output {
        Format::Human => output::print(&shown.text())?,
        Format::Json => output::print(&to_json(&shown.json())?)?,
    }
    failure.map_or(Ok(()), Err)
}

impl Shown {
    fn text(&self) -> String {
        let opened = &self.opened;
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut row = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {}", output::one_line(value));
        };
        row("Reference", &self.reference.to_string());
        row("Digest", &self.digest.to_string());
        row("Kind", opened.kind.name());
        if let Some(summary) = &opened.summary {
            describe(summary, &mut row);
        }
        row(
            "Size",
            &format!(
                "{}, {}",
                size(opened.size()),
                output::count(opened.files.len(), "file")
            ),
        );
        if let Some(lifecycle) = &opened.lifecycle {
            row("Lifecycle", &lifecycle.sentence(today()));
        }
        row("Signatures", &self.signatures());
        if let Some(tags) = &self.tags {
            row("Tags", &tags.join(" "));
        }
        text.push_str("\nFiles\n");
        for (name, layer) in &opened.files {
            let _ = writeln!(text, "  {} ({})", output::one_line(name), size(layer.size));
        }
        match &opened.summary {
            Some(summary) => text.push_str(&declared(summary)),
            None => {
                text.push_str("\nThe artifact does not record its kinds and permissions: pull it to inspect them.\n");
            }
        }
        text
    }

    fn signatures(&self) -> String {
        let some: Vec<String> = self
            .signatures
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(format, count)| format!("{count} {}", format.name()))
            .collect();
        let state = match &self.verified {
            Some(verified) => format!("verified ({})", verified.format.name()),
            None => "not verified".to_owned(),
        };
        if some.is_empty() {
            "none".to_owned()
        } else {
            format!("{}, {state}", some.join(", "))
        }
    }

    fn json(&self) -> serde_json::Value {
        let opened = &self.opened;
        let files = opened.files.iter().map(|(name, layer)| {
            json!({"name": name, "mediaType": layer.media_type, "digest": layer.digest, "size": layer.size})
        });
        let lifecycle = opened.lifecycle.as_ref().map(|lifecycle| {
            json!({"stage": lifecycle.stage(today()).to_string(), "deprecation": lifecycle})
        });
        let signatures = self
            .signatures
            .map(|(format, count)| (format.name().to_owned(), count.into()));
        json!({
            "reference": self.reference.to_string(),
            "digest": self.digest,
            "kind": opened.kind,
            "size": opened.size(),
            "files": files.collect::<Vec<_>>(),
            "declares": opened.summary,
            "lifecycle": lifecycle,
            "signatures": serde_json::Map::from_iter(signatures),
            "verified": self.verified.as_ref().map(|verified| verified.format.name()),
            "tags": self.tags,
            "annotations": opened.manifest.annotations,
        })
    }
}

fn describe(summary: &Summary, row: &mut impl FnMut(&str, &str)) {
    row("Name", &summary.name);
    let optional = [
        ("Version", &summary.version),
        ("Description", &summary.description),
        ("Author", &summary.author),
        ("License", &summary.license),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            row(name, value);
        }
    }
    if !summary.tags.is_empty() {
        row("Keywords", &summary.tags.join(", "));
    }
    row("Checked with", &format!("ork {}", summary.orkestra));
}

/// Operators and permissions.
fn declared(summary: &Summary) -> String {
    let mut text = String::new();
    if !summary.declares.is_empty() {
        text.push_str("\nOperators\n");
    }
    for declared in &summary.declares {
        let line = format!(
            "{}: {} ({})",
            declared.operator, declared.kind, declared.api_version
        );
        let _ = writeln!(text, "  {}", output::one_line(&line));
    }
    if !summary.permissions.is_empty() {
        text.push_str("\nPermissions\n");
    }
    for rule in &summary.permissions {
        let _ = writeln!(text, "  {}", output::one_line(&permission(rule)));
    }
    text
}

/// `get, list on deployments.apps named web in shop`.
fn permission(rule: &Rule) -> String {
    let group = rule
        .api_groups
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let named = |resource: &String| {
        if group.is_empty() {
            resource.clone()
        } else {
            format!("{resource}.{group}")
        }
    };
    let resources: Vec<String> = rule.resources.iter().map(named).collect();
    let mut text = format!("{} on {}", rule.verbs.join(", "), resources.join(", "));
    if !rule.resource_names.is_empty() {
        let _ = write!(text, " named {}", rule.resource_names.join(", "));
    }
    if let Some(namespace) = &rule.namespace {
        let _ = write!(text, " in {namespace}");
    }
    text
}
