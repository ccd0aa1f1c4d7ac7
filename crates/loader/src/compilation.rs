//! Drives compilations: core decides, on a thread for blocking work, and the requests of a step are answered side by side.
//!
//! ```text
//!  Compilation (core) ── step, on a blocking thread ──► requests ── CompilationInputs ──► answers ──► step …
//! ```
//!
//! [`CompilationInputs`] is the only part that does I/O: files have one, the controller and the reviews of the gateway have
//! another.

use std::collections::BTreeSet;

use futures::{FutureExt as _, future::BoxFuture, future::try_join_all};
use orkestra_compiler::{
    compilation::{
        Compilation, CompilationStep, InputAnswer, InputRequest, MotifAnswer, SourceAnswer,
        UnreadFile,
    },
    compose::{Artifact, Locked, SourceRequest},
};
use orkestra_ground::tasks::{self, Task};
use orkestra_plan::{GroupKind, definitions::Schemas};
use tokio::task::JoinError;

/// Answers the requests of compilations.
pub trait CompilationInputs: Sync {
    /// Why nothing can be decided.
    type Error: Send;

    /// Returns a source of a composition; if it is locked, in that revision.
    fn source<'a>(
        &'a self,
        request: &'a SourceRequest,
        locked: Option<&'a Locked>,
    ) -> BoxFuture<'a, SourceAnswer>;

    /// Returns the Motif of this name.
    fn motif<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<MotifAnswer, Self::Error>>;

    /// Returns the custom resource definitions of these kinds, as far as they exist.
    fn schemas<'a>(&'a self, kinds: &'a BTreeSet<GroupKind>) -> BoxFuture<'a, Schemas>;

    /// Returns the Motif of a registry, or the reason as a sentence: files alone name one.
    fn artifact<'a>(
        &'a self,
        reference: &'a str,
    ) -> BoxFuture<'a, Result<std::sync::Arc<Artifact>, String>> {
        let why = format!("`{reference}` is not read: Motifs of registries are not available here");
        async move { Err(why) }.boxed()
    }

    /// Returns the text of a file: only files refer to some.
    fn file<'a>(&'a self, _: &'a std::path::Path) -> BoxFuture<'a, Result<String, UnreadFile>> {
        let unread = UnreadFile {
            is_missing: true,
            why: "there are no files here".to_owned(),
        };
        async move { Err(unread) }.boxed()
    }
}

/// Why a compilation has no result.
#[derive(Debug)]
pub enum DriveError<E> {
    /// The compiler panicked, or the process ends.
    Compiler(JoinError),
    /// An input cannot be read.
    Input(E),
}

/// Gathers everything that a compilation needs, except for schemas: it needs these, waits, or has ended. `held` is dropped when the
/// compiler has ended, even if the caller does not wait for that.
pub async fn gather<I: CompilationInputs>(
    compilation: Compilation,
    inputs: &I,
    held: impl Clone + Send + 'static,
) -> Result<(Compilation, CompilationStep), DriveError<I::Error>> {
    let is_schema = |request: &InputRequest| matches!(request, InputRequest::Schemas(_));
    drive(compilation, inputs, held, is_schema).await
}

/// Drives a compilation, gathered or not, until it waits or has ended. `held` is as in [`gather`].
pub async fn finish<I: CompilationInputs>(
    compilation: Compilation,
    inputs: &I,
    held: impl Clone + Send + 'static,
) -> Result<(Compilation, CompilationStep), DriveError<I::Error>> {
    drive(compilation, inputs, held, |_| false).await
}

async fn drive<I: CompilationInputs>(
    mut compilation: Compilation,
    inputs: &I,
    held: impl Clone + Send + 'static,
    is_last: impl Fn(&InputRequest) -> bool,
) -> Result<(Compilation, CompilationStep), DriveError<I::Error>> {
    loop {
        let named = compilation.site().to_string();
        let stepped = blocking(named, held.clone(), move || {
            let step = compilation.step();
            (compilation, step)
        });
        let (back, step) = stepped.await.map_err(DriveError::Compiler)?;
        compilation = back;
        let CompilationStep::Need(requests) = &step else {
            return Ok((compilation, step));
        };
        if requests.iter().any(&is_last) {
            return Ok((compilation, step));
        }
        let answers = requests.iter().map(|request| answer(inputs, request));
        let answers = try_join_all(answers).await.map_err(DriveError::Input)?;
        for answer in answers {
            compilation.answer(answer);
        }
    }
}

/// Reads or compiles on a thread for blocking work, so that a large document delays nothing else. `held` is as in [`gather`].
///
/// # Errors
/// It panicked, or the process ends.
pub async fn blocking<T: Send + 'static>(
    named: String,
    held: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let work = move || {
        let done = work();
        drop(held);
        done
    };
    tasks::named(Task::Compilation, named)
        .start_blocking(work)
        .await
}

async fn answer<I: CompilationInputs>(
    inputs: &I,
    request: &InputRequest,
) -> Result<InputAnswer, I::Error> {
    Ok(match request {
        InputRequest::Source(source, locked) => {
            let answer = inputs.source(source, locked.as_ref()).await;
            InputAnswer::Source(source.id.clone(), answer)
        }
        InputRequest::Motif(name) => InputAnswer::Motif(name.clone(), inputs.motif(name).await?),
        InputRequest::Artifact(reference) => {
            InputAnswer::Artifact(reference.clone(), inputs.artifact(reference).await)
        }
        InputRequest::File(path) => InputAnswer::File(path.clone(), inputs.file(path).await),
        InputRequest::Schemas(kinds) => {
            InputAnswer::Schemas(kinds.clone(), inputs.schemas(kinds).await)
        }
    })
}
