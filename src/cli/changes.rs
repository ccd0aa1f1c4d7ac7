//! `ork diff REF REF`: what changes between two references to artifacts, or between two accepted revisions of a Katalog.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use orkestra_controller::AcceptedRevision;
use orkestra_registry::artifact::{self, File, Kind, Rule, Summary};
use orkestra_sources::{Document, Fetcher, Source};
use serde_json::Value;

use super::{Failure, output};
use orkestra_author::publish::{self, Described};
use orkestra_loader::compose::Remote;

/// True if an argument is a reference to an artifact: no such file exists, and it names a registry or a digest.
pub(crate) fn is_reference(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_named = text.starts_with("oci://") || text.contains('@') || text.contains(':');
    is_named && !path.exists() && orkestra_registry::Reference::parse(&text, "localhost/x").is_ok()
}

/// An artifact and its document.
struct Version {
    name: String,
    /// What it declares and needs; none if that is not known without its sources.
    summary: Option<Summary>,
    fields: BTreeMap<String, String>,
}

/// Prints the operators, permissions and fields that differ; true if there are any.
pub(crate) async fn compare(fetcher: &Fetcher, paths: &[PathBuf; 2]) -> Result<bool, Failure> {
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
    let files = (artifact.documents.iter())
        .map(|file| File {
            name: file.name.clone(),
            content: file.text.clone().into(),
        })
        .collect();
    let name = format!("{}@{}", artifact.url, artifact.digest);
    describe(fetcher, name, files, kind).await
}

/// Returns the name and number of an argument that is a kept revision, such as `ponds@3`: no such file exists.
pub(crate) fn revision(path: &Path) -> Option<(String, i64)> {
    let text = path.to_string_lossy();
    let (name, number) = text.rsplit_once('@')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_revision = is_number && !name.is_empty() && !name.contains([':', '@']) && !path.exists();
    Some((name.to_owned(), number.parse().ok()?)).filter(|_| is_revision)
}

/// Prints the operators, permissions and fields that differ between two accepted revisions; true if there are any.
pub(crate) async fn compare_revisions(
    fetcher: &Fetcher,
    revisions: [(&str, &AcceptedRevision); 2],
) -> Result<bool, Failure> {
    let [before, after] = revisions.map(|(name, one)| open_revision(fetcher, name, one));
    let text = changes(&before.await?, &after.await?);
    output::print(&text)?;
    if text.is_empty() {
        output::note("no differences in operators, permissions and fields");
    }
    Ok(!text.is_empty())
}

/// Returns the permissions of an accepted revision; none if its sources would have to be fetched again.
pub(crate) async fn permissions_of(
    fetcher: &Fetcher,
    name: &str,
    revision: &AcceptedRevision,
) -> Result<BTreeSet<String>, Failure> {
    let version = open_revision(fetcher, name, revision).await?;
    Ok(permissions(version.summary.as_ref()))
}

async fn open_revision(
    fetcher: &Fetcher,
    name: &str,
    revision: &AcceptedRevision,
) -> Result<Version, Failure> {
    let number = revision.number;
    let name = format!("{name}@{number}");
    let document = revision.document.as_ref();
    let document = document.ok_or_else(|| anyhow!("{name} cannot be read: it is damaged"))?;
    // What sources had then is not compared: their documents are not fetched again.
    if !revision.sources.is_empty() {
        let mut fields = BTreeMap::new();
        let spec = document.get("spec").cloned().unwrap_or_default();
        flatten("spec", &spec, &mut fields);
        for source in &revision.sources {
            fields.insert(format!("source {source}"), "used".to_owned());
        }
        return Ok(Version {
            name,
            summary: None,
            fields,
        });
    }
    let files = files_of(revision, document)?;
    describe(fetcher, name, files, Kind::Katalog).await
}

/// Returns the document of an accepted revision and the Motifs that it used, as files.
pub(crate) fn files_of(
    revision: &AcceptedRevision,
    document: &Value,
) -> Result<Vec<File>, anyhow::Error> {
    let named = revision.motifs.iter();
    let named = named.map(|(motif, document)| (format!("motif-{motif}.yaml"), document));
    let all = std::iter::once(("katalog.yaml".to_owned(), document)).chain(named);
    let file = |(name, document)| {
        let text = serde_saphyr::to_string(document)?;
        Ok(File {
            name,
            content: text.into(),
        })
    };
    all.map(file).collect()
}

/// Checks documents in a folder of their own.
async fn describe(
    fetcher: &Fetcher,
    name: String,
    files: Vec<File>,
    kind: Kind,
) -> Result<Version, Failure> {
    let fresh = tempfile::TempDir::new().context("cannot create a temporary folder")?;
    let folder = fresh.path().join("files");
    artifact::write(&folder, &files).context("cannot write the files")?;
    let Described { validated, summary } =
        publish::describe(&folder, kind, &Remote::new(fetcher.clone())).await;
    let Some((summary, _)) = summary else {
        output::snippets(&validated.problems.0, &validated.texts);
        let why = anyhow!("{name}: the documents are not valid");
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
        name,
        summary: Some(summary),
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
        let declares = version.summary.iter().flat_map(|summary| &summary.declares);
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
        &permissions(before.summary.as_ref()),
        &permissions(after.summary.as_ref()),
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
pub(crate) fn permissions(summary: Option<&Summary>) -> BTreeSet<String> {
    let rules: &[Rule] = summary.map_or(&[], |summary| &summary.permissions);
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
            summary: Some(Summary {
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
            }),
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
    fn a_revision_is_a_name_and_a_number() {
        let read = |text: &str| revision(Path::new(text));
        assert_eq!(read("ponds@3"), Some(("ponds".to_owned(), 3)));
        assert_eq!(
            read("komposer/ponds@12"),
            Some(("komposer/ponds".to_owned(), 12))
        );
        for other in [
            "ponds@v3",
            "oci://reg.example/ponds@3",
            "ponds",
            "@3",
            "ponds@",
            "a@sha256:12",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
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
