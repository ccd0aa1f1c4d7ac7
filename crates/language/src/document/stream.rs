//! Reads streams into typed documents.

use super::kinds::DocumentKind;
use super::read::{
    KatalogDocument, KomposerDocument, MotifDocument, read_katalog, read_komposer, read_motif,
    read_partly, read_simulate,
};
use super::source::{Stream, in_file, parse_stream};
use crate::api::E2eSpec;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};

/// The documents of a stream by kind, each in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Documents {
    /// Katalogs.
    pub katalogs: Vec<KatalogDocument>,
    /// Komposers.
    pub komposers: Vec<KomposerDocument>,
    /// Motifs.
    pub motifs: Vec<MotifDocument>,
}

/// Reads every document of a stream, with warnings.
///
/// # Errors
/// Every problem of every document, in order; also if there is no document at all.
pub fn read_stream(file: &str, text: &str) -> Result<(Documents, Vec<Diagnostic>), Diagnostics> {
    let Stream { sources, problems } = parse_stream(file, text);
    let mut found = problems;
    let mut documents = Documents::default();
    for source in &sources {
        let warnings = match DocumentKind::of(source) {
            Some(DocumentKind::Motif) => keep(read_motif(source), &mut documents.motifs),
            Some(DocumentKind::Komposer) => keep(read_komposer(source), &mut documents.komposers),
            // Tests of Katalogs are not part of the running configuration.
            Some(DocumentKind::Simulate) => read_simulate(source).map(|(_, warnings)| warnings),
            Some(DocumentKind::E2e) => read_partly::<E2eSpec>(source).1.into_result(),
            _ => keep(read_katalog(source), &mut documents.katalogs),
        };
        found.extend(warnings.unwrap_or_else(|problems| problems.0));
    }
    if sources.is_empty() && found.is_empty() {
        found.push(in_file(
            file,
            Diagnostic::error(
                Code::NoDocument,
                FieldPath::root(),
                "there is no document in it",
            ),
        ));
    }
    found.0.sort_by_key(|d| (d.line, d.column));
    Ok((documents, found.into_result()?))
}

fn keep<D>(
    read: Result<(D, Vec<Diagnostic>), Diagnostics>,
    documents: &mut Vec<D>,
) -> Result<Vec<Diagnostic>, Diagnostics> {
    let (document, warnings) = read?;
    documents.push(document);
    Ok(warnings)
}
