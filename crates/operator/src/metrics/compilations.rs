//! Compilations of Katalogs and Komposers.

use orkestra_compiler::compilation::{CompilationResult, CompilationStep};

use super::Metrics;

/// What is compiled.
pub(crate) const SUBJECTS: &[&str] = &["newest", "stored", "review"];
/// The results of compilations.
pub(crate) const RESULTS: &[&str] = &["plan", "refused", "waiting", "panic"];

/// What a document is compiled for.
#[derive(Clone, Copy, Debug)]
pub enum CompiledFor {
    /// The newest state of an object.
    NewestRevision,
    /// A stored revision, after a start.
    StoredRevision,
    /// A review before an object is stored.
    Review,
}

impl Metrics {
    /// Counts a compilation; it has no result if the compiler panicked.
    pub fn compiled(&self, compiled: CompiledFor, step: Option<&CompilationStep>) {
        let subject = match compiled {
            CompiledFor::NewestRevision => "newest",
            CompiledFor::StoredRevision => "stored",
            CompiledFor::Review => "review",
        };
        let result = match step {
            None => "panic",
            Some(CompilationStep::Need(_) | CompilationStep::Waiting(_)) => "waiting",
            Some(CompilationStep::Ended(result)) => match **result {
                CompilationResult::Compiled(_) => "plan",
                CompilationResult::Motif(_) | CompilationResult::Refused(_) => "refused",
            },
        };
        let compilations = &self.0.families.compilations;
        compilations.with_label_values(&[subject, result]).inc();
    }
}
