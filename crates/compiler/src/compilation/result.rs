//! How a compilation ends.

use std::fmt;
use std::sync::Arc;

use super::inputs::UsedMotifs;
use crate::compile::{self, Typed};
use crate::compose::{Artifacts, ResolvedComposition, SourceRecord, SourceRequest};
use crate::scope::Library;
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, Severity};
use orkestra_language::document::KatalogDocument;
use orkestra_language::reasons::KatalogReason;
use orkestra_plan::definitions::Schemas;
use orkestra_plan::{Declaring, Plan, policy::Violation};

/// The end of a compilation.
#[derive(Debug)]
pub enum CompilationResult {
    /// A plan.
    Compiled(Box<CompiledKatalog>),
    /// The problems of a Motif, which has no plan of its own.
    Motif(Diagnostics),
    /// It cannot run.
    Refused(RefusedDocument),
}

/// A Katalog or Komposer that can run.
#[derive(Debug)]
pub struct CompiledKatalog {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The declaration: of a composition, the merged one.
    pub document: KatalogDocument,
    /// The known custom resource definitions, including those of its `crdFile`s.
    pub schemas: Schemas,
    /// The referenced documents.
    pub library: Library,
    /// The composition that the declaration is merged from; `None` if it has no sources.
    pub composed: Option<Arc<ResolvedComposition>>,
    /// The kind of the document that declares it.
    pub kind: Declaring,
    /// What it was compiled from.
    pub used: UsedInputs,
    /// The warnings.
    pub warnings: Diagnostics,
}

impl CompiledKatalog {
    /// Every expression with its type and position: those of the file in order, then those of Motifs.
    pub fn types(&self) -> Vec<Typed> {
        let (katalog, spec) = (&self.plan.katalog, &self.document.spec);
        let mut types = compile::types(katalog, spec, &self.schemas, &self.library);
        for expression in &mut types {
            expression.locate(&self.document.tree);
        }
        types.sort_by_cached_key(|typed| (typed.file.clone(), typed.line, typed.column));
        types
    }

    /// Returns the entries that do not run, sorted: disabled ones, and those that the compiler stopped.
    pub fn disabled(&self) -> Vec<String> {
        let is_stopped = |name: &str| self.plan.stopped.iter().any(|stopped| stopped.name == name);
        let entries = self.document.spec.crds.iter();
        entries
            .filter(|(name, entry)| !entry.is_enabled() || is_stopped(name))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// What a plan was compiled from, beside its document.
#[derive(Clone, Debug, Default)]
pub struct UsedInputs {
    /// The artifacts of its sources.
    pub artifacts: Artifacts,
    /// Its sources with their operators.
    pub sources: Vec<SourceRecord>,
    /// The Motifs of the cluster.
    pub motifs: UsedMotifs,
}

/// Why a document cannot run.
#[derive(Debug)]
pub enum RefusedDocument {
    /// It has errors: all problems, including warnings.
    Invalid(Diagnostics),
    /// A source has another digest than the locked one, or is not locked.
    NotLocked(String),
    /// It has children that the installation does not permit.
    NotPermitted(Vec<Violation>),
}

impl RefusedDocument {
    /// Returns the reason of the condition.
    pub fn reason(&self) -> KatalogReason {
        let problems = match self {
            Self::Invalid(problems) => problems,
            Self::NotLocked(_) => return KatalogReason::NotLocked,
            Self::NotPermitted(_) => return KatalogReason::ChildNotPermitted,
        };
        let mut errors = (problems.iter()).filter(|problem| problem.severity == Severity::Error);
        if compile::lacks_api_types(problems) {
            KatalogReason::NoApiTypes
        } else if errors.all(|problem| problem.code == Code::NotFound) {
            KatalogReason::MotifNotFound
        } else {
            KatalogReason::InvalidRevision
        }
    }
}

/// Formats a line for each problem: the errors first, then the warnings.
impl fmt::Display for RefusedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = match self {
            Self::Invalid(problems) => {
                let is_error = |problem: &&Diagnostic| problem.severity == Severity::Error;
                let (errors, warnings): (Vec<_>, Vec<_>) = problems.iter().partition(is_error);
                let all = errors.into_iter().chain(warnings);
                all.map(ToString::to_string).collect()
            }
            Self::NotLocked(message) => vec![message.clone()],
            Self::NotPermitted(violations) => {
                let line = |violation: &Violation| {
                    format!(
                        "{violation} is not permitted by `--sensitive-children` of the controller"
                    )
                };
                violations.iter().map(line).collect()
            }
        };
        f.write_str(&lines.join("\n"))
    }
}

/// The sources that a compilation waits for.
#[derive(Debug, Default)]
pub struct MissingSources(pub Vec<MissingSource>);

/// A source that is not there yet.
#[derive(Debug)]
pub struct MissingSource {
    /// The source.
    pub request: SourceRequest,
    /// Why the last attempt to fetch it failed; none if it did not.
    pub why: Option<String>,
}

impl MissingSources {
    /// Returns the reason of the condition.
    pub fn reason(&self) -> KatalogReason {
        if self.0.iter().any(|missing| missing.why.is_some()) {
            KatalogReason::SourceFailed
        } else {
            KatalogReason::Fetching
        }
    }
}

/// Formats why sources cannot be fetched, a line for each; if none failed, their names.
impl fmt::Display for MissingSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.0.iter().filter_map(|missing| {
            let (request, why) = (&missing.request, missing.why.as_ref()?);
            let message = format!("source {} cannot be fetched: {why}", request.id);
            Some(request.problem(Code::Unreadable, message).to_string())
        });
        let failed: Vec<String> = failed.collect();
        if !failed.is_empty() {
            return f.write_str(&failed.join("\n"));
        }
        let ids = self.0.iter().map(|missing| &*missing.request.id);
        write!(f, "fetching {}", ids.collect::<Vec<_>>().join(", "))
    }
}
