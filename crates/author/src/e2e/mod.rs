//! Tests Katalogs on a cluster: `ork e2e`.
//!
//! ```text
//!  paths ── load ──► E2Es and their imports ── session ──► an existing cluster, or control_plane: a new one
//!                                                    │
//!                        run: definitions, setup, operator, custom resources, deletion, cleanup
//!                         └ expect: polls expectations ── call ──► process: sh, kubectl, helm, jq
//!                                      │ orkestra_e2e: calls, and the evaluation of results
//!  Report: each case, with a diff if it failed ── print ──► text, JSON, JUnit
//! ```

mod call;
mod control_plane;
mod forward;
mod helm;
mod load;
mod objects;
mod operator;
mod print;
mod process;
mod run;
mod session;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use orkestra_cluster::client::{ClusterOptions, Connection};
use orkestra_language::diagnostics::Diagnostics;
use tokio_util::sync::CancellationToken;

use orkestra_loader::compose::Fetch;
use orkestra_operator::external;

pub use self::session::kind_context;
pub use self::{
    control_plane::{ASSETS, ControlPlaneError},
    print::{begun_text, case_text, finished_text, to_json, to_junit},
    session::SessionError,
};

/// The options of a run.
#[derive(Clone)]
pub struct E2eOptions {
    /// The cluster.
    pub cluster: Choice,
    /// A folder with `etcd`, `kube-apiserver` and `kube-controller-manager`, from which a control plane is started.
    pub assets: Option<PathBuf>,
    /// Keeps the created objects.
    pub keep: bool,
    /// Documents to skip: by name, by file, or by a folder above it.
    pub skip: Vec<String>,
    /// Creates the client for `external` calls on a cluster.
    pub external: Arc<dyn Fn(&Connection) -> external::Client + Send + Sync>,
    /// Fetches the sources of Komposers.
    pub fetch: Arc<dyn Fetch>,
    /// Cancels the run; the created objects are cleaned up.
    pub stop: CancellationToken,
    /// Called for each document when it begins, and for each case when it ends.
    pub progress: Arc<dyn Fn(TestProgress<'_>) + Send + Sync>,
}

impl fmt::Debug for E2eOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2eOptions")
            .field("cluster", &self.cluster)
            .field("assets", &self.assets)
            .finish_non_exhaustive()
    }
}

/// The choice of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The cluster that each document declares.
    Declared(ClusterOptions),
    /// This cluster, regardless of the documents.
    Current(ClusterOptions),
}

/// A progress event.
#[derive(Clone, Copy, Debug)]
pub enum TestProgress<'a> {
    /// A document begins.
    Begun(&'a Report),
    /// A case of it ended.
    Ended(&'a Case),
    /// A document ended.
    Finished(&'a Report),
    /// A message for users.
    Note(&'a str),
}

/// The results of E2Es.
#[derive(Debug, Default)]
pub struct E2eResults {
    /// One per document, in execution order; documents with errors are missing.
    pub reports: Vec<Report>,
    /// Errors and warnings in the files.
    pub problems: Diagnostics,
    /// The texts of the files by name.
    pub texts: BTreeMap<String, String>,
    /// All E2E files that were read.
    pub files: BTreeSet<PathBuf>,
    /// The reason why there is no cluster; documents that need one did not run.
    pub no_cluster: Option<SessionError>,
    /// The kubeconfig of a control plane that was started and still runs, because the created objects are kept.
    pub kept: Option<RunningControlPlane>,
}

impl E2eResults {
    /// True if every file was read and every case passed.
    pub fn is_passed(&self) -> bool {
        !self.problems.has_errors()
            && self.no_cluster.is_none()
            && self.reports.iter().all(Report::is_passed)
    }
}

/// A control plane that still runs; it stops when this is dropped.
#[derive(Debug)]
pub struct RunningControlPlane {
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    _control_plane: Arc<control_plane::ControlPlane>,
}

/// The result of one E2E.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The document's name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The steps and expectations, in order.
    pub cases: Vec<Case>,
    /// The created objects that are kept: `Website shop/one`.
    pub kept: Vec<String>,
}

impl Report {
    /// True if no case failed.
    pub fn is_passed(&self) -> bool {
        self.cases
            .iter()
            .all(|case| !matches!(case.outcome, TestOutcome::Failed(_)))
    }
}

/// A step or an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The position in the document: `spec.expect[2]`; empty for a case without a single position.
    pub path: String,
    /// The name.
    pub name: String,
    /// The duration.
    pub took: Duration,
    /// The result.
    pub outcome: TestOutcome,
    /// The lines printed after a failure.
    pub details: Vec<String>,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// All assertions are true.
    Passed,
    /// Not run, for this reason.
    Skipped(String),
    /// The lines of the diff: expected (`-`) and actual (`+`).
    Failed(Vec<String>),
}

/// Runs the E2Es in files and folders, and their imports, each once.
pub async fn e2e(paths: &[PathBuf], options: &E2eOptions) -> E2eResults {
    let mut ran = E2eResults::default();
    let suites = load::load(paths, &options.skip, &mut ran);
    if ran.problems.has_errors() {
        return ran;
    }
    let mut sessions = session::Sessions::new(options);
    for suite in &suites {
        Box::pin(run_suite(suite, &mut sessions, options, &mut ran)).await;
        if ran.no_cluster.is_some() {
            break;
        }
    }
    if options.keep {
        ran.kept = sessions.into_kept();
    } else {
        sessions.end().await;
    }
    ran
}

/// Runs a document and then its imports.
async fn run_suite(
    suite: &load::LoadedTest,
    sessions: &mut session::Sessions<'_>,
    options: &E2eOptions,
    ran: &mut E2eResults,
) {
    if options.stop.is_cancelled() {
        return;
    }
    if suite.is_test() {
        let session = match sessions.of(&suite.loaded.document.spec).await {
            Ok(session) => session,
            Err(error) => {
                ran.no_cluster = Some(error);
                return;
            }
        };
        let report = run::run(suite, &session, options).await;
        (options.progress)(TestProgress::Finished(&report));
        ran.reports.push(report);
    }
    for imported in &suite.imports {
        tokio::select! {
            () = tokio::time::sleep(imported.wait) => {}
            () = options.stop.cancelled() => return,
        }
        let before = match sessions.enter(imported.is_fresh) {
            Ok(before) => before,
            Err(error) => {
                ran.no_cluster = Some(error);
                return;
            }
        };
        for suite in &imported.suites {
            Box::pin(run_suite(suite, sessions, options, ran)).await;
        }
        sessions.leave(before).await;
        if ran.no_cluster.is_some() {
            return;
        }
    }
}
