//! Compiles files to plans: all steps before anything is written.
//!
//! One file: the steps from files to plans, in order.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use orkestra_cluster::requests::Cluster;
use orkestra_core::{
    api::{ApiTypes, HelmChart, SetupFile, SetupWait, names},
    compose::{ResolvedComposition, SourceRecord},
    definitions::{Schemas, kind_named},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{KatalogDocument, MotifDocument, Source, Stream, parse_stream, read_katalog},
    plan::{Declaring, GroupKind, KatalogRef, Plan},
    scope::Library,
    value::{self, Node},
};
use serde_json::Value;

use super::{
    super::{calls::ServedResource, directory::KatalogInfo, katalog::disabled, katalog::kinds_of},
    FileError,
    charts::NamedChart,
    manifest::{Manifest, read_text},
};
use crate::{
    compose::{self, Fetch},
    files::{self, Compiled, beside},
    meta::{known::kinds_named, object::KatalogObject},
};

/// A text file.
#[derive(Debug)]
pub(super) struct LoadedFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A Katalog from a file that can run.
#[derive(Debug)]
pub(super) struct LoadedKatalog {
    pub(super) reference: KatalogRef,
    /// The kind of the document.
    pub(super) kind: Declaring,
    /// The sources that it is composed from.
    pub(super) sources: Vec<SourceRecord>,
    pub(super) plan: Arc<Plan>,
    pub(super) revision: String,
    pub(super) disabled: Vec<String>,
    pub(super) suspended: bool,
    pub(super) about: KatalogInfo,
    pub(super) storage: BTreeMap<GroupKind, String>,
    /// The files to apply before it runs, entry by entry.
    pub(super) entries: Vec<EntryFiles>,
}

/// The files of one entry to apply.
#[derive(Debug, Default)]
pub(super) struct EntryFiles {
    /// Manifests, and the objects to wait for after each.
    pub(super) setup: Vec<(Manifest, Vec<SetupWait>)>,
    /// The charts, after the manifests.
    pub(super) charts: Vec<NamedChart>,
    /// The objects to wait for after all of them.
    pub(super) wait: Vec<SetupWait>,
    pub(super) crd: Option<Manifest>,
    pub(super) resources: Vec<Manifest>,
}

impl EntryFiles {
    /// Returns all files, in the order in which they are applied.
    fn files(&self) -> impl Iterator<Item = &Manifest> {
        let setup = self.setup.iter().map(|(file, _)| file);
        setup.chain(&self.crd).chain(&self.resources)
    }
}

/// Reads the Katalog files.
pub(super) async fn read(paths: &[PathBuf]) -> Result<Vec<LoadedFile>, FileError> {
    let mut contents = Vec::with_capacity(paths.len());
    for path in paths {
        contents.push(LoadedFile {
            path: path.clone(),
            text: read_text(path).await?,
        });
    }
    Ok(contents)
}

/// Returns a hash of the Katalog files, the sources of compositions and the files that they name; an unreadable file counts
/// as empty.
pub(super) async fn contents_hash(contents: &[LoadedFile], fetch: &dyn Fetch) -> String {
    let given = given(&parse(contents));
    let mut all = String::new();
    for LoadedFile { path, text } in contents {
        all.push_str(&value::hash_text(text));
        let shown = path.display().to_string();
        for source in &parse_stream(&shown, text).sources {
            let composed = composed(source, &shown, fetch).await;
            let named = match &composed {
                Some(Ok(resolved)) => {
                    all.push_str(&value::hash(&Node::from(&resolved.to_json())));
                    resolved.document.clone()
                }
                Some(Err(problems)) => {
                    all.push_str(&value::hash_text(&problems.to_string()));
                    continue;
                }
                None => match read_katalog(source) {
                    Ok((document, _)) => document,
                    Err(_) => continue,
                },
            };
            let composed = composed
                .as_ref()
                .and_then(|resolved| resolved.as_ref().ok());
            let missing = |library: &Library| library.missing(&named.spec);
            let fill = |library: &mut Library, missing| match composed {
                Some(resolved) => resolved.fill(library, missing),
                None => missing,
            };
            let taken = files::take_with(path, missing, fill, (&given, fetch)).await;
            all.push_str(&taken.digest);
            for entry in entries(path, &named, composed) {
                for file in entry.files() {
                    all.push_str(&value::hash_text(&file.read().await.unwrap_or_default()));
                }
                for chart in &entry.charts {
                    all.push_str(&chart.hash().await);
                }
            }
        }
    }
    value::hash_text(&all)
}

/// Fetches and merges the sources of a document; `None` if it has none.
async fn composed(
    source: &Source,
    file: &str,
    fetch: &dyn Fetch,
) -> Option<Result<ResolvedComposition, Diagnostics>> {
    let (composition, _) = match compose::composition(source, file) {
        Ok(composition) => composition?,
        Err(problems) => return Some(Err(problems)),
    };
    let resolved = compose::resolve(&composition, fetch).await;
    Some(resolved.map(|(resolved, _)| resolved))
}

/// The documents of a file.
pub(super) struct Parsed<'a> {
    path: &'a Path,
    stream: Stream,
}

/// Parses the files.
pub(super) fn parse(contents: &[LoadedFile]) -> Vec<Parsed<'_>> {
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
pub(super) async fn kinds_in(parsed: &[Parsed<'_>], fetch: &dyn Fetch) -> BTreeSet<GroupKind> {
    let mut kinds = BTreeSet::new();
    for file in parsed {
        let shown = file.path.display().to_string();
        for source in &file.stream.sources {
            match composed(source, &shown, fetch).await {
                Some(Ok(resolved)) => kinds.extend(kinds_named(&resolved.document.tree.to_json())),
                // Its problems are reported when it is compiled.
                Some(Err(_)) => {}
                None => kinds.extend(kinds_named(&source.tree.to_json())),
            }
        }
    }
    kinds
}

/// Compiles all Katalogs of the files: `schemas` are those known beside the files.
pub(super) async fn compile(
    parsed: Vec<Parsed<'_>>,
    schemas: &Schemas,
    fetch: &dyn Fetch,
) -> Result<(Vec<LoadedKatalog>, Vec<Diagnostic>), FileError> {
    let (mut loaded, mut problems) = (Vec::new(), Diagnostics::default());
    let (given, mut names) = (given(&parsed), BTreeSet::new());
    for Parsed { path, stream } in parsed {
        let Stream {
            sources,
            problems: mut found,
        } = stream;
        let checked = {
            let known = files::CheckContext {
                schemas,
                motifs: &given,
                fetch,
            };
            files::check(path, &sources, known).await
        };
        found.extend(checked.problems);
        if checked.katalogs.is_empty() && !found.has_errors() {
            found.push(files::without_katalog(&path.display().to_string()));
        }
        for katalog in checked.katalogs {
            if !names.insert(katalog.document.name.clone()) {
                found.extend(named_twice(&katalog.document));
            }
            loaded.push(LoadedKatalog::of(path, katalog));
        }
        files::in_order(&mut found, path);
        problems.extend(found);
    }
    Ok((loaded, problems.into_result().map_err(FileError::Invalid)?))
}

impl LoadedKatalog {
    fn of(path: &Path, katalog: Compiled) -> Self {
        let Compiled {
            document,
            schemas,
            library: _,
            plan,
            composed,
            kind,
        } = katalog;
        let written = document.tree.to_json();
        // Notes and profiles of sources are not in the document.
        let whole = composed.as_ref().map(|composed| composed.to_json());
        let mut hash = value::hash(&Node::from(whole.as_ref().unwrap_or(&written)));
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
            kind,
            sources: (composed.as_ref()).map_or_else(Vec::new, |composed| composed.sources.clone()),
            storage: kinds_of(&plan).into_iter().filter_map(stored).collect(),
            disabled: disabled(&document.spec, &plan),
            suspended: document.spec.suspend == Some(true)
                || document
                    .annotations
                    .get(names::ANNOTATION_SUSPEND)
                    .is_some_and(|value| value == "true"),
            about: KatalogInfo::read(&written),
            entries: entries(path, &document, composed.as_deref()),
            plan,
        }
    }
}

/// Returns the files to apply for the enabled entries, in the order of their names.
fn entries(
    katalog: &Path,
    document: &KatalogDocument,
    composed: Option<&ResolvedComposition>,
) -> Vec<EntryFiles> {
    let crds = FieldPath::root().field("spec").field("crds");
    let enabled = document.spec.crds.iter();
    let enabled = enabled.filter(|(_, entry)| entry.is_enabled());
    let chart = |declared: &HelmChart| NamedChart {
        declared: declared.clone(),
        katalog: katalog.to_owned(),
    };
    enabled
        .map(|(name, entry)| {
            let at = crds.field(name);
            let manifest = |at: FieldPath, file: &str| manifest(katalog, composed, &at, file);
            let setup = |(index, file): (usize, &SetupFile)| {
                let at = at.field("setup").index(index);
                (manifest(at, file.path()), file.wait().to_vec())
            };
            EntryFiles {
                setup: (entry.setup.iter())
                    .flat_map(|declared| declared.files().iter().enumerate().map(setup))
                    .collect(),
                charts: (entry.setup.iter())
                    .flat_map(|declared| declared.charts().iter().map(chart))
                    .collect(),
                wait: (entry.setup.iter())
                    .flat_map(|declared| declared.wait().to_vec())
                    .collect(),
                crd: (entry.crd_file.as_ref()).map(|file| manifest(at.field("crdFile"), file)),
                resources: (entry.cr_files.iter().enumerate())
                    .map(|(index, file)| manifest(at.field("crFiles").index(index), file))
                    .collect(),
            }
        })
        .collect()
}

/// Returns the file that the field at `at` names: of an artifact, or beside the document that the field comes from.
fn manifest(
    katalog: &Path,
    composed: Option<&ResolvedComposition>,
    at: &FieldPath,
    file: &str,
) -> Manifest {
    let inside = composed.and_then(|composed| composed.manifest(at, file)?.ok());
    if let Some((name, text)) = inside {
        return Manifest {
            path: name.into(),
            text: Some(text.into()),
        };
    }
    let owner = composed.and_then(|composed| composed.file_of(at));
    Manifest {
        path: beside(owner.map_or(katalog, Path::new), file),
        text: None,
    }
}

fn named_twice(document: &KatalogDocument) -> Diagnostics {
    let path = FieldPath::root().field("metadata").field("name");
    let message = format!("another Katalog already has the name `{}`", document.name);
    let mut found = Diagnostics::from(Diagnostic::error(Code::SameNameTwice, path, message));
    found.locate(&document.tree, document.file.as_deref());
    found
}

/// Returns the first of `kinds` that a Katalog in the cluster declares or has not released, and that Katalog.
pub(super) async fn claimed_in_cluster(
    cluster: &Cluster,
    kinds: &BTreeSet<GroupKind>,
) -> Result<Option<(GroupKind, KatalogRef)>, FileError> {
    let mut katalogs = Vec::new();
    for kind in [Declaring::Katalog, Declaring::Komposer] {
        match ServedResource::declaring(cluster, kind)
            .list(None, None)
            .await
        {
            Err(error) if error.is_not_found() => {}
            listed => katalogs.extend(listed?),
        }
    }
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
mod tests;
