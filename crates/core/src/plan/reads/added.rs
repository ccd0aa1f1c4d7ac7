//! Reads of children's data that only `enrich` adds.

use super::{Gathered, Place, Unreadable, children::Known, offset_of};
use crate::{
    diagnostics::{Code, Severity},
    enrich::ADDITIONS,
    plan::{
        GroupKind,
        enrich::{self, Reader},
    },
    template,
    value::{Path, Step},
};

impl Gathered {
    /// Reports reads of children's data that nothing adds.
    pub(super) fn addition(
        &mut self,
        kind: &GroupKind,
        read: &[Step],
        place: Place<'_>,
        known: &Known,
    ) {
        if !known.all {
            return;
        }
        let source = place.source.unwrap_or_default();
        match read.first() {
            Some(Step::Field(key)) if key.starts_with('_') => {
                self.added_key(kind, key, read, place, known);
            }
            Some(_) => {}
            // The keys read in a loop over children appear somewhere in the text.
            None => {
                let keys = ADDITIONS.iter().filter(|addition| addition.is_of(kind));
                let written = keys.filter(|addition| offset_of(source, addition.key).is_some());
                written.for_each(|addition| {
                    self.added_key(kind, addition.key, read, place, known);
                });
            }
        }
    }

    fn added_key(
        &mut self,
        kind: &GroupKind,
        key: &str,
        read: &[Step],
        place: Place<'_>,
        known: &Known,
    ) {
        let offset = place.source.and_then(|source| offset_of(source, key));
        let path: Path = read.iter().cloned().collect();
        let path = path.to_string();
        let reader = if place.source.is_none() || offset.is_some() {
            Reader::Author
        } else if template::does_without(&path) {
            Reader::NoteWithout
        } else {
            Reader::Note
        };
        let Some((message, hint)) = enrich::never_added(&known.enrich, kind, key, reader) else {
            return;
        };
        let mut told = self.unreadable.iter();
        if told.any(|other| other.place == place.field && other.message == message) {
            return;
        }
        self.unreadable.push(Unreadable {
            severity: Severity::Warning,
            code: Code::NotAdded,
            place: place.field.to_owned(),
            offset,
            message,
            hint: Some(hint),
        });
    }
}
