//! Compiles files to plans: all steps before anything is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use kube::Client;
use orkestra_core::{
    api::{ApiTypes, HelmChart, SetupFile, SetupWait},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{KatalogDocument, MotifDocument, Stream, parse_stream, read_stream},
    plan::{GroupKind, KatalogRef, Library, Plan, Schemas, kind_named},
    value::{self, Node},
};
use serde_json::Value;

use super::{
    super::{
        calls::Resource,
        directory::About,
        katalog::{KatalogObject, disabled, kinds_named, kinds_of},
    },
    FileError,
    charts::NamedChart,
};
use crate::files::{self, Compiled, beside};

/// A text file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A Katalog from a file that can run.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) reference: KatalogRef,
    pub(super) plan: Arc<Plan>,
    pub(super) revision: String,
    pub(super) disabled: Vec<String>,
    pub(super) about: About,
    pub(super) storage: BTreeMap<GroupKind, String>,
    /// The files to apply before it runs, entry by entry.
    pub(super) entries: Vec<Entry>,
}

/// The files of one entry to apply.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Manifests, and the objects to wait for after each.
    pub(super) setup: Vec<(PathBuf, Vec<SetupWait>)>,
    /// The charts, after the manifests.
    pub(super) charts: Vec<NamedChart>,
    /// The objects to wait for after all of them.
    pub(super) wait: Vec<SetupWait>,
    pub(super) crd: Option<PathBuf>,
    pub(super) resources: Vec<PathBuf>,
}

impl Entry {
    /// Returns all files, in the order in which they are applied.
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let setup = self.setup.iter().map(|(file, _)| file);
        setup.chain(&self.crd).chain(&self.resources)
    }
}

/// Reads the Katalog files.
pub(super) async fn read(paths: &[PathBuf]) -> Result<Vec<Content>, FileError> {
    let mut contents = Vec::with_capacity(paths.len());
    for path in paths {
        contents.push(Content {
            path: path.clone(),
            text: read_text(path).await?,
        });
    }
    Ok(contents)
}

/// Reads one text file.
pub(super) async fn read_text(path: &Path) -> Result<String, FileError> {
    files::read_text(path)
        .await
        .map_err(|source| FileError::Read {
            path: path.display().to_string(),
            source,
        })
}

/// Returns a hash of the Katalog files and the files that they name; an unreadable file counts as empty.
pub(super) async fn contents_hash(contents: &[Content]) -> String {
    let given = given(&parse(contents));
    let mut all = String::new();
    for Content { path, text } in contents {
        all.push_str(&value::hash_text(text));
        let named = read_stream(&path.display().to_string(), text)
            .map(|(documents, _)| documents.katalogs)
            .unwrap_or_default();
        for document in &named {
            let missing = |library: &Library| library.missing(&document.spec);
            all.push_str(&files::take(path, missing, &given).await.digest);
        }
        for entry in named.iter().flat_map(|document| entries(path, document)) {
            for file in entry.files() {
                all.push_str(&value::hash_text(
                    &read_text(file).await.unwrap_or_default(),
                ));
            }
            for chart in &entry.charts {
                all.push_str(&chart.hash().await);
            }
        }
    }
    value::hash_text(&all)
}

/// The documents of a file.
pub(super) struct Parsed<'a> {
    path: &'a Path,
    stream: Stream,
}

/// Parses the files.
pub(super) fn parse(contents: &[Content]) -> Vec<Parsed<'_>> {
    let parsed = contents.iter().map(|content| Parsed {
        path: &content.path,
        stream: parse_stream(&content.path.display().to_string(), &content.text),
    });
    parsed.collect()
}

/// Returns the Motifs of the files.
fn given(parsed: &[Parsed<'_>]) -> Vec<MotifDocument> {
    let sources = parsed.iter().flat_map(|file| &file.stream.sources);
    files::motifs(sources)
}

/// Returns the kinds that the documents of the files name.
pub(super) fn kinds_in(parsed: &[Parsed<'_>]) -> BTreeSet<GroupKind> {
    let sources = parsed.iter().flat_map(|file| &file.stream.sources);
    sources
        .flat_map(|source| kinds_named(&source.tree.to_json()))
        .collect()
}

/// Compiles all Katalogs of the files: `schemas` are those known beside the files.
pub(super) async fn compile(
    parsed: Vec<Parsed<'_>>,
    schemas: &Schemas,
) -> Result<(Vec<Loaded>, Vec<Diagnostic>), FileError> {
    let (mut loaded, mut problems) = (Vec::new(), Diagnostics::default());
    let (given, mut names) = (given(&parsed), BTreeSet::new());
    for Parsed { path, stream } in parsed {
        let Stream {
            sources,
            problems: mut found,
        } = stream;
        let checked = files::check(path, &sources, schemas, &given).await;
        found.extend(checked.problems);
        if checked.katalogs.is_empty() && !found.has_errors() {
            found.push(files::without_katalog(&path.display().to_string()));
        }
        for katalog in checked.katalogs {
            if !names.insert(katalog.document.name.clone()) {
                found.extend(named_twice(&katalog.document));
            }
            loaded.push(Loaded::of(path, katalog));
        }
        files::in_order(&mut found, path);
        problems.extend(found);
    }
    Ok((loaded, problems.into_result().map_err(FileError::Invalid)?))
}

impl Loaded {
    fn of(path: &Path, katalog: Compiled) -> Self {
        let Compiled {
            document,
            schemas,
            library: _,
            plan,
        } = katalog;
        let written = document.tree.to_json();
        let mut hash = value::hash(&Node::from(&written));
        hash.truncate(10);
        let stored = |kind: GroupKind| {
            let version = schemas
                .kind(&kind)?
                .versions
                .iter()
                .find(|version| version.storage)?
                .name
                .clone();
            Some((kind, version))
        };
        Self {
            revision: format!("{}-{hash}", plan.katalog.name),
            reference: plan.katalog.clone(),
            storage: kinds_of(&plan).into_iter().filter_map(stored).collect(),
            disabled: disabled(&document.spec, &plan),
            about: About::read(&written),
            entries: entries(path, &document),
            plan,
        }
    }
}

/// Returns the files to apply for the enabled entries, in the order of their names.
fn entries(katalog: &Path, document: &KatalogDocument) -> Vec<Entry> {
    let enabled = document
        .spec
        .crds
        .values()
        .filter(|entry| entry.is_enabled());
    let setup = |file: &SetupFile| (beside(katalog, file.path()), file.wait().to_vec());
    let chart = |declared: &HelmChart| NamedChart {
        declared: declared.clone(),
        katalog: katalog.to_owned(),
    };
    enabled
        .map(|entry| Entry {
            setup: (entry.setup.iter())
                .flat_map(|declared| declared.files().iter().map(setup))
                .collect(),
            charts: (entry.setup.iter())
                .flat_map(|declared| declared.charts().iter().map(chart))
                .collect(),
            wait: (entry.setup.iter())
                .flat_map(|declared| declared.wait().to_vec())
                .collect(),
            crd: entry.crd_file.as_ref().map(|file| beside(katalog, file)),
            resources: entry
                .cr_files
                .iter()
                .map(|file| beside(katalog, file))
                .collect(),
        })
        .collect()
}

fn named_twice(document: &KatalogDocument) -> Diagnostics {
    let path = FieldPath::root().field("metadata").field("name");
    let message = format!("another Katalog has the name `{}` already", document.name);
    let mut found = Diagnostics::from(Diagnostic::error(Code::SameNameTwice, path, message));
    found.locate(&document.tree, document.file.as_deref());
    found
}

/// Returns the first of `kinds` that a Katalog in the cluster declares or has not released, and that Katalog.
pub(super) async fn claimed_in_cluster(
    client: &Client,
    kinds: &BTreeSet<GroupKind>,
) -> Result<Option<(GroupKind, KatalogRef)>, FileError> {
    let katalogs = match Resource::katalogs(client).list(None, None).await {
        Err(error) if error.is_not_found() => return Ok(None),
        listed => listed?,
    };
    let claims = katalogs.into_iter().flat_map(|object| {
        let declared = declared(&object.data);
        let object = KatalogObject::new(object);
        let reference = object.reference();
        let operated = object.status.operated.into_iter();
        operated
            .map(|kind| (kind.group, kind.kind))
            .chain(declared)
            .map(move |claim| (claim, reference.clone()))
    });
    let kind_of = |(group, kind): &(String, String)| GroupKind {
        group: group.as_str().into(),
        kind: kind.as_str().into(),
    };
    Ok(claims
        .map(|(claim, katalog)| (kind_of(&claim), katalog))
        .find(|(kind, _)| kinds.contains(kind)))
}

/// Returns the groups and kinds that a Katalog's object declares, whether it is valid or not.
fn declared(object: &Value) -> Vec<(String, String)> {
    let entries = object.pointer("/spec/crds").and_then(Value::as_object);
    let types = entries
        .into_iter()
        .flat_map(|entries| entries.values())
        .filter_map(|entry| {
            let enabled = entry
                .get("enabled")
                .and_then(Value::as_bool)
                .unwrap_or(true);
            entry.get("apiTypes").filter(|_| enabled)
        });
    types
        .filter_map(|types| {
            let types: ApiTypes = serde_json::from_value(types.clone()).ok()?;
            let kind = kind_named(&types)?;
            Some((kind.group.to_string(), kind.kind.to_string()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_katalog_in_the_cluster_claims_what_it_declares_and_not_what_is_disabled() {
        let object = json!({ "spec": { "crds": {
            "pond": { "apiTypes": { "group": "water.example", "kind": "Pond" } },
            "lake": { "enabled": false, "apiTypes": { "group": "water.example", "kind": "Lake" } },
            "odd": { "apiTypes": 7 },
        }}});
        assert_eq!(
            declared(&object),
            [("water.example".to_owned(), "Pond".to_owned())]
        );
    }
}
