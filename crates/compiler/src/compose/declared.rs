//! What a document declares: the one reading of a Katalog or Komposer that admission and the runtime share.
//!
//! ```text
//!  document ── read, present spelling ──► Declared ─┬─► admission: permissions of the author, kinds of entries
//!                                                   └─► runtime: sources to fetch, entries to run
//! ```
//!
//! Nothing decides by the text of a document, which has several spellings and places for the same declaration.

use std::collections::BTreeMap;

use super::composition::Composition;
use super::request::Base;
use orkestra_language::api::{ApiTypes, KomposerSpec};
use orkestra_language::diagnostics::Diagnostics;
use orkestra_language::document::{
    DocumentKind, KatalogDocument, Source, Tree, read_komposer, read_what_can_be,
};
use orkestra_plan::GroupKind;
use orkestra_plan::definitions::kind_named;

/// A document of the cluster that declares operators.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared {
    /// A Katalog that has no sources: all of its entries are its own.
    Whole(Box<KatalogDocument>),
    /// A Katalog that is composed from sources.
    ComposedKatalog(Box<Composition>),
    /// A Komposer, which is always composed, and its specification.
    Komposer(Box<(Composition, KomposerSpec)>),
}

impl Declared {
    /// Reads a document; relative references start from `base`. Of a Katalog with errors it has the valid parts: it is not to
    /// be run.
    ///
    /// # Errors
    /// All problems of a document that cannot be read, or of a Komposer with errors.
    pub fn read(source: &Source, base: Base) -> Result<Self, Diagnostics> {
        if DocumentKind::of(source) == Some(DocumentKind::Komposer) {
            let (komposer, _) = read_komposer(source)?;
            let composition = Composition::of_komposer(&komposer, base);
            return Ok(Self::Komposer(Box::new((composition, komposer.spec))));
        }
        match read_what_can_be(source) {
            (Some(katalog), _) => Ok(Self::katalog(katalog, base)),
            (None, problems) => Err(problems),
        }
    }

    /// Returns what a Katalog declares.
    pub fn katalog(document: KatalogDocument, base: Base) -> Self {
        match Composition::of_katalog(&document, base) {
            Some(composition) => Self::ComposedKatalog(Box::new(composition)),
            None => Self::Whole(Box::new(document)),
        }
    }

    /// True if operators of sources are part of it.
    pub fn is_composed(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::ComposedKatalog(_) | Self::Komposer(_) => true,
        }
    }

    /// Returns the kind of each of its own entries that declares one.
    pub fn kinds(&self) -> BTreeMap<String, GroupKind> {
        let tree = match self {
            Self::Whole(document) => &document.tree,
            Self::ComposedKatalog(composition) => &composition.tree,
            Self::Komposer(komposer) => &komposer.0.tree,
        };
        let entries = tree.below(&["spec", "crds"]).and_then(Tree::as_map);
        let kinds = entries
            .unwrap_or_default()
            .iter()
            .filter_map(|(key, entry)| {
                let types = entry.get("apiTypes")?.to_json();
                let types: ApiTypes = serde_json::from_value(types).ok()?;
                Some((key.name.clone(), kind_named(&types)?))
            });
        kinds.collect()
    }
}
