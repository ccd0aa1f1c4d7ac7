//! Compositions: their sources fetched and merged.
//!
//! ```text
//!  Composition ── merge (core) ──► requests ── Fetch ──► artifacts ── merge again ──► Resolved
//! ```
//!
//! [`Fetch`] is the only part that does I/O. The requests of one round are fetched side by side.

mod disk;
mod paced;
mod remote;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use orkestra_core::{
    compose::{Artifact, Artifacts, Base, Composition, Merged, Request, Resolved, merge},
    diagnostics::{Code, Diagnostic, Diagnostics},
    document::{DocumentKind, Source, read_katalog, read_komposer},
};

pub use self::{disk::DiskFiles, paced::Paced, remote::Remote};

/// The maximum number of rounds: each one fetches the sources of nested compositions, whose depth is limited.
const MOST_ROUNDS: usize = 32;

/// Fetches sources.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Fetches one source. The error has the place of the source: see [`Request::problem`].
    fn fetch<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Fetched>;

    /// Fetches a Motif that a document imports from a registry.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn motif<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Arc<Artifact>, String>> {
        let why = format!("`{reference}` is not read: Motifs of registries are not available here");
        async move { Err(why) }.boxed()
    }
}

/// A fetched source, or why there is none.
pub type Fetched = Result<Arc<Artifact>, Box<Diagnostic>>;

/// A merged composition, with warnings.
pub type Merge = Result<(Resolved, Vec<Diagnostic>), Diagnostics>;

/// Fetches the sources of a composition and merges them.
///
/// # Errors
/// Every problem of the composition and its sources. If a source cannot be fetched, the problems of all sources of its round.
pub async fn resolve(composition: &Composition, fetch: &dyn Fetch) -> Merge {
    let mut artifacts = Artifacts::new();
    for _ in 0..MOST_ROUNDS {
        let requests = match merge(composition, &artifacts)? {
            Merged::Done(resolved, warnings) => return Ok((*resolved, warnings)),
            Merged::Need(requests) => requests,
        };
        let fetching = requests.iter().enumerate().map(|(index, request)| {
            let fetched = fetch.fetch(request);
            fetched.map(move |fetched| (index, fetched))
        });
        let mut fetching: FuturesUnordered<_> = fetching.collect();
        let mut failed = Vec::new();
        while let Some((index, fetched)) = fetching.next().await {
            match fetched {
                Ok(artifact) => drop(artifacts.insert(requests[index].id.clone(), artifact)),
                Err(problem) => failed.push((index, *problem)),
            }
        }
        drop(fetching);
        if !failed.is_empty() {
            failed.sort_by_key(|(index, _)| *index);
            return Err(failed.into_iter().map(|(_, problem)| problem).collect());
        }
    }
    let message = format!("the sources need more than {MOST_ROUNDS} rounds");
    Err(Diagnostic::error(Code::TooLarge, composition.place(), message).into())
}

/// Returns the composition that a document of a file declares, with warnings; `None` if it is not composed.
///
/// # Errors
/// The problems of the document.
pub fn composition(
    source: &Source,
    file: &str,
) -> Result<Option<(Composition, Vec<Diagnostic>)>, Diagnostics> {
    let base = Base::File(file.to_owned());
    match DocumentKind::of(source) {
        Some(DocumentKind::Komposer) => {
            let (document, warnings) = read_komposer(source)?;
            Ok(Some((Composition::of_komposer(&document, base), warnings)))
        }
        Some(DocumentKind::Katalog) if Composition::has_sources(&source.tree) => {
            let (document, warnings) = read_katalog(source)?;
            let composition = Composition::of_katalog(&document, base);
            Ok(composition.map(|composition| (composition, warnings)))
        }
        _ => Ok(None),
    }
}
