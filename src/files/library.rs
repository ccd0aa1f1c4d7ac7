//! The references of Katalogs, resolved from files.
//!
//! A Motif is found by its name among the files that were given with the Katalog; any other reference is a path, relative to the
//! file that contains it.

use std::path::Path;

use orkestra_core::{
    document::{DocumentKind, MotifDocument, Source, read_motif},
    plan::{self, Library, Part, Reference},
    value,
};

use super::read_text;

/// The resolved references of a Katalog.
#[derive(Debug, Default)]
pub struct Taken {
    /// The documents.
    pub library: Library,
    /// A hash of the files that were read, and of which ones could not be.
    pub digest: String,
}

/// Returns the readable Motifs among documents; problems of others are reported where they are checked.
pub fn motifs<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Vec<MotifDocument> {
    let motifs = (sources.into_iter())
        .filter(|source| DocumentKind::of(source) == Some(DocumentKind::Motif));
    motifs
        .filter_map(|source| Some(read_motif(source).ok()?.0))
        .collect()
}

/// Resolves the references of a document of the file `path`, with the given Motifs. `missing` returns the references that are not
/// resolved yet.
pub async fn take(
    path: &Path,
    missing: impl Fn(&Library) -> Vec<Reference>,
    given: &[MotifDocument],
) -> Taken {
    take_with(path, missing, |_, missing| missing, given).await
}

/// Like [`take`], but `fill` answers references first and returns the others.
pub(crate) async fn take_with(
    path: &Path,
    missing: impl Fn(&Library) -> Vec<Reference>,
    fill: impl Fn(&mut Library, Vec<Reference>) -> Vec<Reference>,
    given: &[MotifDocument],
) -> Taken {
    let mut library = Library::default();
    let mut read = String::new();
    loop {
        let missing = missing(&library);
        if missing.is_empty() {
            let digest = value::hash_text(&read);
            return Taken { library, digest };
        }
        for reference in fill(&mut library, missing) {
            let text = take_one(&mut library, path, reference, given).await;
            read.push_str(&value::hash_text(&text));
        }
    }
}

/// Resolves one reference; returns the text that was read.
async fn take_one(
    library: &mut Library,
    path: &Path,
    reference: Reference,
    given: &[MotifDocument],
) -> String {
    let is_it = |motif: &&MotifDocument| {
        reference.part == Part::Motif && *motif.name == *reference.text.trim()
    };
    if let Some(motif) = given.iter().find(is_it) {
        library.put_motif(reference, motif);
        return String::new();
    }
    let own = path.display().to_string();
    let file = plan::beside(reference.file.as_deref().unwrap_or(&own), &reference.text);
    match read_text(Path::new(&file)).await {
        Ok(text) => {
            library.put_text(reference, &file, &text);
            text
        }
        Err(why) => {
            let text = reference.text.trim();
            let is_name = reference.part == Part::Motif && !text.contains(['/', '.']);
            let why = if is_name {
                format!("there is no Motif `{text}` among the files, and no file {file}")
            } else {
                format!("cannot read {file}: {why}")
            };
            library.put_absent(reference, why.as_str());
            why
        }
    }
}
