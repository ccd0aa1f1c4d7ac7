//! Documents that are composed from sources, and the Katalogs that they consist of.

use std::collections::BTreeMap;

use super::lock::Lock;
use super::request::{Base, RequestContext, SourceRequest, requests};
use crate::api::duration::Span;
use crate::api::{KatalogSpec, LockMode, Sources, names};
use crate::diagnostics::FieldPath;
use crate::document::{KatalogDocument, KomposerDocument};
use crate::tree::{Layer, Tree, TreeKey, TreeValue};
use crate::{plan, scope::beside};

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
    sources: Sources,
    interval: Option<Span>,
    pub(super) is_katalog: bool,
}

/// One Katalog of a composition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MemberKatalog {
    /// Its unique name, which stays when its source gets another version.
    pub(super) name: String,
    /// Its name in messages.
    pub(super) file: String,
    /// The Katalog's own name.
    pub(super) katalog: String,
    /// The position of its source; `None` for entries of the composition itself.
    pub(super) source: Option<usize>,
    /// The document in the present spelling.
    pub(super) tree: Tree,
    /// Its overrides, in order.
    pub(super) over: Vec<Layer>,
    /// The contents, if they were read and have no overrides.
    pub(super) spec: Option<KatalogSpec>,
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
    pub fn kind(&self) -> plan::Declaring {
        if self.is_katalog {
            plan::Declaring::Katalog
        } else {
            plan::Declaring::Komposer
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

    /// Returns a text that is the same for the same document.
    pub(super) fn identity(&self) -> String {
        match (&self.base, &self.file) {
            (Base::File(path), _) => format!("{}#{}", beside("", path), self.name),
            (_, Some(file)) => format!("{file}#{}", self.name),
            (Base::Cluster { namespace }, None) => format!("{namespace}/{}", self.name),
            (Base::Artifact { id, name }, None) => format!("{id}/{name}#{}", self.name),
        }
    }

    /// Returns the part with the operators that no source has. Of a Katalog, it has everything else that the Katalog declares
    /// for its own entries.
    pub(super) fn own_part(&self, own: Tree) -> MemberKatalog {
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
            source: None,
            tree: Tree::map(document),
            over: Vec::new(),
            spec: None,
        }
    }
}

/// A document that has nothing but these fields of `spec`.
pub(super) fn under_spec(entries: Vec<(TreeKey, Tree)>) -> Tree {
    Tree::map(vec![(TreeKey::new("spec"), Tree::map(entries))])
}
