//! The Motifs among documents.

use orkestra_language::document::{DocumentKind, MotifDocument, Source, read_motif};

/// Returns the readable Motifs among documents; problems of others are reported where they are checked.
pub fn motifs<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Vec<MotifDocument> {
    let motifs = (sources.into_iter())
        .filter(|source| DocumentKind::of(source) == Some(DocumentKind::Motif));
    motifs
        .filter_map(|source| Some(read_motif(source).ok()?.0))
        .collect()
}
