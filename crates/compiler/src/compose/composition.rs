//! Documents that are composed from sources, and the Katalogs that they consist of.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::lock::Lock;
use super::request::{Base, RequestContext, RequestKind, SourceRequest, requests};
use crate::scope::beside;
use orkestra_language::api::duration::Span;
use orkestra_language::api::{KatalogSpec, LockMode, Sources, names};
use orkestra_language::diagnostics::FieldPath;
use orkestra_language::document::{KatalogDocument, KomposerDocument};
use orkestra_language::tree::{Layer, Tree, TreeKey, TreeValue};

/// A document that is composed from sources: a Komposer, or a Katalog with `sources`.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// The name.
    pub name: String,
    /// The namespace, if given.
    pub namespace: Option<String>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The file, as in messages.
    pub file: Option<String>,
    /// The document in the present spelling.
    pub tree: Tree,
    /// The document that relative paths start from.
    pub base: Base,
    /// The digests that its sources must have: those of `spec.locked`; a caller adds those of `komposer.lock`.
    pub lock: Lock,
    /// True if every source must be locked.
    pub requires_lock: bool,
    /// The lock file beside it, if it was read and is not part of `lock`: the sources of nested compositions that require a lock
    /// must be in it.
    pub beside: Option<Lock>,
    /// True if the locks of nested compositions do not apply either: sources are to be locked again.
    pub ignores_locks: bool,
    sources: Sources,
    interval: Option<Span>,
    pub(crate) is_katalog: bool,
}

/// One Katalog of a composition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberKatalog {
    /// Its unique name, which stays when its source gets another version.
    pub(crate) name: String,
    /// Its name in messages.
    pub(crate) file: String,
    /// The Katalog's own name.
    pub(crate) katalog: String,
    /// The position of its source; `None` for entries of the outermost composition itself.
    pub(crate) source: Option<usize>,
    /// The positions of the sources whose compositions it is part of, the outermost first.
    pub(crate) within: Vec<usize>,
    /// The document in the present spelling.
    pub(crate) tree: Tree,
    /// Its overrides, in order.
    pub(crate) over: Vec<Layer>,
    /// The contents, if they were read and have no overrides.
    pub(crate) spec: Option<KatalogSpec>,
}

impl Composition {
    /// Returns the composition of a Komposer.
    pub fn of_komposer(document: &KomposerDocument, base: Base) -> Self {
        Self {
            name: document.name.clone(),
            namespace: document.namespace.clone(),
            labels: document.labels.clone(),
            annotations: document.annotations.clone(),
            file: document.file.clone(),
            tree: document.tree.clone(),
            base,
            lock: Lock::of_digests(&document.spec.locked),
            requires_lock: document.spec.lock == Some(LockMode::Required),
            beside: None,
            ignores_locks: false,
            sources: document.spec.sources.clone().unwrap_or_default(),
            interval: document.spec.interval,
            is_katalog: false,
        }
    }

    /// Returns the composition of a Katalog that has `sources`; `None` if it has none.
    pub fn of_katalog(document: &KatalogDocument, base: Base) -> Option<Self> {
        let sources = document.spec.sources.clone();
        let sources = sources.filter(|sources| !sources.is_empty())?;
        Some(Self {
            name: document.name.clone(),
            namespace: document.namespace.clone(),
            labels: document.labels.clone(),
            annotations: document.annotations.clone(),
            file: document.file.clone(),
            tree: document.tree.clone(),
            base,
            lock: Lock::default(),
            requires_lock: false,
            beside: None,
            ignores_locks: false,
            sources,
            interval: None,
            is_katalog: true,
        })
    }

    /// True if a document has sources, in the present spelling or an old one.
    pub fn has_sources(document: &Tree) -> bool {
        let below = document.get("spec").and_then(|spec| spec.get("sources"));
        let sources = document.get("sources").or(below);
        sources.is_some_and(|sources| sources.as_map().is_some_and(|map| !map.is_empty()))
    }

    /// Returns the kind of the document.
    pub fn kind(&self) -> orkestra_plan::Declaring {
        if self.is_katalog {
            orkestra_plan::Declaring::Katalog
        } else {
            orkestra_plan::Declaring::Komposer
        }
    }

    /// Returns the path of its sources.
    pub fn place(&self) -> FieldPath {
        FieldPath::root().field("spec").field("sources")
    }

    /// Returns a request for each of its own sources, in the order in which they are merged.
    pub fn requests(&self) -> Vec<SourceRequest> {
        let declaring = RequestContext {
            file: self.file.as_deref(),
            tree: &self.tree,
            base: &self.base,
            interval: self.interval,
        };
        requests(&self.sources, &declaring)
    }

    /// Returns the same requests as [`Composition::requests`], with identities that are unique in the composition at `root`: a path
    /// is relative to its folder, so that files of one name in two folders are two sources.
    pub(crate) fn requests_from(&self, root: &Base) -> Vec<SourceRequest> {
        let mut requests = self.requests();
        let (Base::File(root), Base::File(own)) = (root, &self.base) else {
            return requests;
        };
        if root == own {
            return requests;
        }
        for request in &mut requests {
            match &request.kind {
                RequestKind::File { path } => request.id = relative(root, path),
                RequestKind::Url { url } if url.starts_with('$') => {
                    request.id = format!("{url}#beside-{}", relative(root, own));
                }
                RequestKind::Helm { value_files, .. } if !value_files.is_empty() => {
                    request.id = format!("{}-beside-{}", request.id, relative(root, own));
                }
                _ => {}
            }
        }
        requests
    }

    /// Returns a text that is the same for the same document.
    pub(crate) fn identity(&self) -> String {
        match (&self.base, &self.file) {
            (Base::File(path), _) => format!("{}#{}", beside("", path), self.name),
            (_, Some(file)) => format!("{file}#{}", self.name),
            (Base::Cluster { namespace }, None) => format!("{namespace}/{}", self.name),
            (Base::Artifact { id, name }, None) => format!("{id}/{name}#{}", self.name),
        }
    }

    /// Returns the part with the operators that no source has. Of a Katalog, it has everything else that the Katalog declares
    /// for its own entries. `within` has the positions of the sources around the composition; the innermost one declares it.
    pub(crate) fn own_part(&self, own: Tree, within: &[usize]) -> MemberKatalog {
        let mut fields = Vec::new();
        let spec = self.tree.get("spec").and_then(Tree::as_map);
        for (key, value) in spec.unwrap_or_default() {
            let is_kept = self.is_katalog && !["crds", "sources"].contains(&key.name.as_str());
            if is_kept {
                fields.push((key.clone(), value.clone()));
            }
        }
        fields.push((TreeKey::new("crds"), own));
        let text = |text: &str| Tree::new(TreeValue::Str(text.to_owned()));
        let mut document = vec![
            (TreeKey::new("apiVersion"), text(names::API_VERSION)),
            (TreeKey::new("kind"), text("Katalog")),
        ];
        if let Some(metadata) = self.tree.get("metadata") {
            document.push((TreeKey::new("metadata"), metadata.clone()));
        }
        document.push((TreeKey::new("spec"), Tree::map(fields)));
        let file = self.file.clone().unwrap_or_default();
        let name = match (&self.base, &self.file) {
            (Base::Cluster { .. }, None) => self.name.clone(),
            _ => file.clone(),
        };
        MemberKatalog {
            name,
            file,
            katalog: self.name.clone(),
            source: within.last().copied(),
            within: within.to_vec(),
            tree: Tree::map(document),
            over: Vec::new(),
            spec: None,
        }
    }
}

/// Returns the path of a file, relative to the folder of the file `root`.
fn relative(root: &str, path: &str) -> String {
    let folder = beside(root, "");
    let (folder, path) = (Path::new(&folder), Path::new(path));
    let common = folder.components().zip(path.components());
    let common = common.take_while(|(one, other)| one == other).count();
    let mut up = folder.components().skip(common);
    if folder.is_absolute() != path.is_absolute()
        || !up.all(|part| matches!(part, Component::Normal(_)))
    {
        return path.display().to_string();
    }
    let up = folder
        .components()
        .skip(common)
        .map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(path.components().skip(common)).collect();
    relative.display().to_string()
}

/// A document that has nothing but these fields of `spec`.
pub(crate) fn under_spec(entries: Vec<(TreeKey, Tree)>) -> Tree {
    Tree::map(vec![(TreeKey::new("spec"), Tree::map(entries))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_folder_of_the_outermost_composition() {
        for (root, path, wanted) in [
            ("komposer.yaml", "sub/katalog.yaml", "sub/katalog.yaml"),
            ("komposer.yaml", "../katalog.yaml", "../katalog.yaml"),
            (
                "/w/a/komposer.yaml",
                "/w/a/sub/katalog.yaml",
                "sub/katalog.yaml",
            ),
            (
                "/w/a/komposer.yaml",
                "/w/b/katalog.yaml",
                "../b/katalog.yaml",
            ),
            ("a/komposer.yaml", "katalog.yaml", "../katalog.yaml"),
            ("a/komposer.yaml", "/w/katalog.yaml", "/w/katalog.yaml"),
            ("../komposer.yaml", "katalog.yaml", "katalog.yaml"),
        ] {
            assert_eq!(relative(root, path), wanted, "{root} {path}");
        }
    }
}
