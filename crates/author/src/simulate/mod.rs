//! `ork simulate` tests Katalogs without a cluster.
//!
//! ```text
//!  paths ── load ──► Simulates and their imports ── run ──► SimulationReport: cycles and expectations ── print ──► text, JSON, JUnit
//!                                                    │ Katalog, CRDs, custom resources: files next to it
//!                                                    └ orkestra_engine::reconcile::simulate: the passes themselves
//! ```

#[cfg(test)]
mod examples;
mod init;
mod load;
mod print;
mod run;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use orkestra_engine::reconcile::simulate::{Check, SimulatedRun};
use orkestra_language::diagnostics::Diagnostics;

pub use self::{
    init::{Init, InitError, init},
    print::{to_json, to_junit, to_text},
};

use orkestra_loader::compose::{DiskFiles, Fetch};

/// The options that override the documents.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// Custom resources to use instead of those that a document names.
    pub resources: Vec<PathBuf>,
    /// CRDs to use instead of those that a document names.
    pub definitions: Vec<PathBuf>,
    /// The number of cycles.
    pub cycles: Option<u32>,
    /// Whether calls without an answer get an empty one, regardless of the document.
    pub skip_external: bool,
    /// Documents that are left out: by name, by file, or by a folder above it.
    pub skip: Vec<String>,
    /// Fetches the sources of Komposers.
    pub fetch: Arc<dyn Fetch>,
}

impl Default for SimulateOptions {
    /// Overrides nothing; sources are files on disk.
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            definitions: Vec::new(),
            cycles: None,
            skip_external: false,
            skip: Vec::new(),
            fetch: Arc::new(DiskFiles),
        }
    }
}

/// The result of all simulations.
#[derive(Debug, Default)]
pub struct Simulated {
    /// One suite per Simulate, in the order in which they were found. Simulates with errors have none.
    pub suites: Vec<SimulationReport>,
    /// Errors and warnings of the files.
    pub problems: Diagnostics,
    /// The texts of the files by name.
    pub texts: BTreeMap<String, String>,
    /// Every file that was read.
    pub files: BTreeSet<PathBuf>,
}

impl Simulated {
    /// Whether every file can be read and every expectation is met.
    pub fn is_passed(&self) -> bool {
        !self.problems.has_errors() && self.suites.iter().all(SimulationReport::is_passed)
    }
}

/// One simulation.
#[derive(Debug)]
pub struct SimulationReport {
    /// The document's name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The custom resources that are reconciled.
    pub subjects: Vec<SimulatedSubject>,
    /// The cycles that ran.
    pub run: SimulatedRun,
    /// The expectations, with their results.
    pub checks: Vec<Check>,
}

impl SimulationReport {
    /// Whether every expectation is met.
    pub fn is_passed(&self) -> bool {
        self.checks.iter().all(Check::is_met)
    }

    /// The first cycle from which on nothing is written.
    pub fn steady_at(&self) -> Option<u32> {
        let all: Vec<usize> = (0..self.subjects.len()).collect();
        self.run.steady_at(&all)
    }
}

/// A custom resource that is reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedSubject {
    /// The operator's key in the Katalog.
    pub entry: String,
    /// Kind, namespace and name: `Website shop/hello`.
    pub object: String,
}

/// Runs the Simulates in files and folders and their imports, each once. Equal files give equal results.
pub async fn simulate(paths: &[PathBuf], options: &SimulateOptions) -> Simulated {
    let mut simulated = Simulated::default();
    for document in load::load(paths, &options.skip, &mut simulated) {
        if let Some(suite) = run::run(&document, options, &mut simulated).await {
            simulated.suites.push(suite);
        }
    }
    simulated
}
