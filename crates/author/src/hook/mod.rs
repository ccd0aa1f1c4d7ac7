//! Checks whether a hook keeps its contract: `ork hook test`. Neither a cluster nor a running operator is needed.
//!
//! ```text
//!  Katalogs, custom resource ──► HookTrial (the pass itself) ── requests ──► Caller: a server, or a module ──► answers
//!                                                                                              │
//!                                                            suite: a case for each rule ◄─────┘ ──► text, JSON, JUnit
//! ```

mod call;
mod print;
mod suite;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use orkestra_engine::reconcile::{hooks::contract::HookTrial, preview::Assumptions};
use orkestra_language::diagnostics::{Code, Diagnostics, FieldPath};
use orkestra_object::value::Node;

pub use self::print::{to_json, to_junit, to_text};
use self::{call::Caller, suite::Suite};
use crate::render::{Rendered, pick, read_calls, read_objects};
use orkestra_loader::{compose::Fetch, files};

/// The input of a test; `-` is standard input.
#[derive(Debug, Clone)]
pub struct HookTestRequest {
    /// Katalogs, and definitions that they do not reference: files and folders.
    pub katalogs: Vec<PathBuf>,
    /// The custom resource that the hook is asked about.
    pub resource: PathBuf,
    /// Existing objects: children of the custom resource, and objects that it reads.
    pub children: Vec<PathBuf>,
    /// Responses to external calls and to other hooks: a map by name.
    pub calls: Option<PathBuf>,
    /// The name of the hook; `constructor` for a constructor.
    pub hook: String,
    /// What is called instead of what the Katalog declares.
    pub instead: Option<HookTarget>,
    /// The present time for templates.
    pub now: Timestamp,
    /// Fetches the sources of compositions.
    pub fetch: Arc<dyn Fetch>,
}

/// What a test calls instead of what the Katalog declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookTarget {
    /// A server: the URL, and the one that is called while the custom resource is being deleted.
    Url(String, Option<String>),
    /// The file of a module.
    Module(PathBuf),
}

/// Why nothing can be tested.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The module cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The module cannot be used.
    #[error("cannot use {}", path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: orkestra_wasm::ModuleError,
    },
    /// The URL is not valid.
    #[error("`{0}` is not a URL that can be called")]
    Url(String),
    /// The hook cannot be called with this input.
    #[error("{0}")]
    Hook(String),
}

/// The results of a test.
#[derive(Debug, Default)]
pub struct HookTested {
    /// The name of the hook.
    pub hook: String,
    /// The file of the custom resource.
    pub file: String,
    /// The cases, in order; none if the files have errors.
    pub cases: Vec<HookCase>,
    /// Problems of the files, including warnings.
    pub problems: Diagnostics,
    /// The texts of the files by name, for the source lines of problems.
    pub texts: BTreeMap<String, String>,
}

/// One rule of the contract, as checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCase {
    /// The rule, in a few words.
    pub name: &'static str,
    /// The result.
    pub outcome: HookOutcome,
    /// How long it took.
    pub took: Duration,
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOutcome {
    /// The hook keeps the rule; a remark may follow.
    Passed(Option<String>),
    /// The rule does not apply, with the reason.
    Skipped(String),
    /// The hook breaks the rule.
    Failed(String),
}

impl HookTested {
    /// True if the hook keeps every rule, and the files have no errors.
    pub fn is_passed(&self) -> bool {
        let failed = |case: &HookCase| matches!(case.outcome, HookOutcome::Failed(_));
        !self.problems.has_errors() && !self.cases.is_empty() && !self.cases.iter().any(failed)
    }
}

/// Asks a hook about a custom resource, and checks its answers.
///
/// # Errors
/// Nothing can be tested. Errors of the files are in the results.
pub async fn test(request: &HookTestRequest) -> Result<HookTested, Error> {
    let found = files::validate_with(&request.katalogs, &*request.fetch).await;
    let mut read = Rendered {
        passes: Vec::new(),
        problems: found.problems,
        texts: found.texts,
    };
    let resources = read_objects(std::slice::from_ref(&request.resource), &mut read);
    let children = read_objects(&request.children, &mut read);
    let calls = read_calls(request.calls.as_slice(), &found.katalogs, &mut read);
    let mut tested = HookTested {
        hook: request.hook.clone(),
        file: request.resource.display().to_string(),
        ..HookTested::default()
    };
    if !read.problems.has_errors()
        && let [resource] = &resources[..]
    {
        match pick(&found.katalogs, resource) {
            Ok(picked) => {
                let children: Vec<Node> = children.into_iter().map(|one| one.node).collect();
                let scopes = picked.scopes();
                let assumed = Assumptions {
                    cr: resource.node.clone(),
                    children: &children,
                    cross: &[],
                    calls: &calls,
                    version: picked.version(),
                    scopes: &scopes,
                    now: request.now,
                    seen_as: None,
                };
                let suite = Suite {
                    plan: picked.operator,
                    hook: &request.hook,
                    assumed,
                };
                let caller = Caller::new(request.instead.as_ref())?;
                tested.cases = suite.run(caller).await?;
            }
            Err(problem) => read.problems.push(*problem),
        }
    } else if !read.problems.has_errors() {
        let message = format!("expected one custom resource, found {}", resources.len());
        let problem = orkestra_language::diagnostics::Diagnostic::error(
            Code::CannotRender,
            FieldPath::root(),
            message,
        );
        read.problems.push(problem);
    }
    (tested.problems, tested.texts) = (read.problems, read.texts);
    Ok(tested)
}

/// Runs a pass with what is assumed.
fn trial<'a>(
    plan: &'a orkestra_plan::OperatorPlan,
    hook: &str,
    assumed: Assumptions<'a>,
) -> Result<HookTrial<'a>, Error> {
    HookTrial::new(plan, hook, assumed).map_err(Error::Hook)
}
