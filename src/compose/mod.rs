//! Compositions: their sources fetched and merged.
//!
//! ```text
//!  Composition ── merge (core) ──► requests ── Fetch ──► artifacts ── merge again ──► ResolvedComposition
//! ```
//!
//! [`Fetch`] is the only part that does I/O. The requests of one round are fetched side by side.

mod disk;
mod paced;
mod remote;
#[cfg(test)]
mod tests;

use std::{fmt, io, path::Path, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use orkestra_core::{
    compose::{
        Artifact, Artifacts, Base, Composition, LOCK_FILE, Lock, Locked, Merged,
        ResolvedComposition, SourceRequest, merge,
    },
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{DocumentKind, Source, read_katalog, read_komposer},
};

pub use self::{disk::DiskFiles, paced::Paced, remote::Remote};

/// The maximum number of rounds: each one fetches the sources of nested compositions, whose depth is limited.
const MOST_ROUNDS: usize = 32;

/// Fetches sources.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Fetches one source. The error has the place of the source: see [`SourceRequest::problem`].
    fn fetch<'a>(&'a self, request: &'a SourceRequest) -> BoxFuture<'a, Fetched>;

    /// Fetches one source in its locked revision; a fetcher that knows no revisions fetches the current one.
    fn fetch_locked<'a>(
        &'a self,
        request: &'a SourceRequest,
        _locked: &'a Locked,
    ) -> BoxFuture<'a, Fetched> {
        self.fetch(request)
    }

    /// True if sources need not be locked, even if a composition requires it.
    fn ignores_locks(&self) -> bool {
        false
    }

    /// Fetches a Motif that a document imports from a registry.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn motif<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Arc<Artifact>, String>> {
        let why = format!("`{reference}` is not read: Motifs of registries are not available here");
        async move { Err(why) }.boxed()
    }

    /// Fetches the archive of a Helm chart: the newest version that satisfies `version`.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn chart<'a>(&'a self, chart: ChartReference<'a>) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        let why = format!(
            "`{}` is not fetched: charts are not available here",
            chart.chart
        );
        async move { Err(why) }.boxed()
    }
}

/// A Helm chart of a repository or a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartReference<'a> {
    /// The URL of the repository; `oci://…` of a registry.
    pub repo: &'a str,
    /// The name of the chart; empty if `repo` names it.
    pub chart: &'a str,
    /// A version or a range; empty for the newest.
    pub version: &'a str,
}

/// A fetched source, or why there is none.
pub type Fetched = Result<Arc<Artifact>, Box<Diagnostic>>;

/// A merged composition, with warnings.
pub type Merge = Result<(ResolvedComposition, Vec<Diagnostic>), Diagnostics>;

/// Fetches the sources of a composition and merges them.
///
/// # Errors
/// Every problem of the composition and its sources. If a source cannot be fetched, the problems of all sources of its round.
pub async fn resolve(composition: &Composition, fetch: &dyn Fetch) -> Merge {
    let unlocked;
    let mut composition = composition;
    if fetch.ignores_locks() && composition.requires_lock {
        let mut copy = composition.clone();
        (copy.lock, copy.requires_lock) = (Lock::default(), false);
        unlocked = copy;
        composition = &unlocked;
    }
    let lock = composition.requires_lock.then_some(&composition.lock);
    let mut artifacts = Artifacts::new();
    for _ in 0..MOST_ROUNDS {
        let requests = match merge(composition, &artifacts)? {
            Merged::Done(resolved, warnings) => return Ok((*resolved, warnings)),
            Merged::Need(requests) => requests,
        };
        let fetching = requests.iter().enumerate().map(|(index, request)| {
            let locked = lock.and_then(|lock| lock.sources.get(&request.id));
            let fetched = match locked {
                Some(locked) => fetch.fetch_locked(request, locked),
                None => fetch.fetch(request),
            };
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

/// Adds what `komposer.lock` beside a file locks, as far as `spec.locked` does not; without the file, nothing.
fn add_lock_file(lock: &mut Lock, komposer: &Path) -> Result<(), Diagnostics> {
    let file = komposer.with_file_name(LOCK_FILE);
    let wrong = |code, why: &dyn fmt::Display| Diagnostic {
        file: Some(file.display().to_string()),
        ..Diagnostic::error(code, FieldPath::root(), why.to_string())
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(wrong(Code::Unreadable, &why).into()),
    };
    let written = Lock::read(&text).map_err(|why| wrong(Code::Syntax, &why))?;
    for (source, locked) in written.sources {
        lock.sources.entry(source).or_insert(locked);
    }
    Ok(())
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
            let mut composition = Composition::of_komposer(&document, base);
            if composition.requires_lock {
                add_lock_file(&mut composition.lock, Path::new(file))?;
            }
            Ok(Some((composition, warnings)))
        }
        Some(DocumentKind::Katalog) if Composition::has_sources(&source.tree) => {
            let (document, warnings) = read_katalog(source)?;
            let composition = Composition::of_katalog(&document, base);
            Ok(composition.map(|composition| (composition, warnings)))
        }
        _ => Ok(None),
    }
}
