//! Puts the parts of a composition together: types, scopes, and the checks of the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::artifact::{Artifacts, SourceRecord};
use super::blocks::Blocks;
use super::composition::{Composition, MemberKatalog, under_spec};
use super::includes::Includes;
use super::locks::RequiredLock;
use super::resolved::{ResolvedComposition, locate};
use orkestra_language::api::{CrdEntry, KatalogSpec, Scope, Scopes, names};
use orkestra_language::diagnostics::{Diagnostic, Diagnostics};
use orkestra_language::document::{KatalogDocument, check_dependencies, read_present};
use orkestra_language::tree::{Origin, Tree, TreeKey, TreeValue};

/// What was used for a merge.
pub(crate) struct MergeInputs<'a> {
    pub(crate) artifacts: &'a Artifacts,
    /// The artifacts whose files can be referenced, by identity.
    pub(crate) roots: Vec<String>,
    pub(crate) sources: Vec<SourceRecord>,
    pub(crate) required_lock: RequiredLock,
}

/// The result of putting parts together.
pub(crate) struct Assembled {
    pub(crate) document: KatalogDocument,
    pub(crate) sources: Vec<SourceRecord>,
}

/// Puts the parts together, and adds what they reference in their artifacts.
pub(crate) fn assemble(
    composition: &Composition,
    mut parts: Vec<MemberKatalog>,
    blocks: &Blocks,
    used: MergeInputs<'_>,
    mut found: Diagnostics,
) -> Result<(ResolvedComposition, Vec<Diagnostic>), Diagnostics> {
    let MergeInputs {
        artifacts,
        roots,
        sources,
        required_lock,
    } = used;
    let mut includes = Includes::new(artifacts, &roots);
    for part in &mut parts {
        includes.definitions(part, &mut found);
    }
    let head = Head {
        name: composition.name.clone(),
        namespace: composition.namespace.clone(),
        labels: composition.labels.clone(),
        annotations: composition.annotations.clone(),
        file: composition.file.clone(),
        tree: head_tree(composition, blocks),
    };
    let Assembled { document, sources } = whole(&head, parts, sources, &mut found)?;
    includes.references(&document.spec);
    let warnings = capped(found)?;
    let resolved = ResolvedComposition {
        sources,
        document,
        includes: includes.into_included(),
        head: head.tree,
        required_lock,
    };
    Ok((resolved, warnings))
}

/// A composition without its parts.
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) file: Option<String>,
    /// The document as a Katalog without entries.
    pub(crate) tree: Tree,
}

/// Types and checks the parts; errors are in `found` and the result.
pub(crate) fn whole(
    head: &Head,
    parts: Vec<MemberKatalog>,
    mut sources: Vec<SourceRecord>,
    found: &mut Diagnostics,
) -> Result<Assembled, Diagnostics> {
    let mut crds: BTreeMap<String, CrdEntry> = BTreeMap::new();
    let mut merged: Vec<(TreeKey, Tree)> = Vec::new();
    let mut scopes = Vec::with_capacity(parts.len());
    for part in parts {
        let (source, within) = (part.source, part.within.clone());
        let Some((mut scope, tree)) = scope(part, found) else {
            continue;
        };
        let entries = std::mem::take(&mut scope.spec.crds);
        scope.entries = entries.keys().cloned().collect();
        if let Some(record) = source.and_then(|source| sources.get_mut(source)) {
            record.operators.extend(scope.entries.iter().cloned());
            record.operators.sort();
        }
        for around in within.into_iter().chain(source).collect::<BTreeSet<_>>() {
            if let Some(record) = sources.get_mut(around) {
                record.affected.extend(scope.entries.iter().cloned());
                record.affected.sort();
            }
        }
        crds.extend(entries);
        let entries = tree.below(&["spec", "crds"]).and_then(Tree::as_map);
        merged.extend(entries.unwrap_or_default().iter().cloned());
        scopes.push(scope);
    }
    let scopes = Scopes(scopes.into());
    dependencies(&merged, &scopes, found);
    let (spec, mut problems) = read_present(&head.tree);
    problems.locate(&head.tree, head.file.as_deref());
    add_new(found, problems);
    let Some(spec) = spec.filter(|_| !found.has_errors()) else {
        return Err(std::mem::take(found));
    };
    let mut tree = head.tree.clone();
    if let Some(spec) = tree.get_mut("spec").and_then(Tree::as_map_mut) {
        spec.retain(|(key, _)| key.name != "crds");
        spec.push((TreeKey::new("crds"), Tree::map(merged)));
    }
    let document = KatalogDocument {
        name: head.name.clone(),
        namespace: head.namespace.clone(),
        labels: head.labels.clone(),
        annotations: head.annotations.clone(),
        spec: KatalogSpec {
            crds,
            scopes,
            ..spec
        },
        tree,
        file: head.file.clone(),
    };
    Ok(Assembled { document, sources })
}

/// Types a part. Returns its scope, whose `spec` still has the entries, and its tree with overrides.
fn scope(part: MemberKatalog, found: &mut Diagnostics) -> Option<(Scope, Tree)> {
    let origin = Origin {
        over: part.over.into(),
        ..Origin::new(part.name, part.file, part.tree)
    };
    let tree = origin.merged();
    let spec = if let Some(spec) = part.spec.filter(|_| origin.over.is_empty()) {
        spec
    } else {
        let (spec, mut problems) = read_present(&tree);
        for problem in &mut problems.0 {
            problem.locate_in(&origin);
        }
        add_new(found, problems);
        spec?
    };
    let scope = Scope {
        origin: Arc::new(origin),
        katalog: part.katalog.into(),
        entries: BTreeSet::new(),
        spec,
    };
    Some((scope, tree))
}

/// Checks `dependsOn` between the operators of all parts.
fn dependencies(entries: &[(TreeKey, Tree)], scopes: &Scopes, found: &mut Diagnostics) {
    let needed = entries.iter().map(|(key, entry)| {
        let depends = entry
            .get("dependsOn")
            .map(|tree| (TreeKey::new("dependsOn"), tree.clone()));
        (key.clone(), Tree::map(depends.into_iter().collect()))
    });
    let mut problems = Diagnostics::default();
    check_dependencies(
        &under_spec(vec![(TreeKey::new("crds"), Tree::map(needed.collect()))]),
        &mut problems,
    );
    for problem in &mut problems.0 {
        locate(problem, scopes);
    }
    add_new(found, problems);
}

/// Adds the problems that are not reported yet.
fn add_new(found: &mut Diagnostics, problems: Diagnostics) {
    for problem in problems {
        if !found.0.contains(&problem) {
            found.push(problem);
        }
    }
}

fn capped(mut found: Diagnostics) -> Result<Vec<Diagnostic>, Diagnostics> {
    found.cap();
    found.into_result()
}

/// Fields of `spec` of a composition that a Katalog has too, besides those of its own entries.
const SHARED: &[&str] = &["info", "deletionPolicy", "suspend", "revisionHistoryLimit"];

/// Returns the document as a Katalog without entries.
fn head_tree(composition: &Composition, blocks: &Blocks) -> Tree {
    let fields = composition.tree.get("spec").and_then(Tree::as_map);
    let shared = fields.unwrap_or_default().iter();
    let shared =
        shared.filter(|(key, value)| SHARED.contains(&key.name.as_str()) && !value.is_null());
    let mut spec = Tree::map(shared.cloned().collect());
    blocks.put(&mut spec);
    if let Some(fields) = spec.as_map_mut() {
        fields.push((TreeKey::new("crds"), Tree::map(Vec::new())));
    }
    let text = |text: &str| Tree::new(TreeValue::Str(text.to_owned()));
    let mut document = vec![
        (TreeKey::new("apiVersion"), text(names::API_VERSION)),
        (TreeKey::new("kind"), text("Katalog")),
    ];
    if let Some(metadata) = composition.tree.get("metadata") {
        document.push((TreeKey::new("metadata"), metadata.clone()));
    }
    document.push((TreeKey::new("spec"), spec));
    Tree::map(document)
}
