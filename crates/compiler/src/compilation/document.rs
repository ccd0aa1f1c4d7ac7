//! The start: the document is read as what it is.

use std::collections::BTreeSet;

use super::merging::{Locks, Merging};
use super::resolving::{ReadDocument, Resolving};
use super::{Compilation, CompilationResult, Moved, State, invalid};
use crate::compose::{Artifacts, Composition, Merged, merge};
use orkestra_language::diagnostics::Diagnostics;
use orkestra_language::document::{KatalogDocument, read_komposer, read_motif, read_what_can_be};

impl Compilation {
    /// Reads a Katalog. One with errors is read as far as possible, to find the errors inside of its templates too.
    pub(crate) fn read_katalog(&mut self) -> Moved {
        let (document, found) = read_what_can_be(&self.source);
        let Some(document) = document else {
            return invalid(found);
        };
        match Composition::of_katalog(&document, self.site.base()) {
            Some(composition) if found.has_errors() => self.note_sources(&composition),
            Some(composition) => {
                let merging = Merging::new(composition, Locks::default(), Diagnostics(found.0));
                return Moved::To(State::Merging(merging.into()));
            }
            None => {}
        }
        resolving(document, found)
    }

    /// Reads a Komposer. In a cluster its lock is checked once its sources are known, for a reason of its own.
    pub(crate) fn read_komposer(&mut self) -> Moved {
        let (document, warnings) = match read_komposer(&self.source) {
            Ok(read) => read,
            Err(problems) => return invalid(problems),
        };
        let mut composition = Composition::of_komposer(&document, self.site.base());
        let mut locks = Locks::of(&document.spec);
        if self.site.is_file() {
            locks.forget_digests();
        } else {
            // What nested compositions lock may be locked by `spec.locked`, too.
            composition.beside = Some(std::mem::take(&mut composition.lock));
            composition.requires_lock = false;
        }
        let merging = Merging::new(composition, locks, Diagnostics(warnings));
        Moved::To(State::Merging(merging.into()))
    }

    /// Reads a Motif by itself. Of one in a cluster the Motifs that it imports may be applied later.
    pub(crate) fn read_motif(&mut self) -> Moved {
        let (motif, warnings) = match read_motif(&self.source) {
            Ok(read) => read,
            Err(problems) => return Moved::Ended(CompilationResult::Motif(problems)),
        };
        if !self.site.is_file() && !motif.spec.imports.is_empty() {
            return Moved::Ended(CompilationResult::Motif(Diagnostics(warnings)));
        }
        let resolving = Resolving::new(ReadDocument::Motif(Box::new(motif)), Diagnostics(warnings));
        Moved::To(State::Resolving(resolving.into()))
    }

    /// Notes the sources of a composition that has errors: they are followed until it is corrected.
    fn note_sources(&mut self, composition: &Composition) {
        let mut used = Artifacts::new();
        while let Ok(Merged::Need(requests)) = merge(composition, &used) {
            self.note_requests(&requests);
            let before = used.len();
            for request in &requests {
                let artifact = self.artifact(&request.id);
                used.extend(artifact.map(|artifact| (request.id.clone(), artifact)));
            }
            if used.len() == before {
                return;
            }
        }
    }
}

fn resolving(document: KatalogDocument, found: Diagnostics) -> Moved {
    let subject = ReadDocument::Katalog {
        document: Box::new(document),
        composed: None,
        used: Artifacts::new(),
        approved: BTreeSet::new(),
    };
    Moved::To(State::Resolving(Resolving::new(subject, found).into()))
}
