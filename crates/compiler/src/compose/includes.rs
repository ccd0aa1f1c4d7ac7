//! Files of artifacts that their Katalogs reference: Motifs, included files and custom resource definitions.
//!
//! A path is relative to the document that has it, and stays inside of its artifact. References of files on disk, and names
//! of Motifs in the cluster, are left to the caller.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::artifact::{Artifact, Artifacts};
use super::composition::{MemberKatalog, under_spec};
use super::setup::refused_charts;
use crate::scope::{Library, Reference, ReferenceKind as Wanted, beside, is_of_registry};
use orkestra_language::api::KatalogSpec;
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_language::document::{DocumentKind, parse_stream};
use orkestra_language::tree::{Layer, Origin, Tree, TreeKey};
use orkestra_object::value::Node;
use orkestra_plan::definitions::{CrdShape, Schemas};

/// The maximum number of files that the Katalogs of a composition reference.
const MOST_FILES: usize = 1000;

/// The files that a composition references.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Included {
    /// The artifacts that have files, as the start of their files' names in messages.
    pub(crate) roots: Vec<String>,
    /// The resolved references.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<ResolvedReference>,
    /// The contents of the files, by their names in messages.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) texts: BTreeMap<String, String>,
    /// The manifests that `ork run` applies, by their names in messages. They are not stored: a controller applies none.
    #[serde(skip)]
    pub(crate) manifests: BTreeMap<String, String>,
}

/// A resolved reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolvedReference {
    /// The file that has it.
    pub(crate) from: String,
    /// The path or name, as declared.
    pub(crate) text: String,
    /// The file.
    pub(crate) to: String,
}

impl Included {
    /// Answers the references that point into artifacts; returns the others.
    pub(crate) fn fill(&self, library: &mut Library, missing: Vec<Reference>) -> Vec<Reference> {
        let mut others = Vec::new();
        for reference in missing {
            let from = reference.file.as_deref().unwrap_or_default();
            let is_it =
                |answer: &&ResolvedReference| answer.from == from && answer.text == *reference.text;
            let answer = self.answers.iter().find(is_it);
            if let Some((to, text)) = answer.and_then(|answer| self.texts.get_key_value(&answer.to))
            {
                library.put_text(reference, to, text);
                continue;
            }
            let root = self.roots.iter().find(|root| is_in(from, root));
            match root {
                Some(root) if !is_name(&reference) => {
                    let why = format!("there is no file `{}` in {root}", reference.text.trim());
                    library.put_absent(reference, why);
                }
                _ => others.push(reference),
            }
        }
        others
    }

    /// True if a file is one of an artifact.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.roots.iter().any(|root| is_in(file, root))
    }

    /// Returns the content of a file that `from` names, if `from` is a file of an artifact.
    pub(crate) fn manifest(
        &self,
        from: &str,
        text: &str,
    ) -> Option<Result<(String, &str), String>> {
        let root = self.roots.iter().find(|root| is_in(from, root))?;
        let name = from.strip_prefix(&**root).unwrap_or_default();
        let to = format!("{root}/{}", beside(name.trim_start_matches('/'), text));
        let found = self.manifests.get(&to);
        Some(match found {
            Some(content) => Ok((to, content)),
            None => Err(format!("there is no file `{text}` in {root}")),
        })
    }
}

/// True if a file is one of the artifact whose files' names begin with `root`.
fn is_in(file: &str, root: &str) -> bool {
    file.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True for a Motif that is named, in the cluster or in a registry, not a path.
fn is_name(reference: &Reference) -> bool {
    let text = reference.text.trim();
    reference.part == Wanted::Motif && (!text.contains(['/', '.']) || is_of_registry(text))
}

/// Finds referenced files.
pub(crate) struct Includes<'a> {
    roots: Vec<(String, &'a Artifact)>,
    included: Included,
}

impl<'a> Includes<'a> {
    pub(crate) fn new(artifacts: &'a Artifacts, roots: &[String]) -> Self {
        let roots = roots.iter().filter_map(|id| artifacts.get(id));
        let roots: Vec<_> = roots
            .map(|artifact| (artifact.root(), &**artifact))
            .collect();
        let included = Included {
            roots: roots.iter().map(|(root, _)| root.clone()).collect(),
            ..Included::default()
        };
        Self { roots, included }
    }

    pub(crate) fn into_included(self) -> Included {
        self.included
    }

    /// Returns the artifact of a file, and the file's name in it.
    fn find<'f>(&self, file: &'f str) -> Option<(&'a Artifact, &'f str)> {
        let (root, artifact) = self.roots.iter().find(|(root, _)| is_in(file, root))?;
        Some((
            artifact,
            file.strip_prefix(&**root)?.trim_start_matches('/'),
        ))
    }

    /// Keeps the manifests of entries, and completes `apiTypes` from a `crdFile` of the artifact.
    pub(crate) fn definitions(&mut self, part: &mut MemberKatalog, found: &mut Diagnostics) {
        let origin = Origin {
            over: part.over.clone().into(),
            ..Origin::new(&*part.name, &*part.file, part.tree.clone())
        };
        let merged = origin.merged();
        let crds = merged.below(&["spec", "crds"]).and_then(Tree::as_map);
        let at = FieldPath::root().field("spec").field("crds");
        for (key, entry) in crds.unwrap_or_default() {
            let at = at.field(&key.name);
            let fetched = |path: &FieldPath| {
                let (file, _) = origin.owner(path);
                self.included.has(file).then_some(file)
            };
            for mut problem in refused_charts(entry, &at, fetched) {
                problem.locate_in(&origin);
                found.push(problem);
            }
            for (path, file) in manifests(entry, &at) {
                let is_definition = path == at.field("crdFile");
                let (owner, _) = origin.owner(&path);
                let Some((artifact, name)) = self.find(owner) else {
                    continue;
                };
                let name = beside(name, file);
                let Some(text) = artifact.text(&name) else {
                    let message = format!("there is no file `{file}` in {}", artifact.url);
                    let mut problem = Diagnostic::error(Code::Unreadable, path, message);
                    problem.locate_in(&origin);
                    found.push(problem);
                    continue;
                };
                let shown = artifact.file(&name);
                if is_definition && entry.get("apiTypes").is_none() {
                    match api_types(&shown, &key.name, text) {
                        Ok(layer) => {
                            part.over.insert(0, layer);
                            part.spec = None;
                        }
                        Err(why) => {
                            let mut problem =
                                Diagnostic::error(Code::CrdFile, path, format!("{file}: {why}"));
                            problem.locate_in(&origin);
                            found.push(problem);
                        }
                    }
                }
                self.included.manifests.insert(shown, text.to_owned());
            }
        }
    }

    /// Resolves the references of the Katalogs, and of the documents that they lead to.
    pub(crate) fn references(&mut self, spec: &KatalogSpec) {
        let mut library = Library::default();
        loop {
            let missing = library.missing(spec);
            if missing.is_empty() || self.included.answers.len() >= MOST_FILES {
                return;
            }
            for reference in missing {
                match self.resolve(&reference) {
                    Some((to, text)) => {
                        self.included.answers.push(ResolvedReference {
                            from: reference.file.as_deref().unwrap_or_default().to_owned(),
                            text: reference.text.to_string(),
                            to: to.clone(),
                        });
                        library.put_text(reference, &to, text);
                        self.included.texts.insert(to, text.to_owned());
                    }
                    // The caller has it, or it is reported when the Katalog is compiled.
                    None => library.put_absent(reference, ""),
                }
            }
        }
    }

    /// Returns the file that a reference leads to: its name in messages, and its text.
    fn resolve(&self, reference: &Reference) -> Option<(String, &'a str)> {
        let (artifact, name) = self.find(reference.file.as_deref()?)?;
        let text = reference.text.trim();
        if is_name(reference) {
            let motif = artifact.documents.iter().find(|file| {
                file.text.contains("Motif") && has_motif(&file.name, &file.text, text)
            })?;
            return Some((artifact.file(&motif.name), &motif.text));
        }
        let to = beside(name, text);
        Some((artifact.file(&to), artifact.text(&to)?))
    }
}

/// True if a text is a Motif of that name.
fn has_motif(file: &str, text: &str, name: &str) -> bool {
    let sources = parse_stream(file, text).sources;
    let is_it = |source: &orkestra_language::document::Source| {
        DocumentKind::of(source) == Some(DocumentKind::Motif)
            && source
                .tree
                .below(&["metadata", "name"])
                .and_then(Tree::as_str)
                == Some(name)
    };
    sources.iter().any(is_it)
}

/// Returns the files of an entry that `ork run` applies, with their fields.
fn manifests<'t>(entry: &'t Tree, at: &FieldPath) -> Vec<(FieldPath, &'t str)> {
    let mut files = Vec::new();
    let mut add = |path: FieldPath, tree: Option<&'t Tree>| {
        files.extend(tree.and_then(Tree::as_str).map(|text| (path, text)));
    };
    add(at.field("crdFile"), entry.get("crdFile"));
    let items = |tree: Option<&'t Tree>| match tree.map(|tree| &tree.value) {
        Some(orkestra_language::tree::TreeValue::List(items)) => items.as_slice(),
        _ => &[],
    };
    for (index, item) in items(entry.get("crFiles")).iter().enumerate() {
        add(at.field("crFiles").index(index), Some(item));
    }
    let (setup, setup_at) = (entry.get("setup"), at.field("setup"));
    let (list, at) = match setup.and_then(|setup| setup.get("apply")) {
        Some(apply) => (items(Some(apply)), at.field("setup").field("apply")),
        None => (items(setup), at.field("setup")),
    };
    for (index, item) in list.iter().enumerate() {
        let at = at.index(index);
        match item.get("path") {
            Some(path) => add(at.field("path"), Some(path)),
            None => add(at, Some(item)),
        }
    }
    let charts = items(setup.and_then(|setup| setup.get("helm")));
    for (index, chart) in charts.iter().enumerate() {
        let at = setup_at.field("helm").index(index).field("valueFiles");
        for (index, file) in items(chart.get("valueFiles")).iter().enumerate() {
            add(at.index(index), Some(file));
        }
    }
    files
}

/// Returns the `apiTypes` of an entry from its definition.
fn api_types(file: &str, entry: &str, text: &str) -> Result<Layer, String> {
    let shape = definition(file, text)?;
    let version = shape.preferred().map(|version| version.name.clone());
    let version = version.ok_or("no version of the CRD is served")?;
    let types = json!({
        "group": &*shape.group,
        "version": &*version,
        "kind": &*shape.kind,
        "plural": &*shape.plural,
    });
    let crds = Tree::from_json(&json!({ entry: { "apiTypes": types } }));
    Ok(Layer {
        file: file.into(),
        tree: under_spec(vec![(TreeKey::new("crds"), crds)]),
    })
}

/// Returns the first custom resource definition of a text.
pub(crate) fn definition(file: &str, text: &str) -> Result<CrdShape, String> {
    let mut why = "the file has no CRD".to_owned();
    for source in &parse_stream(file, text).sources {
        match CrdShape::from_crd(&Node::from(&source.tree.to_json())) {
            Ok(shape) => return Ok(shape),
            Err(not) => why = not.to_string(),
        }
    }
    Err(why)
}

impl Included {
    /// Adds the definitions of the entries whose `crdFile` is in an artifact.
    pub(crate) fn schemas(&self, spec: &KatalogSpec, schemas: &mut Schemas) {
        for (name, entry) in &spec.crds {
            let (Some(file), Some(scope)) = (&entry.crd_file, spec.scopes.of(name)) else {
                continue;
            };
            let at = FieldPath::root()
                .field("spec")
                .field("crds")
                .field(name)
                .field("crdFile");
            let (owner, _) = scope.origin.owner(&at);
            if let Some(Ok((shown, text))) = self.manifest(owner, file)
                && let Ok(shape) = definition(&shown, text)
            {
                schemas.insert_file(name, shape);
            }
        }
    }
}
