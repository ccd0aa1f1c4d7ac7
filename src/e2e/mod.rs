//! Katalogs tested on a cluster: `ork e2e`.
//!
//! ```text
//!  paths ── load ──► E2Es and what they import ── session ──► a cluster that exists, or control_plane: one that is started
//!                                                    │
//!                        run: definitions, setup, operator, custom resources, deletion, cleanup
//!                         └ expect: polls what is expected ── call ──► process: sh, kubectl, helm, jq
//!                                      │ orkestra_core::e2e: what is called, and what answers come to
//!  Report: each case, with a diff where it failed ── print ──► text, JSON, JUnit
//! ```

mod call;
mod cleanup;
mod control_plane;
mod expect;
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
use orkestra_core::diagnostics::Diagnostics;
use tokio_util::sync::CancellationToken;

use crate::external;

pub(crate) use self::session::kind_context;
pub use self::{
    control_plane::{ASSETS, ControlPlaneError},
    print::{begun_text, case_text, finished_text, to_json, to_junit},
    session::SessionError,
};

/// How E2Es are run.
#[derive(Clone)]
pub struct Options {
    /// The cluster.
    pub cluster: Choice,
    /// A folder with `etcd`, `kube-apiserver` and `kube-controller-manager`, to start a control plane of.
    pub assets: Option<PathBuf>,
    /// Whether what was created stays.
    pub keep: bool,
    /// Documents that are left out: by name, by file, or by a folder above it.
    pub skip: Vec<String>,
    /// What makes the calls of `external` on a cluster.
    pub external: Arc<dyn Fn(&Connection) -> external::Client + Send + Sync>,
    /// Ends the run: what was created is cleaned up.
    pub stop: CancellationToken,
    /// Is told each document as it begins, and each case as it ends.
    pub progress: Arc<dyn Fn(Progress<'_>) + Send + Sync>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("cluster", &self.cluster)
            .field("assets", &self.assets)
            .finish_non_exhaustive()
    }
}

/// Which cluster is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// What each document says.
    Declared(ClusterOptions),
    /// This one, whatever the documents say.
    Current(ClusterOptions),
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A document begins.
    Begun(&'a Report),
    /// A case of it ended.
    Ended(&'a Case),
    /// A document ended.
    Finished(&'a Report),
    /// A remark for people.
    Note(&'a str),
}

/// What E2Es came to.
#[derive(Debug, Default)]
pub struct Ran {
    /// One a document, in the order in which they ran; those that have errors are missing.
    pub reports: Vec<Report>,
    /// What is wrong with the files; warnings too.
    pub problems: Diagnostics,
    /// Texts of the files by their name.
    pub texts: BTreeMap<String, String>,
    /// Every E2E file that was read.
    pub files: BTreeSet<PathBuf>,
    /// Why there is no cluster; documents that need one did not run.
    pub no_cluster: Option<SessionError>,
    /// The kubeconfig of a control plane that was started and still runs, since what was created stays.
    pub kept: Option<Kept>,
}

impl Ran {
    /// Whether every file can be read and every case passed.
    pub fn is_passed(&self) -> bool {
        !self.problems.has_errors()
            && self.no_cluster.is_none()
            && self.reports.iter().all(Report::is_passed)
    }
}

/// A control plane that still runs; it ends when this is dropped.
#[derive(Debug)]
pub struct Kept {
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    _control_plane: Arc<control_plane::ControlPlane>,
}

/// What one E2E came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The document's name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// What was done and expected, in order.
    pub cases: Vec<Case>,
    /// What was created and stays: `Website shop/one`.
    pub kept: Vec<String>,
}

impl Report {
    /// Whether no case failed.
    pub fn is_passed(&self) -> bool {
        self.cases
            .iter()
            .all(|case| !matches!(case.outcome, Outcome::Failed(_)))
    }
}

/// A step or an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Where it is in the document: `spec.expect[2]`; nothing for what comes from no single place.
    pub path: String,
    /// What it is.
    pub name: String,
    /// How long it took.
    pub took: Duration,
    /// What it came to.
    pub outcome: Outcome,
    /// What was printed after a failure, a line each.
    pub details: Vec<String>,
}

/// What a case came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All holds.
    Passed,
    /// It was not run, for this reason.
    Skipped(String),
    /// What was expected (`-`) and what was seen (`+`), a line each.
    Failed(Vec<String>),
}

/// Runs the E2Es of files and folders, and those that they import, each once.
pub async fn e2e(paths: &[PathBuf], options: &Options) -> Ran {
    let mut ran = Ran::default();
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

/// Runs a document and then what it imports.
async fn run_suite(
    suite: &load::Suite,
    sessions: &mut session::Sessions<'_>,
    options: &Options,
    ran: &mut Ran,
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
        (options.progress)(Progress::Finished(&report));
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
