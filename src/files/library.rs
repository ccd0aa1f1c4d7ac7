//! The references of Katalogs, resolved from files.
//!
//! A Motif is found by its name among the files that were given with the Katalog, or by a reference in a registry; any other
//! reference is a path, relative to the file that contains it.

use std::{path::Path, sync::Arc};

use orkestra_core::{
    compose::Artifact,
    document::{DocumentKind, MotifDocument, Source, read_motif},
    scope::{self, Library, Reference, ReferenceKind},
    value,
};

use super::find::read_text;
use crate::compose::Fetch;

/// The resolved references of a Katalog.
#[derive(Debug, Default)]
pub struct ResolvedReferences {
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

/// Resolves the references of a document of the file `path`, with the given Motifs; `fetch` reads those of registries. `missing`
/// returns the references that are not resolved yet.
pub async fn take(
    path: &Path,
    missing: impl Fn(&Library) -> Vec<Reference>,
    given: &[MotifDocument],
    fetch: &dyn Fetch,
) -> ResolvedReferences {
    take_with(path, missing, |_, missing| missing, (given, fetch)).await
}

/// Like [`take`], but `fill` answers references first and returns the others.
pub(crate) async fn take_with(
    path: &Path,
    missing: impl Fn(&Library) -> Vec<Reference>,
    fill: impl Fn(&mut Library, Vec<Reference>) -> Vec<Reference>,
    (given, fetch): (&[MotifDocument], &dyn Fetch),
) -> ResolvedReferences {
    let own = path.display().to_string();
    let mut taking = ReferenceResolver {
        library: Library::default(),
        own: &own,
        given,
        fetch,
        artifacts: Vec::new(),
    };
    let mut read = String::new();
    loop {
        let missing = missing(&taking.library);
        if missing.is_empty() {
            let digest = value::hash_text(&read);
            return ResolvedReferences {
                library: taking.library,
                digest,
            };
        }
        for reference in fill(&mut taking.library, missing) {
            let text = taking.one(reference).await;
            read.push_str(&value::hash_text(&text));
        }
    }
}

/// The references of one document, while they are resolved.
struct ReferenceResolver<'a> {
    library: Library,
    /// The file of the document.
    own: &'a str,
    given: &'a [MotifDocument],
    fetch: &'a dyn Fetch,
    /// Motifs of registries, with the beginning of the names of their files.
    artifacts: Vec<(String, Arc<Artifact>)>,
}

impl ReferenceResolver<'_> {
    /// Resolves one reference; returns the text that was read.
    async fn one(&mut self, reference: Reference) -> String {
        let text = reference.text.trim().to_owned();
        let is_it =
            |motif: &&MotifDocument| reference.part == ReferenceKind::Motif && *motif.name == *text;
        if let Some(motif) = self.given.iter().find(is_it) {
            self.library.put_motif(reference, motif);
            return String::new();
        }
        if reference.part == ReferenceKind::Motif && scope::is_of_registry(&text) {
            return self.of_registry(reference, &text).await;
        }
        if let Some(found) = self.beside_motif(&reference, &text) {
            return self.put(reference, found);
        }
        let file = scope::beside(reference.file.as_deref().unwrap_or(self.own), &text);
        let found = match read_text(Path::new(&file)).await {
            Ok(text) => Ok((file, text)),
            Err(why) => {
                let is_name = reference.part == ReferenceKind::Motif && !text.contains(['/', '.']);
                Err(if is_name {
                    format!("there is no Motif `{text}` among the files, and no file {file}")
                } else {
                    format!("cannot read {file}: {why}")
                })
            }
        };
        self.put(reference, found)
    }

    fn put(&mut self, reference: Reference, found: Result<(String, String), String>) -> String {
        match found {
            Ok((file, text)) => {
                self.library.put_text(reference, &file, &text);
                text
            }
            Err(why) => {
                self.library.put_absent(reference, why.as_str());
                why
            }
        }
    }

    async fn of_registry(&mut self, reference: Reference, text: &str) -> String {
        const FILE: &str = "motif.yaml";
        let found = self.fetch.motif(text).await.and_then(|artifact| {
            let missing = || format!("`{text}` has no {FILE}");
            let content = artifact.text(FILE).ok_or_else(missing)?.to_owned();
            let file = artifact.file(FILE);
            let root = file.strip_suffix(FILE).unwrap_or_default().to_owned();
            self.artifacts.push((root, artifact));
            Ok((file, content))
        });
        self.put(reference, found)
    }

    /// Finds a file that a Motif of a registry names: it is in the same artifact.
    fn beside_motif(
        &self,
        reference: &Reference,
        text: &str,
    ) -> Option<Result<(String, String), String>> {
        let from = reference.file.as_deref()?;
        let mut artifacts = self.artifacts.iter();
        let (root, artifact) = artifacts.find(|(root, _)| from.starts_with(root))?;
        let name = scope::beside(from.strip_prefix(root)?, text);
        let found = artifact.text(&name);
        Some(match found {
            Some(text) => Ok((artifact.file(&name), text.to_owned())),
            None => Err(format!("there is no file `{text}` in {root}")),
        })
    }
}
