//! The names that a Katalog can use: its own notes and profiles, those of the Motifs that it imports, and the built-in profiles.

use std::collections::BTreeSet;

use super::imports::Imported;
use crate::scope::{At, Library, Symbols, profiles::ProfileTables};
use orkestra_language::{
    api::{Notes, Profiles},
    diagnostics::{Code, Severity},
};
use orkestra_template::{FunctionPart, FunctionSource, Functions};

/// The contribution of one document.
#[derive(Clone)]
struct DocumentSymbols<'a> {
    /// Its `spec`.
    at: At<'a>,
    profiles: Option<&'a Profiles>,
    notes: Option<&'a Notes>,
}

impl<'a> Symbols<'a> {
    /// Creates the symbols of a document at `at` that can only declare notes, as a test document does.
    pub fn of_notes(at: &At<'a>, notes: Option<&'a Notes>, library: &'a Library) -> Self {
        Self::new(at, (None, notes), [], library)
    }

    /// Creates the symbols of a document whose `spec` is at `at` and declares `own`, with the Motifs that it imports:
    /// documents imported twice count once.
    pub(crate) fn new<'i>(
        at: &At<'a>,
        own: (Option<&'a Profiles>, Option<&'a Notes>),
        imported: impl IntoIterator<Item = &'i Imported<'a>>,
        library: &'a Library,
    ) -> Self
    where
        'a: 'i,
    {
        let mut parts = vec![DocumentSymbols {
            at: at.shared(),
            profiles: own.0,
            notes: own.1,
        }];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for import in imported {
            if seen.insert(import.name()) {
                parts.push(DocumentSymbols {
                    at: import.at.clone(),
                    profiles: import.motif.profiles.as_ref(),
                    notes: import.motif.notes.as_ref(),
                });
            }
        }
        let mut tables = ProfileTables::new(at);
        for part in &parts {
            if let Some(profiles) = part.profiles {
                tables.add_all(&part.at.field("profiles"), profiles, library);
            }
        }
        Self {
            functions: functions(&parts),
            profiles: tables,
        }
    }
}

/// Combines the notes of all parts. The Katalog's own override imported ones of the same name; the same name in two Motifs
/// is a conflict.
fn functions(parts: &[DocumentSymbols<'_>]) -> Functions {
    let mut sources: Vec<FunctionSource<'_>> = Vec::new();
    let mut places: Vec<At<'_>> = Vec::new();
    for part in parts {
        let Some(notes) = part.notes else { continue };
        let at = part.at.field("notes");
        let at = notes.keys().iter().fold(at, |at, key| at.field(key));
        for (index, note) in notes.functions().iter().enumerate() {
            let place = at.index(index);
            let known = sources.iter().position(|other| other.name == note.name);
            let other = known.map(|position| &places[position]);
            // Duplicates within one document are reported by the notes themselves.
            if let Some(other) = other.filter(|other| !other.is_beside(&place)) {
                if !other.is_own() {
                    let message = format!("{} declares `{}` too", other.text(), note.name);
                    let hint = "rename one of the two, or declare the function in the Katalog, which takes precedence over both";
                    place
                        .field("name")
                        .error_hint(Code::NoteTwice, message, hint);
                }
                continue;
            }
            sources.push(FunctionSource {
                name: &note.name,
                expression: &note.expression,
                shadow: note.shadow == Some(true),
            });
            places.push(place);
        }
    }
    let (functions, problems) = Functions::compile(&sources);
    for problem in problems {
        let place = match problem.part {
            FunctionPart::Name => places[problem.index].field("name"),
            FunctionPart::Expression => places[problem.index].field("expression"),
        };
        let severity = if problem.is_warning {
            Severity::Warning
        } else {
            Severity::Error
        };
        place.report_in_text(severity, problem.error);
    }
    functions
}
