//! Runs one E2E: preparation, expectations, cleanup.

mod cleanup;
mod expect;

use std::path::{Path, PathBuf};

use orkestra_cluster::requests::Cluster;
use orkestra_e2e::{calls, commands};
use orkestra_language::api::E2eSpec;
use orkestra_language::api::e2e::{OnFailure, Phase};
use orkestra_language::diagnostics::FieldPath;
use orkestra_object::value::Node;
use tokio::time::{Duration, Instant};

use self::{cleanup::Created, expect::PolledExpectation};
use super::{
    Case, E2eOptions, Report, TestOutcome, TestProgress,
    call::CallRunner,
    helm,
    load::LoadedTest,
    objects::{self, TestObjectError},
    operator::{OperatorError, TestedOperators},
    process::ProgramEnvironment,
    session::Session,
};
use orkestra_loader::files::beside;

/// The timeout of all calls of `onFailure` together.
const AFTERMATH: Duration = Duration::from_secs(30);
/// The reason why a case was not run.
const STOPPED: &str = "a step before it failed";
const INTERRUPTED: &str = "interrupted";

/// A running document.
pub(crate) struct Run<'a> {
    pub(crate) suite: &'a LoadedTest,
    pub(crate) session: &'a Session,
    pub(crate) options: &'a E2eOptions,
    pub(crate) place: ProgramEnvironment,
    pub(crate) report: Report,
    pub(crate) created: Created,
    pub(crate) operator: Option<TestedOperators>,
}

/// Runs a document, and cleans up after it.
pub(crate) async fn run(suite: &LoadedTest, session: &Session, options: &E2eOptions) -> Report {
    let document = &suite.loaded.document;
    let folder = suite
        .loaded
        .path
        .parent()
        .filter(|path| !path.as_os_str().is_empty());
    let report = Report {
        name: document.name.clone(),
        file: suite.loaded.path.display().to_string(),
        ..Report::default()
    };
    (options.progress)(TestProgress::Begun(&report));
    let mut run = Run {
        suite,
        session,
        options,
        place: ProgramEnvironment {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            variables: session.variables.clone(),
        },
        report,
        created: Created::default(),
        operator: None,
    };
    let is_ready = run.prepare().await;
    run.expectations(is_ready).await;
    run.aftermath().await;
    run.clean_up().await;
    run.report
}

impl<'a> Run<'a> {
    pub(crate) fn spec(&self) -> &'a E2eSpec {
        &self.suite.loaded.document.spec
    }

    pub(crate) fn caller(&self) -> CallRunner<'_> {
        CallRunner {
            file: &self.suite.loaded.path,
            place: &self.place,
        }
    }

    pub(crate) fn cluster(&self) -> &'a Cluster {
        &self.session.cluster
    }

    fn beside(&self, file: &str) -> PathBuf {
        beside(&self.suite.loaded.path, file)
    }

    pub(crate) fn add(&mut self, case: Case) {
        (self.options.progress)(TestProgress::Ended(&case));
        self.report.cases.push(case);
    }

    /// Adds a step; returns false if it failed.
    pub(crate) fn step(
        &mut self,
        path: &str,
        name: &str,
        began: Instant,
        result: Result<(), String>,
    ) -> bool {
        let is_done = result.is_ok();
        let failed = |why: String| {
            TestOutcome::Failed(why.lines().map(|line| format!("+ {line}")).collect())
        };
        self.add(Case {
            path: path.to_owned(),
            name: name.to_owned(),
            took: began.elapsed(),
            outcome: result.map_or_else(failed, |()| TestOutcome::Passed),
            details: Vec::new(),
        });
        is_done
    }

    /// Applies CRDs and setup, and starts the operator; returns false if that failed.
    async fn prepare(&mut self) -> bool {
        let spec = self.spec();
        if spec.crd.is_some() || !spec.crd_files.is_empty() {
            let began = Instant::now();
            let files = spec.crd.iter().chain(&spec.crd_files);
            let result = self
                .or_stop(Self::apply_all, files.cloned().collect())
                .await;
            let path = if spec.crd.is_some() {
                "spec.crd"
            } else {
                "spec.crdFiles"
            };
            if !self.step(path, "the definitions are applied", began, result) {
                return false;
            }
        }
        if spec.setup.is_some() {
            let began = Instant::now();
            let result = self
                .or_stop(async |run: &mut Self, ()| run.set_up().await, ())
                .await;
            if !self.step("spec.setup", "the setup is complete", began, result) {
                return false;
            }
        }
        let Some(katalog) = &spec.katalog else {
            return true;
        };
        // The operator would reconcile it.
        let began = Instant::now();
        if let Err(why) = self
            .or_stop(async |run: &mut Self, ()| run.refuse_existing().await, ())
            .await
        {
            let name = "no custom resource of the test exists";
            return self.step("spec.cr", name, began, Err(why));
        }
        let katalog = self.beside(katalog);
        let result = self.or_stop(Self::start, katalog).await;
        self.step("spec.katalog", "the operator runs", began, result)
    }

    /// Awaits a future, unless the run is cancelled.
    async fn or_stop<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self, T) -> Result<(), String>,
        with: T,
    ) -> Result<(), String> {
        let stop = self.options.stop.clone();
        tokio::select! {
            result = work(self, with) => result,
            () = stop.cancelled() => Err(INTERRUPTED.to_owned()),
        }
    }

    async fn apply_all(&mut self, files: Vec<String>) -> Result<(), String> {
        for file in files {
            self.apply(&file).await?;
        }
        Ok(())
    }

    async fn apply(&mut self, file: &str) -> Result<(), String> {
        let (cluster, path) = (self.cluster(), self.beside(file));
        let applied = objects::apply_file(cluster, &path, false, &mut self.created.objects).await;
        applied.map_err(|error| with_causes(&error))
    }

    async fn refuse_existing(&self) -> Result<(), String> {
        let spec = self.spec();
        for file in spec.cr.iter().chain(&spec.cr_files) {
            let refused = objects::refuse_file(self.cluster(), &self.beside(file)).await;
            refused.map_err(|error| with_causes(&error))?;
        }
        Ok(())
    }

    async fn set_up(&mut self) -> Result<(), String> {
        let Some(setup) = &self.spec().setup else {
            return Ok(());
        };
        let cluster = self.cluster();
        let wait = |error: orkestra_controller::FileError| error.to_string();
        for file in setup.files() {
            self.apply(file.path()).await?;
            orkestra_controller::wait_for(cluster, file.wait())
                .await
                .map_err(wait)?;
        }
        for chart in setup.charts() {
            let release = helm::install(&self.place, &self.suite.loaded.path, chart).await;
            let release = release.map_err(|error| error.to_string())?;
            self.created.releases.push(release);
            orkestra_controller::wait_for(cluster, &chart.wait)
                .await
                .map_err(wait)?;
        }
        orkestra_controller::wait_for(cluster, setup.wait())
            .await
            .map_err(wait)
    }

    async fn start(&mut self, katalog: PathBuf) -> Result<(), String> {
        let applied = &mut self.created.objects;
        let connection = &self.session.connection;
        match TestedOperators::start(connection, katalog, self.options, applied).await {
            Ok(operator) => {
                self.operator = Some(operator);
                Ok(())
            }
            Err(OperatorError::Invalid(problems)) => Err(problems.to_string()),
            Err(error) => Err(with_causes(&error)),
        }
    }

    /// Checks the expectations, phase by phase.
    async fn expectations(&mut self, is_ready: bool) {
        let (gates, _) = orkestra_e2e::gates(self.spec());
        let mut may_go_on = is_ready;
        for phase in [Phase::SetupComplete, Phase::CrApplied, Phase::CrDeleted] {
            if may_go_on {
                may_go_on = match phase {
                    Phase::SetupComplete => true,
                    Phase::CrApplied => self.create().await,
                    Phase::CrDeleted => self.delete().await,
                };
            }
            let expect = self.spec().expect.iter().zip(&self.suite.places);
            for ((expected, place), gate) in expect.zip(&gates) {
                if expected.after.unwrap_or_default() != phase {
                    continue;
                }
                let look = PolledExpectation {
                    expected,
                    place: &place.1,
                    gate,
                };
                let case = if self.options.stop.is_cancelled() {
                    look.skipped(INTERRUPTED)
                } else if may_go_on {
                    self.look(&look).await
                } else {
                    look.skipped(STOPPED)
                };
                self.add(case);
            }
        }
    }

    /// Returns the current state of the first custom resource.
    pub(crate) async fn first_resource(&self) -> Node {
        let Some(first) = self.created.resources.first() else {
            return Node::Null;
        };
        let live = objects::live(self.cluster(), first).await;
        live.ok().flatten().unwrap_or_default()
    }

    /// Applies the custom resources; returns false if that failed.
    async fn create(&mut self) -> bool {
        let spec = self.spec();
        if spec.cr.is_none() && spec.cr_files.is_empty() {
            return true;
        }
        let began = Instant::now();
        let files = spec.cr.iter().chain(&spec.cr_files).cloned().collect();
        let create = async |run: &mut Self, files: Vec<String>| {
            for file in files {
                let (cluster, path) = (run.cluster(), run.beside(&file));
                let resources = &mut run.created.resources;
                let applied = objects::apply_file(cluster, &path, true, resources).await;
                applied.map_err(|error| with_causes(&error))?;
            }
            Ok(())
        };
        let result = self.or_stop(create, files).await;
        let path = if spec.cr.is_some() {
            "spec.cr"
        } else {
            "spec.crFiles"
        };
        self.step(path, "the custom resources are applied", began, result)
    }

    /// Requests the deletion of the custom resources, if an expectation depends on it.
    async fn delete(&mut self) -> bool {
        if !self
            .spec()
            .expect
            .iter()
            .any(|expected| after(expected) == Phase::CrDeleted)
        {
            return true;
        }
        let began = Instant::now();
        let result = self.delete_resources().await;
        let name = "the deletion of the custom resources is requested";
        self.step("spec.cr", name, began, result)
    }

    async fn delete_resources(&mut self) -> Result<(), String> {
        let resources = self.created.resources.clone();
        self.delete_owners(&resources).await
    }

    /// Prints the output that the document requests after a failure.
    async fn aftermath(&mut self) {
        let Some(block) = &self.spec().on_failure else {
            return;
        };
        if self.report.is_passed() || self.options.stop.is_cancelled() {
            return;
        }
        let path = FieldPath::root().field("spec").field("onFailure");
        let details = self.print(block, &path).await;
        let last = self.report.cases.iter_mut().rev();
        let mut failed = last.filter(|case| matches!(case.outcome, TestOutcome::Failed(_)));
        if let Some(case) = failed.next() {
            case.details.extend(details);
            let case = case.clone();
            (self.options.progress)(TestProgress::Note(&super::print::details_text(&case)));
        }
    }

    /// Returns the output of the calls of `onFailure`.
    pub(crate) async fn print(&self, block: &OnFailure, path: &FieldPath) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(kubectl) = &block.kubectl {
            all.extend(calls(kubectl, &path.field("kubectl")));
        }
        all.extend(commands(&block.commands, &path.field("commands")));
        let deadline = Instant::now() + AFTERMATH;
        let mut printed = Vec::new();
        for call in all {
            printed.push(format!("$ {}", call.title));
            match self.caller().run(&call, deadline).await {
                Ok(_) if call.is_secret => printed.push("***".to_owned()),
                Ok(answer) => {
                    let said = [answer.output, answer.error];
                    let lines = said.iter().flat_map(|text| text.lines());
                    printed.extend(lines.map(str::to_owned));
                }
                Err(error) => printed.push(error.to_string()),
            }
        }
        printed
    }
}

fn after(expected: &orkestra_language::api::e2e::Expectation) -> Phase {
    expected.after.unwrap_or_default()
}

/// Returns an error with its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors contain the text of their cause.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Returns the message of an expectation of objects if the cluster does not respond.
pub(crate) fn reported_objects(error: &TestObjectError) -> String {
    with_causes(error)
}
