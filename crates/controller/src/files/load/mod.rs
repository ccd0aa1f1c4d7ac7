//! Compiles files to plans: all steps before anything is written.
//!
//! One file: the steps from files to plans, in order.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use orkestra_cluster::requests::Cluster;
use orkestra_compiler::{
    compilation::Compilation,
    compose::{ResolvedComposition, SourceRecord},
};
use orkestra_language::{
    api::{ApiTypes, HelmChart, SetupFile, SetupWait, names},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{KatalogDocument, MotifDocument, Stream, parse_stream},
};
use orkestra_object::value::{self, Node};
use orkestra_plan::{
    Declaring, GroupKind, KatalogRef, Plan,
    definitions::{CrdShape, GeneratedCrd, Schemas, generated_crds, kind_named},
};
use serde_json::Value;

use super::{
    super::{calls::ServedResource, directory::KatalogInfo, katalog::kinds_of},
    FileError,
    charts::NamedChart,
    manifest::{Manifest, read_text},
};
use crate::object::KatalogObject;
use orkestra_loader::{
    compose::{Fetch, FileInputs},
    files::{self, Checking, Compiled, beside},
};

/// A text file.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The path that it was found at: its own, or that of a folder.
    given: PathBuf,
}

/// A Katalog from a file that can run.
#[derive(Debug)]
pub(crate) struct LoadedKatalog {
    pub(crate) reference: KatalogRef,
    /// The kind of the document.
    pub(crate) kind: Declaring,
    /// The sources that it is composed from.
    pub(crate) sources: Vec<SourceRecord>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) revision: String,
    pub(crate) disabled: Vec<String>,
    pub(crate) suspended: bool,
    pub(crate) about: KatalogInfo,
    pub(crate) storage: BTreeMap<GroupKind, String>,
    /// The files to apply before it runs, entry by entry.
    pub(crate) entries: Vec<EntryFiles>,
}

/// The files of one entry to apply.
#[derive(Debug, Default)]
pub(crate) struct EntryFiles {
    /// Manifests, and the objects to wait for after each.
    pub(crate) setup: Vec<(Manifest, Vec<SetupWait>)>,
    /// The charts, after the manifests.
    pub(crate) charts: Vec<NamedChart>,
    /// The objects to wait for after all of them.
    pub(crate) wait: Vec<SetupWait>,
    pub(crate) crd: Option<Manifest>,
    pub(crate) resources: Vec<Manifest>,
}

impl EntryFiles {
    /// Returns all files, in the order in which they are applied.
    fn files(&self) -> impl Iterator<Item = &Manifest> {
        let setup = self.setup.iter().map(|(file, _)| file);
        setup.chain(&self.crd).chain(&self.resources)
    }
}

/// Reads the files of `paths`: files, and those of folders that contain something of Orkestra or a definition.
pub(crate) async fn read(paths: &[PathBuf]) -> Result<Vec<LoadedFile>, FileError> {
    let mut contents = Vec::with_capacity(paths.len());
    let (mut seen, mut unread) = (BTreeSet::new(), Diagnostics::default());
    for path in paths {
        if !path.is_dir() {
            let text = read_text(path).await?;
            contents.push(LoadedFile {
                path: path.clone(),
                text,
                given: path.clone(),
            });
            continue;
        }
        for found in files::find(path, &mut seen) {
            match found {
                Ok(file) if files::is_relevant(&file.text) => contents.push(LoadedFile {
                    path: file.path,
                    text: file.text,
                    given: path.clone(),
                }),
                Ok(_) => {}
                Err(problem) => unread.push(*problem),
            }
        }
    }
    unread.into_result().map_err(FileError::Invalid)?;
    Ok(contents)
}

/// Katalog files whose references are known, beside the cluster's definitions.
#[derive(Debug)]
pub(crate) struct GatheredFiles {
    files: Vec<GatheredFile>,
    motifs: Vec<MotifDocument>,
    /// The definitions among the documents.
    shapes: Vec<CrdShape>,
}

/// One of them.
#[derive(Debug)]
struct GatheredFile {
    path: PathBuf,
    given: PathBuf,
    /// The problems of parsing it.
    found: Diagnostics,
    has_definitions: bool,
    documents: Vec<Checking>,
}

/// Parses files, and gathers what their documents refer to; `manages_definitions` as in [`FileInputs`].
pub(crate) async fn gather(
    contents: &[LoadedFile],
    fetch: &dyn Fetch,
    manages_definitions: bool,
) -> GatheredFiles {
    let parsed: Vec<(&LoadedFile, Stream)> = contents
        .iter()
        .map(|file| {
            (
                file,
                parse_stream(&file.path.display().to_string(), &file.text),
            )
        })
        .collect();
    let sources = || parsed.iter().flat_map(|(_, stream)| &stream.sources);
    let (motifs, schemas) = (files::motifs(sources()), Schemas::default());
    let shapes = sources().filter_map(|source| files::crd(source).ok());
    let shapes = shapes.collect();
    // Definitions are known later.
    let known = FileInputs {
        schemas: &schemas,
        motifs: &motifs,
        fetch,
        manages_definitions,
    };
    let mut gathered = Vec::with_capacity(parsed.len());
    for (file, stream) in parsed {
        let LoadedFile { path, given, .. } = file;
        let Stream {
            mut sources,
            problems,
        } = stream;
        let before = sources.len();
        let is_named = path == given;
        sources.retain(|source| {
            files::crd(source).is_err() && (is_named || files::is_ours(source, is_named))
        });
        let documents = files::start(path, &sources, known);
        gathered.push(GatheredFile {
            path: path.clone(),
            given: given.clone(),
            found: problems,
            has_definitions: sources.len() < before,
            documents: files::gather_all(documents, known).await,
        });
    }
    GatheredFiles {
        files: gathered,
        motifs,
        shapes,
    }
}

impl GatheredFiles {
    fn compilations(&self) -> impl Iterator<Item = (&Path, &Compilation)> {
        let documents = self.files.iter().flat_map(|file| {
            let documents = file.documents.iter();
            documents.map(move |document| (&*file.path, document))
        });
        documents.filter_map(|(path, document)| match document {
            Checking::Compiling(compilation) => Some((path, &**compilation)),
            Checking::Read(_) => None,
        })
    }

    /// Returns a hash of `contents`, which these are read from, of what they refer to, and of the files that they name; an unreadable
    /// file counts as empty.
    pub(crate) async fn hash(&self, contents: &[LoadedFile]) -> String {
        let texts = contents.iter().map(|file| value::hash_text(&file.text));
        let mut all: String = texts.collect();
        for (path, compilation) in self.compilations() {
            all.push_str(&compilation.inputs_hash());
            let Some((document, composed)) = compilation.resolved() else {
                continue;
            };
            for entry in entries(path, document, composed.map(|composed| &**composed)) {
                for file in entry.files() {
                    all.push_str(&value::hash_text(&file.read().await.unwrap_or_default()));
                }
                for chart in &entry.charts {
                    all.push_str(&chart.hash().await);
                }
            }
        }
        value::hash_text(&all)
    }

    /// Returns the kinds that the documents name.
    pub(crate) fn kinds(&self) -> BTreeSet<GroupKind> {
        let compilations = self.compilations();
        let kinds = compilations.flat_map(|(_, compilation)| compilation.kinds());
        kinds.cloned().collect()
    }

    /// Compiles all Katalogs: `schemas` are those known beside the files.
    pub(crate) async fn compile(
        self,
        schemas: &Schemas,
        fetch: &dyn Fetch,
    ) -> Result<(Vec<LoadedKatalog>, Vec<Diagnostic>), FileError> {
        let mut all = schemas.clone();
        for shape in self.shapes {
            // The cluster's definition is the one that applies.
            if schemas.kind(&shape.group_kind()).is_none() {
                all.insert(shape);
            }
        }
        let known = FileInputs {
            schemas: &all,
            motifs: &self.motifs,
            fetch,
            // The rules were set when the documents were gathered.
            manages_definitions: false,
        };
        let (mut loaded, mut problems) = (Vec::new(), Diagnostics::default());
        let (mut names, mut useful) = (BTreeSet::new(), BTreeSet::new());
        let paths: BTreeSet<PathBuf> = self.files.iter().map(|file| file.given.clone()).collect();
        for file in self.files {
            let (path, mut found) = (&file.path, file.found);
            let checked = files::finish_all(path, file.documents, known).await;
            found.extend(checked.problems);
            if file.has_definitions || !checked.katalogs.is_empty() {
                useful.insert(file.given);
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
        // Definitions are useful only with Katalogs.
        if !problems.has_errors() {
            let missing = paths.iter();
            let missing = missing.filter(|path| loaded.is_empty() || !useful.contains(*path));
            problems
                .extend(missing.map(|path| files::without_katalog(&path.display().to_string())));
        }
        Ok((loaded, problems.into_result().map_err(FileError::Invalid)?))
    }
}

impl LoadedKatalog {
    fn of(path: &Path, katalog: Compiled) -> Self {
        let disabled = katalog.disabled();
        let Compiled {
            document,
            schemas,
            plan,
            composed,
            kind,
            ..
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
            disabled,
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
    let generated = generated_crds(&document.spec);
    let chart = |at: FieldPath, declared: &HelmChart| chart(katalog, composed, &at, declared);
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
                    .flat_map(|declared| declared.charts().iter().enumerate())
                    .map(|(index, declared)| {
                        let at = at.field("setup").field("helm").index(index);
                        chart(at, declared)
                    })
                    .collect(),
                wait: (entry.setup.iter())
                    .flat_map(|declared| declared.wait().to_vec())
                    .collect(),
                crd: (entry.crd_file.as_ref())
                    .map(|file| manifest(at.field("crdFile"), file))
                    .or_else(|| of_schema(&generated, name)),
                resources: (entry.cr_files.iter().enumerate())
                    .map(|(index, file)| manifest(at.field("crFiles").index(index), file))
                    .collect(),
            }
        })
        .collect()
}

/// Returns the definition that the entry `name` declares with `schema`.
fn of_schema(generated: &[GeneratedCrd], name: &str) -> Option<Manifest> {
    let generated = generated
        .iter()
        .find(|one| one.entries.iter().any(|entry| entry == name))?;
    Some(Manifest {
        path: format!("schema of {}", generated.kind).into(),
        text: Some(generated.crd.to_string().into()),
    })
}

/// Returns the chart that the field at `at` names, with its files as those of [`manifest`].
fn chart(
    katalog: &Path,
    composed: Option<&ResolvedComposition>,
    at: &FieldPath,
    declared: &HelmChart,
) -> NamedChart {
    let of = at.field("chart");
    let owner = composed.and_then(|composed| composed.file_of(&of));
    let files = declared.value_files.iter().enumerate();
    let values = files.map(|(index, file)| {
        let at = at.field("valueFiles").index(index);
        manifest(katalog, composed, &at, file)
    });
    NamedChart {
        declared: declared.clone(),
        katalog: owner.map_or(katalog, Path::new).to_owned(),
        values: values.collect(),
        lock: composed.and_then(|composed| composed.lock_of(&of)).cloned(),
    }
}

/// Returns the file that the field at `at` names: of an artifact, or beside the document that the field comes from.
fn manifest(
    katalog: &Path,
    composed: Option<&ResolvedComposition>,
    at: &FieldPath,
    file: &str,
) -> Manifest {
    // A file that the artifact does not have was reported when it was composed: it is never one on disk.
    if let Some(inside) = composed.and_then(|composed| composed.manifest(at, file)) {
        let (name, text) = inside.unwrap_or_else(|_| (file.to_owned(), ""));
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
pub(crate) async fn claimed_in_cluster(
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
