//! The scopes of a composed Katalog: the notes, profiles and relative paths that the entries of each source resolve.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::KatalogSpec;
use crate::tree::Origin;

/// The scopes of a composed Katalog; none if the Katalog is not composed.
///
/// They are no part of the document: a composed `spec` without them would resolve notes, profiles and relative paths of one
/// source in another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scopes(pub Arc<[Scope]>);

/// The Katalog of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// The document, with its overrides.
    pub origin: Arc<Origin>,
    /// The Katalog's own name.
    pub katalog: Box<str>,
    /// The names of its entries in the composed `spec.crds`.
    pub entries: BTreeSet<String>,
    /// Everything else that it declares: notes, profiles, imports and defaults of its entries.
    pub spec: KatalogSpec,
}

impl Scopes {
    /// Returns the scope of an entry.
    pub fn of(&self, entry: &str) -> Option<&Scope> {
        self.0.iter().find(|scope| scope.entries.contains(entry))
    }

    /// Returns the position of an entry's scope, from 1; 0 is the document itself.
    pub fn position(&self, entry: &str) -> usize {
        let scope = |scope: &Scope| scope.entries.contains(entry);
        self.0
            .iter()
            .position(scope)
            .map_or(0, |position| position + 1)
    }
}
