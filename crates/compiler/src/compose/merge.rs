//! Merges a composition with the artifacts of its sources.
//!
//! ```text
//!  each source, in order ──► its Katalogs ──► one Part each ── overrides of spec.crds ──► Part with layers
//!                   └──► a Komposer ──► merged in the same way first, then it counts as its Parts
//!  all Parts ── assemble ──► ResolvedComposition
//! ```
//!
//! One file: the rules of a merge apply in a fixed order to one accumulator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::artifact::{Artifact, Artifacts, SourceRecord};
use super::assemble;
use super::authority::Authored;
use super::blocks::Blocks;
use super::composition::{Composition, MemberKatalog, under_spec};
use super::locks::Locks;
use super::request::{Base, RequestKind, SourceRequest};
use super::resolved::ResolvedComposition;
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, did_you_mean};
use orkestra_language::document::{
    DocumentKind, KatalogDocument, Source, parse_stream, read_katalog, read_komposer,
};
use orkestra_language::tree::{Layer, Tree, TreeKey};

/// The maximum number of sources of a composition, those of nested compositions included.
const MOST_SOURCES: usize = 1000;
/// The maximum depth of compositions in compositions.
const MOST_NESTED: usize = 16;
/// The maximum number of operators of a composition.
const MOST_OPERATORS: usize = 2000;

/// The result of a merge.
#[derive(Debug, Clone)]
pub enum Merged {
    /// Artifacts are missing: fetch them, add them to the [`Artifacts`] by their identity, and merge again. Each identity is
    /// named once.
    Need(Vec<SourceRequest>),
    /// A nested composition requires a lock: read the lock file beside the outermost one, set [`Composition::beside`], and merge
    /// again.
    NeedLock,
    /// Everything is there. With warnings.
    Done(Box<ResolvedComposition>, Vec<Diagnostic>),
}

/// Merges a composition with the artifacts of its sources. The same input gives the same result.
///
/// # Errors
/// Every problem of the composition, its sources and their overrides, each with its file, line and column.
pub fn merge(composition: &Composition, artifacts: &Artifacts) -> Result<Merged, Diagnostics> {
    let mut merger = Merger {
        artifacts,
        locks: Locks::around(composition),
        authored: Authored::of(&composition.base),
        root: composition.base.clone(),
        found: Diagnostics::default(),
        needs: Vec::new(),
        needs_lock: false,
        parts: Vec::new(),
        sources: Vec::new(),
        roots: Vec::new(),
        stable: BTreeMap::new(),
        names: BTreeSet::new(),
        operators: BTreeMap::new(),
        blocks: Blocks::default(),
        within: Vec::new(),
        count: 0,
    };
    merger.composition(composition, &mut Vec::new());
    let Merger {
        mut found,
        needs,
        parts,
        sources,
        roots,
        blocks,
        locks,
        needs_lock,
        ..
    } = merger;
    if needs_lock {
        return Ok(Merged::NeedLock);
    }
    if !needs.is_empty() {
        return Ok(Merged::Need(needs));
    }
    if found.has_errors() {
        found.cap();
        return Err(found);
    }
    let used = assemble::MergeInputs {
        artifacts,
        roots,
        sources,
        required_lock: locks.into_required(),
    };
    assemble::assemble(composition, parts, &blocks, used, found)
        .map(|(resolved, warnings)| Merged::Done(Box::new(resolved), warnings))
}

struct Merger<'a> {
    artifacts: &'a Artifacts,
    /// The locks of the compositions that are being merged.
    locks: Locks<'a>,
    /// Whether the lock file is needed.
    needs_lock: bool,
    /// What the outermost composition names, which fetched documents may name too.
    authored: Authored,
    /// Where the outermost composition is: the names of files on disk are relative to it.
    root: Base,
    found: Diagnostics,
    needs: Vec<SourceRequest>,
    parts: Vec<MemberKatalog>,
    sources: Vec<SourceRecord>,
    /// The artifacts whose files can be referenced, by identity.
    roots: Vec<String>,
    /// Names of the sources that stay when a source gets another version, by identity.
    stable: BTreeMap<String, String>,
    /// The names of parts, which are unique.
    names: BTreeSet<String>,
    /// The part of each operator.
    operators: BTreeMap<String, usize>,
    blocks: Blocks,
    /// The positions of the sources whose compositions are being merged, the outermost first.
    within: Vec<usize>,
    /// The number of sources so far.
    count: usize,
}

/// A document of an artifact.
struct File<'a> {
    /// Its name in messages.
    shown: String,
    /// Its stable name: without a digest or version.
    stable: String,
    text: &'a str,
    /// The document that its own relative paths start from.
    base: Base,
    /// The position of its source.
    source: usize,
}

impl Merger<'_> {
    /// Adds the parts of a composition. `chain` has the names of the compositions around it.
    fn composition(&mut self, composition: &Composition, chain: &mut Vec<String>) {
        let start = self.parts.len();
        chain.push(composition.identity());
        self.locks.push(composition);
        self.needs_lock |= self.locks.needs_file() && !self.authored.is_closed;
        let requests = composition.requests_from(&self.root);
        for request in &requests {
            self.authored.add(request);
        }
        for request in requests {
            self.count += 1;
            if self.count > MOST_SOURCES {
                let message =
                    format!("more than {MOST_SOURCES} sources, those of nested Komposers included");
                self.found.push(request.problem(Code::TooLarge, message));
                break;
            }
            self.source(&request, chain);
        }
        chain.pop();
        self.locks.pop();
        if chain.is_empty() {
            self.blocks.add_own(&composition.tree);
        } else {
            let has_operators = composition.is_katalog;
            self.blocks.add_source(&composition.tree, has_operators);
        }
        if self.needs.is_empty() {
            self.overrides(composition, start);
        }
    }

    fn source(&mut self, request: &SourceRequest, chain: &mut Vec<String>) {
        if let Some(problem) = self.authored.refusal(request) {
            self.found.push(problem);
            return;
        }
        let (id, only) = match (&request.base, &request.kind) {
            (Base::Cluster { .. }, RequestKind::File { path }) => {
                let message = format!("`{path}` is a path, and there are no files in a cluster");
                let hint = "use a registry, a Git repository, an HTTPS URL, a ConfigMap or a suspended Katalog as the source";
                let problem = request.problem(Code::PathInCluster, message);
                self.found.push(problem.hint(hint));
                return;
            }
            // A file beside the composition, in the same artifact.
            (Base::Artifact { id, .. }, RequestKind::File { path }) => (id, Some(path.as_str())),
            _ => (&request.id, None),
        };
        let Some(artifact) = self.artifacts.get(id).map(Arc::clone) else {
            if self.needs.iter().all(|needed| needed.id != request.id) {
                self.needs.push(request.clone());
            }
            return;
        };
        if only.is_none() {
            if let Some(problem) = self.locks.check(request, &artifact) {
                self.found.push(problem);
                return;
            }
            self.stable
                .entry(id.clone())
                .or_insert_with(|| request.stable());
        }
        self.files(request, (id, only), &artifact, chain);
    }

    /// Reads the files of an artifact that the request wants: the one called `only`, or those that it selects.
    fn files(
        &mut self,
        request: &SourceRequest,
        (id, only): (&str, Option<&str>),
        artifact: &Artifact,
        chain: &mut Vec<String>,
    ) {
        let source = self.record(id, artifact, &request.kind);
        let names = || artifact.documents.iter().map(|file| file.name.as_str());
        let is_wanted = |name: &str| match only {
            Some(path) => name == path,
            None => request.wants(name, names()),
        };
        let files = artifact.documents.iter();
        let wanted = files.filter(|file| is_wanted(&file.name));
        let (mut is_any_file, mut is_any) = (false, false);
        for file in wanted {
            is_any_file = true;
            let base = match &request.kind {
                RequestKind::File { path } if only.is_none() => Base::File(path.clone()),
                _ => Base::Artifact {
                    id: id.to_owned(),
                    name: file.name.clone(),
                },
            };
            let file = File {
                shown: artifact.file(&file.name),
                stable: below(&self.stable[id], &file.name),
                text: &file.text,
                base,
                source,
            };
            is_any |= self.file(request, &file, chain);
        }
        let message = match only {
            _ if is_any => return,
            _ if is_any_file => format!("{} has no Katalog", artifact.url),
            Some(path) => format!("there is no file `{path}` in {}", artifact.url),
            None => format!("there is no {} in {}", request.wanted(), artifact.url),
        };
        self.found.push(request.problem(Code::NoDocument, message));
    }

    /// Returns the position of the source's record.
    fn record(&mut self, id: &str, artifact: &Artifact, kind: &RequestKind) -> usize {
        let known = self.sources.iter().position(|record| record.source == id);
        known.unwrap_or_else(|| {
            self.sources.push(SourceRecord::of(id, artifact));
            if !matches!(kind, RequestKind::File { .. }) {
                self.roots.push(id.to_owned());
            }
            self.sources.len() - 1
        })
    }

    /// Adds the documents of a file; false if it has none of ours.
    fn file(&mut self, request: &SourceRequest, file: &File<'_>, chain: &mut Vec<String>) -> bool {
        let stream = parse_stream(&file.shown, file.text);
        let mut is_any = !stream.problems.is_empty();
        self.found.extend(stream.problems);
        for source in &stream.sources {
            match DocumentKind::of(source) {
                Some(DocumentKind::Katalog) => self.katalog(request, source, file, chain),
                Some(DocumentKind::Komposer) => match read_komposer(source) {
                    Ok((document, warnings)) => {
                        self.found.extend(warnings);
                        let nested = Composition::of_komposer(&document, file.base.clone());
                        self.nested(request, &nested, file.source, chain);
                    }
                    Err(problems) => self.found.extend(problems),
                },
                None if source.tree.get("kind").is_none() => {
                    self.katalog(request, source, file, chain);
                }
                _ => continue,
            }
            is_any = true;
        }
        is_any
    }

    fn katalog(
        &mut self,
        request: &SourceRequest,
        source: &Source,
        file: &File<'_>,
        chain: &mut Vec<String>,
    ) {
        let (document, warnings) = match read_katalog(source) {
            Ok(read) => read,
            Err(problems) => return self.found.extend(problems),
        };
        self.found.extend(warnings);
        if let Some(nested) = Composition::of_katalog(&document, file.base.clone()) {
            return self.nested(request, &nested, file.source, chain);
        }
        self.locks.add_document(&file.shown);
        self.blocks.add_source(&document.tree, true);
        let KatalogDocument {
            name, spec, tree, ..
        } = document;
        self.part(MemberKatalog {
            name: file.stable.clone(),
            file: file.shown.clone(),
            katalog: name,
            source: Some(file.source),
            within: self.within.clone(),
            tree,
            over: Vec::new(),
            spec: Some(spec),
        });
    }

    /// Adds the parts of a composition that the source at position `source` declares.
    fn nested(
        &mut self,
        request: &SourceRequest,
        nested: &Composition,
        source: usize,
        chain: &mut Vec<String>,
    ) {
        let identity = nested.identity();
        if let Some(start) = chain.iter().position(|known| *known == identity) {
            let circle = chain[start..].join(" → ");
            let message = format!("`{identity}` is composed of itself: {circle} → {identity}");
            let problem = request.problem(Code::ImportCycle, message);
            self.found.push(problem.hint("remove one of these sources"));
        } else if chain.len() >= MOST_NESTED {
            let message = format!("Komposers are nested more than {MOST_NESTED} deep");
            self.found.push(request.problem(Code::TooLarge, message));
        } else {
            self.within.push(source);
            self.composition(nested, chain);
            self.within.pop();
        }
    }

    /// Adds a part, unless another one has one of its operators.
    fn part(&mut self, mut part: MemberKatalog) {
        let mut number = 1;
        let stable = part.name.clone();
        while !self.names.insert(part.name.clone()) {
            number += 1;
            part.name = format!("{stable}#{number}");
        }
        let at = FieldPath::root().field("spec").field("crds");
        for key in keys(&part.tree) {
            let Some(other) = self.operators.get(&key.name) else {
                self.operators.insert(key.name.clone(), self.parts.len());
                continue;
            };
            let other = &self.parts[*other];
            let path = at.field(&key.name);
            let first = match other.tree.locate_key(&path) {
                Some(span) => format!("{}:{}:{}", other.file, span.line, span.column),
                None => other.file.clone(),
            };
            let message = format!("{first} declares `{}` too", key.name);
            let mut problem = Diagnostic::error(Code::SameNameTwice, path, message)
                .hint("remove one of the two sources: an operator has one declaration");
            problem.at_key = true;
            problem.locate(&part.tree, Some(&part.file));
            self.found.push(problem);
        }
        if self.operators.len() > MOST_OPERATORS {
            let message = format!("more than {MOST_OPERATORS} operators");
            let mut problem = Diagnostic::error(Code::TooLarge, at, message);
            problem.locate(&part.tree, Some(&part.file));
            self.found.push(problem);
        }
        self.parts.push(part);
    }

    /// Applies `spec.crds` of a composition to the parts from `start`, which are those of its sources.
    fn overrides(&mut self, composition: &Composition, start: usize) {
        let file = composition.file.clone().unwrap_or_default();
        let mut layers: BTreeMap<usize, Vec<(TreeKey, Tree)>> = BTreeMap::new();
        let mut own = Vec::new();
        let crds = composition.tree.below(&["spec", "crds"]);
        for (key, entry) in crds.and_then(Tree::as_map).unwrap_or_default() {
            let part = self.operators.get(&key.name).filter(|part| **part >= start);
            match part {
                Some(_) if entry.is_null() => {}
                Some(part) => {
                    let entry = conformed(entry, &self.parts[*part], &key.name);
                    let layer = layers.entry(*part).or_default();
                    layer.push((key.clone(), entry));
                }
                None => {
                    if self.is_own(composition, key, entry, start) {
                        own.push((key.clone(), entry.clone()));
                    }
                }
            }
        }
        for (part, entries) in layers {
            self.parts[part].over.push(Layer {
                file: file.as_str().into(),
                tree: under_spec(vec![(TreeKey::new("crds"), Tree::map(entries))]),
            });
        }
        if !own.is_empty() {
            let part = composition.own_part(Tree::map(own), &self.within);
            self.part(part);
        }
    }

    /// True if an entry that no source has is an operator of its own: always in a Katalog, in a Komposer if it is complete.
    fn is_own(
        &mut self,
        composition: &Composition,
        key: &TreeKey,
        entry: &Tree,
        start: usize,
    ) -> bool {
        if composition.is_katalog {
            return true;
        }
        let path = FieldPath::root()
            .field("spec")
            .field("crds")
            .field(&key.name);
        let is_complete = ["apiTypes", "crdFile"]
            .iter()
            .any(|field| entry.get(field).is_some());
        let known = self.operators.iter().filter(|(_, part)| **part >= start);
        let near = did_you_mean(&key.name, known.map(|(name, _)| name.as_str()));
        let mut problem = if is_complete {
            let message = format!(
                "no source has an operator `{}`: this entry is a new one",
                key.name
            );
            let mut warning = Diagnostic::warning(Code::UnknownOperator, path, message);
            warning.hint = near;
            warning
        } else {
            let message = format!("no source has an operator `{}`", key.name);
            let mut error = Diagnostic::error(Code::UnknownOperator, path, message);
            let complete = || "a new operator needs `apiTypes` or `crdFile`".to_owned();
            error.hint = near.or_else(|| Some(complete()));
            error
        };
        problem.at_key = true;
        problem.locate(&composition.tree, composition.file.as_deref());
        self.found.push(problem);
        is_complete
    }
}

/// Fields of an entry that have two places. If both are declared, the second one takes precedence.
const TWO_PLACES: &[[&[&str]; 2]] = &[
    [&["workers"], &["operatorBox", "reconciler", "workers"]],
    [&["finalizers"], &["operatorBox", "finalizers"]],
];

/// Returns an override with fields that have two places at the place where the part declares them.
fn conformed(entry: &Tree, part: &MemberKatalog, name: &str) -> Tree {
    let mut entry = entry.clone();
    let declares = |tree: &Tree, place: &[&str]| {
        let entry = tree.below(&["spec", "crds", name]);
        entry.and_then(|entry| entry.below(place)).is_some()
    };
    let all = || {
        part.over
            .iter()
            .map(|layer| &layer.tree)
            .chain([&part.tree])
    };
    for [one, other] in TWO_PLACES {
        for (from, to) in [(one, other), (other, one)] {
            let is_there = all().any(|tree| declares(tree, to));
            if is_there
                && !all().any(|tree| declares(tree, from))
                && entry.below(to).is_none()
                && let Some((key, value)) = entry.take(from)
            {
                entry.override_with(&nested(to, &key, value));
            }
        }
    }
    entry
}

/// Returns a map that has only a value at a path of keys.
fn nested(place: &[&str], key: &TreeKey, value: Tree) -> Tree {
    let Some((name, above)) = place.split_last() else {
        return value;
    };
    let last = TreeKey {
        name: (*name).to_owned(),
        span: key.span,
    };
    let inner = Tree::map(vec![(last, value)]);
    let wrap = |inner, name: &&str| Tree::map(vec![(TreeKey::new(name), inner)]);
    above.iter().rev().fold(inner, wrap)
}

/// Returns the keys of `spec.crds`.
fn keys(tree: &Tree) -> impl Iterator<Item = &TreeKey> {
    let crds = tree.below(&["spec", "crds"]).and_then(Tree::as_map);
    crds.unwrap_or_default().iter().map(|(key, _)| key)
}

/// Returns the name of a file of a source.
fn below(source: &str, name: &str) -> String {
    match name {
        "" => source.to_owned(),
        name => format!("{source}/{name}"),
    }
}
