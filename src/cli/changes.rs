//! `ork diff REF REF`: what changes between two references to artifacts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use orkestra_core::compose::Artifact;
use orkestra_registry::artifact::{self, File, Kind, Rule, Summary};
use orkestra_sources::{Document, Fetcher, Source};
use serde_json::Value;

use super::{Failure, output};
use crate::{
    compose::Remote,
    publish::{self, Described},
};

/// True if an argument is a reference to an artifact: no such file exists, and it names a registry or a digest.
pub(super) fn is_reference(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_named = text.starts_with("oci://") || text.contains('@') || text.contains(':');
    is_named && !path.exists() && orkestra_registry::Reference::parse(&text, "localhost/x").is_ok()
}

/// An artifact and its document.
struct Version {
    name: String,
    summary: Summary,
    fields: BTreeMap<String, String>,
}

/// Prints the operators, permissions and fields that differ; true if there are any.
pub(super) async fn compare(fetcher: &Fetcher, paths: &[PathBuf; 2]) -> Result<bool, Failure> {
    let [before, after] = paths
        .each_ref()
        .map(|path| path.to_string_lossy().into_owned());
    let fetching = async { tokio::join!(open(fetcher, &before), open(fetcher, &after)) };
    let fetching = output::progress("fetching artifacts", Box::pin(fetching));
    let (before, after) = fetching.await;
    let text = changes(&before?, &after?);
    output::print(&text)?;
    if text.is_empty() {
        output::note("no differences in operators, permissions and fields");
    }
    Ok(!text.is_empty())
}

async fn open(fetcher: &Fetcher, reference: &str) -> Result<Version, Failure> {
    let mut found = None;
    for (document, kind) in [
        (Document::Katalog, Kind::Katalog),
        (Document::Motif, Kind::Motif),
    ] {
        let source = Source::Registry {
            reference: reference.to_owned(),
            document,
            verify: None,
        };
        match fetcher.fetch(&source, None, None).await {
            Ok(artifact) => {
                found = Some((artifact, kind));
                break;
            }
            Err(orkestra_sources::Error::NotFound(_)) => {}
            Err(orkestra_sources::Error::Registry(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::Input(error.into())),
        }
    }
    let (artifact, kind) =
        found.ok_or_else(|| anyhow!("{reference} has neither katalog.yaml nor motif.yaml"))?;
    describe(fetcher, &artifact, kind).await
}

/// Checks the documents of an artifact in a folder of their own.
async fn describe(fetcher: &Fetcher, artifact: &Artifact, kind: Kind) -> Result<Version, Failure> {
    let fresh = tempfile::TempDir::new().context("cannot create a temporary folder")?;
    let folder = fresh.path().join("files");
    let files: Vec<File> = (artifact.documents.iter())
        .map(|file| File {
            name: file.name.clone(),
            content: file.text.clone().into(),
        })
        .collect();
    artifact::write(&folder, &files).context("cannot write the files")?;
    let Described { validated, summary } =
        publish::describe(&folder, kind, &Remote::new(fetcher.clone())).await;
    let Some((summary, _)) = summary else {
        output::snippets(&validated.problems.0, &validated.texts);
        let why = anyhow!("{}: the documents are not valid", artifact.url);
        return Err(Failure::Input(why));
    };
    let mut fields = BTreeMap::new();
    for katalog in &validated.katalogs {
        let spec = serde_json::to_value(&katalog.document.spec).context("cannot compare fields")?;
        let at = match validated.katalogs.len() {
            1 => "spec".to_owned(),
            _ => format!("{}: spec", katalog.document.name),
        };
        flatten(&at, &spec, &mut fields);
    }
    Ok(Version {
        name: format!("{}@{}", artifact.url, artifact.digest),
        summary,
        fields,
    })
}

/// Lists the values of a document by their paths.
fn flatten(at: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                flatten(&format!("{at}.{key}"), value, fields);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                flatten(&format!("{at}[{index}]"), value, fields);
            }
        }
        Value::Null => {}
        other => {
            fields.insert(at.to_owned(), other.to_string());
        }
    }
}

fn changes(before: &Version, after: &Version) -> String {
    let mut text = String::new();
    let operators = |version: &Version| -> BTreeSet<String> {
        let declares = version.summary.declares.iter();
        declares
            .map(|one| format!("{} ({} {})", one.operator, one.api_version, one.kind))
            .collect()
    };
    section(
        &mut text,
        "operators",
        &operators(before),
        &operators(after),
    );
    section(
        &mut text,
        "permissions",
        &permissions(&before.summary.permissions),
        &permissions(&after.summary.permissions),
    );
    let keys: BTreeSet<&String> = before.fields.keys().chain(after.fields.keys()).collect();
    let mut lines = String::new();
    for key in keys {
        let line = match (before.fields.get(key), after.fields.get(key)) {
            (Some(before), Some(after)) if before != after => {
                format!("~ {key}: {before} → {after}\n")
            }
            (Some(before), None) => format!("- {key}: {before}\n"),
            (None, Some(after)) => format!("+ {key}: {after}\n"),
            _ => continue,
        };
        lines += &line;
    }
    if !lines.is_empty() {
        text.extend(["fields\n", &*lines]);
    }
    if text.is_empty() {
        return text;
    }
    format!("--- {}\n+++ {}\n{text}", before.name, after.name)
}

fn section(text: &mut String, title: &str, before: &BTreeSet<String>, after: &BTreeSet<String>) {
    let gone = before.difference(after).map(|line| format!("- {line}\n"));
    let new = after.difference(before).map(|line| format!("+ {line}\n"));
    let lines: String = gone.chain(new).collect();
    if !lines.is_empty() {
        text.extend([title, "\n", &*lines]);
    }
}

/// The permissions one by one: a rule that is split differently is no change.
fn permissions(rules: &[Rule]) -> BTreeSet<String> {
    let mut all = BTreeMap::<String, BTreeSet<&str>>::new();
    for rule in rules {
        let place = match &rule.namespace {
            Some(namespace) => format!(" in namespace {namespace}"),
            None => String::new(),
        };
        let names = match &*rule.resource_names {
            [] => String::new(),
            names => format!(" named {}", names.join(", ")),
        };
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let dot = if group.is_empty() { "" } else { "." };
                let what = format!("{resource}{dot}{group}{names}{place}");
                let verbs = rule.verbs.iter().map(String::as_str);
                all.entry(what).or_default().extend(verbs);
            }
        }
    }
    let lines = all
        .iter()
        .flat_map(|(what, verbs)| verbs.iter().map(move |verb| format!("{verb} {what}")));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(name: &str, verbs: &[&str], fields: &Value) -> Version {
        let mut flat = BTreeMap::new();
        flatten("spec", fields, &mut flat);
        Version {
            name: name.to_owned(),
            summary: Summary {
                kind: Kind::Katalog,
                name: "ponds".to_owned(),
                version: None,
                description: None,
                author: None,
                license: None,
                tags: Vec::new(),
                orkestra: "0".to_owned(),
                declares: Vec::new(),
                permissions: vec![Rule {
                    namespace: None,
                    api_groups: vec!["apps".to_owned()],
                    resources: vec!["deployments".to_owned()],
                    verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
                    resource_names: Vec::new(),
                }],
            },
            fields: flat,
        }
    }

    #[test]
    fn fields_and_permissions_that_differ_are_listed_and_equal_ones_are_not() {
        let before = version(
            "a",
            &["get", "list"],
            &serde_json::json!({"x": 1, "y": ["a"]}),
        );
        let after = version(
            "b",
            &["list", "patch"],
            &serde_json::json!({"x": 2, "y": ["a"], "z": {"w": true}}),
        );
        let expected = "--- a\n+++ b\npermissions\n- get deployments.apps\n+ patch deployments.apps\nfields\n~ spec.x: 1 → 2\n+ spec.z.w: true\n";
        assert_eq!(changes(&before, &after), expected);
        assert_eq!(changes(&after, &after), "");
    }

    #[test]
    fn two_paths_are_references_only_if_they_are_written_so() {
        for reference in ["oci://reg.example/a:v1", "reg.example/a:v1", "postgres@v14"] {
            assert!(is_reference(Path::new(reference)), "{reference}");
        }
        for path in ["katalog.yaml", "operators/pond", "Cargo.toml", "a b:c"] {
            assert!(!is_reference(Path::new(path)), "{path}");
        }
    }
}
