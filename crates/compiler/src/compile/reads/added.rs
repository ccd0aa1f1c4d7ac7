//! Checks reads of data of children that only `enrich` adds.

use super::{PlanReads, ReadPosition, Unreadable, children::KnownChildren, offset_of};
use crate::compile::enrich::{self, Reader};
use orkestra_language::{
    diagnostics::{Code, Severity},
    enrich::ADDITIONS,
};
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::GroupKind;

impl PlanReads {
    /// Reports reads of children's data that nothing adds.
    pub(crate) fn addition(
        &mut self,
        kind: &GroupKind,
        read: &[PathStep],
        place: ReadPosition<'_>,
        known: &KnownChildren,
    ) {
        if !known.all {
            return;
        }
        let source = place.source.unwrap_or_default();
        match read.first() {
            Some(PathStep::Field(key)) if key.starts_with('_') => {
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
        read: &[PathStep],
        place: ReadPosition<'_>,
        known: &KnownChildren,
    ) {
        let offset = place.source.and_then(|source| offset_of(source, key));
        let path: Path = read.iter().cloned().collect();
        let path = path.to_string();
        let reader = if place.source.is_none() || offset.is_some() {
            Reader::Author
        } else if orkestra_template::does_without(&path) {
            Reader::NoteWithout
        } else {
            Reader::Note
        };
        let Some((message, hint)) = enrich::never_added(&known.enrich, kind, key, reader) else {
            return;
        };
        let mut reported = self.unreadable.iter();
        if reported.any(|other| other.at() == place.at && other.message == message) {
            return;
        }
        self.unreadable.push(Unreadable {
            severity: Severity::Warning,
            code: Code::NotAdded,
            place: place.at.place.clone(),
            field: place.at.field,
            offset,
            message,
            hint: Some(hint),
        });
    }
}
