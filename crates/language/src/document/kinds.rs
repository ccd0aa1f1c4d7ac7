//! The kinds of documents and how to read each.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use super::source::Source;
use super::{depends, e2e, lists, normalise, rules, simulate};
use crate::api::shape::Shape;
use crate::api::{
    E2eSpec, KatalogSpec, KomposerSpec, MotifSpec, SimulateSpec, katalog, komposer, motif,
};
use crate::diagnostics::Diagnostics;
use crate::tree::Tree;

/// A kind of document of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// Operators.
    Katalog,
    /// A reusable part of a Katalog.
    Motif,
    /// A composition of Katalogs.
    Komposer,
    /// Tests against a cluster.
    E2e,
    /// Tests without a cluster.
    Simulate,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [DocumentKind; 5] = [
        DocumentKind::Katalog,
        DocumentKind::Motif,
        DocumentKind::Komposer,
        DocumentKind::E2e,
        DocumentKind::Simulate,
    ];

    /// Returns the `kind` in documents.
    pub fn name(self) -> &'static str {
        match self {
            DocumentKind::Katalog => "Katalog",
            DocumentKind::Motif => "Motif",
            DocumentKind::Komposer => "Komposer",
            DocumentKind::E2e => "E2E",
            DocumentKind::Simulate => "Simulate",
        }
    }

    /// Returns the kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the shape of whole documents of the kind; `None` for kinds that are not checked.
    pub fn shape(self) -> Option<&'static Shape> {
        match self {
            DocumentKind::Katalog => Some(KatalogSpec::shape()),
            DocumentKind::Motif => Some(MotifSpec::shape()),
            DocumentKind::Komposer => Some(KomposerSpec::shape()),
            DocumentKind::Simulate => Some(SimulateSpec::shape()),
            DocumentKind::E2e => Some(E2eSpec::shape()),
        }
    }

    /// Returns the kind that a document declares.
    pub fn of(source: &Source) -> Option<Self> {
        Self::parse(source.tree.get("kind")?.as_str()?)
    }
}

/// Moves everything in a document of a kind to its present spelling and place; returns the blocks that are permitted next to
/// `spec`.
pub(crate) fn normalise_as(
    kind: DocumentKind,
    tree: &mut Tree,
    found: &mut Diagnostics,
) -> &'static [&'static str] {
    match kind {
        DocumentKind::Katalog => {
            KatalogSpec::normalise(tree, found);
            katalog::BLOCKS
        }
        DocumentKind::Motif => {
            MotifSpec::normalise(tree, found);
            motif::BLOCKS
        }
        DocumentKind::Komposer => {
            KomposerSpec::normalise(tree, found);
            komposer::BLOCKS
        }
        DocumentKind::E2e => {
            E2eSpec::normalise(tree, found);
            crate::api::e2e::BLOCKS
        }
        DocumentKind::Simulate => {
            SimulateSpec::normalise(tree, found);
            crate::api::simulate::BLOCKS
        }
    }
}

/// The contents of a document of some kind.
pub trait Readable: DeserializeOwned {
    /// The kind.
    const KIND: DocumentKind;
    /// The shape of the whole document.
    fn shape() -> &'static Shape;
    /// Moves everything to its present spelling and place.
    fn normalise(tree: &mut Tree, found: &mut Diagnostics);
    /// Rules that a shape cannot express, on the tree.
    fn check_tree(_: &Tree, _: &mut Diagnostics) {}
    /// Rules that a shape cannot express, on the typed value.
    fn check(&self, _: &mut Diagnostics) {}
}

impl Readable for KatalogSpec {
    const KIND: DocumentKind = DocumentKind::Katalog;

    fn shape() -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(katalog::document_shape);
        &SHAPE
    }

    fn normalise(tree: &mut Tree, found: &mut Diagnostics) {
        normalise::blocks(tree, katalog::BLOCKS, found);
        lists::operators(tree, found);
        lists::definitions(tree, found);
        lists::rules(tree, found);
        normalise::normalise(tree, Self::shape(), found);
    }

    fn check_tree(tree: &Tree, found: &mut Diagnostics) {
        rules::check_operator_names(tree, found);
        // With sources, names are checked once these are merged.
        let sources = tree.below(&["spec", "sources"]).and_then(Tree::as_map);
        if sources.is_none_or(<[_]>::is_empty) {
            depends::check(tree, found);
        }
    }

    fn check(&self, found: &mut Diagnostics) {
        rules::check_katalog(self, found);
    }
}

impl Readable for KomposerSpec {
    const KIND: DocumentKind = DocumentKind::Komposer;

    fn shape() -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(komposer::document_shape);
        &SHAPE
    }

    fn normalise(tree: &mut Tree, found: &mut Diagnostics) {
        normalise::blocks(tree, komposer::BLOCKS, found);
        lists::operators(tree, found);
        lists::definitions(tree, found);
        lists::rules(tree, found);
        normalise::normalise(tree, Self::shape(), found);
    }

    fn check_tree(tree: &Tree, found: &mut Diagnostics) {
        super::komposer::check_tree(tree, found);
    }

    fn check(&self, found: &mut Diagnostics) {
        super::komposer::check(self, found);
    }
}

impl Readable for MotifSpec {
    const KIND: DocumentKind = DocumentKind::Motif;

    fn shape() -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(motif::document_shape);
        &SHAPE
    }

    fn normalise(tree: &mut Tree, found: &mut Diagnostics) {
        normalise::blocks(tree, motif::BLOCKS, found);
        normalise::normalise(tree, Self::shape(), found);
    }

    fn check(&self, found: &mut Diagnostics) {
        rules::check_motif(self, found);
    }
}

impl Readable for SimulateSpec {
    const KIND: DocumentKind = DocumentKind::Simulate;

    fn shape() -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(crate::api::simulate::document_shape);
        &SHAPE
    }

    fn normalise(tree: &mut Tree, found: &mut Diagnostics) {
        normalise::blocks(tree, crate::api::simulate::BLOCKS, found);
        normalise::normalise(tree, Self::shape(), found);
    }

    fn check(&self, found: &mut Diagnostics) {
        simulate::check(self, found);
    }
}

impl Readable for E2eSpec {
    const KIND: DocumentKind = DocumentKind::E2e;

    fn shape() -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(crate::api::e2e::document_shape);
        &SHAPE
    }

    fn normalise(tree: &mut Tree, found: &mut Diagnostics) {
        normalise::blocks(tree, crate::api::e2e::BLOCKS, found);
        e2e::old_spellings(tree, found);
        normalise::normalise(tree, Self::shape(), found);
    }
}
