//! `E2E`: tests of a Katalog on a cluster.

mod assertions;
mod kubectl;
mod pod;
mod writes;

use schemars::JsonSchema;
use serde::Deserialize;

use std::time::Duration;

use super::duration::Span;
use super::envelope;
use super::gate::Gates;
use super::later::Refused;
use super::notes::Notes;
use super::setup::{SetupFile, SetupWait};
use super::shape::Shape;
use super::simulate::ExpectedResource;

pub use super::setup::HelmChart;
pub use assertions::{Assertions, OneOrMore};
pub use kubectl::{
    Auth, Copy, Describe, Events, Exec, Format, Get, Kubectl, Logs, PortForward, Top, TopKind,
};
pub use pod::{LeaderElection, PodChoice};
pub use writes::{Apply, Delete, Patch, PatchType, Restart, Scale};

/// Fields of `spec` that may stand beside it.
pub(crate) const BLOCKS: &[&str] = &["imports"];

/// Name of the cluster where none is given.
pub const DEFAULT_CLUSTER: &str = "ork-e2e";
/// How long an expectation may take where nothing is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The specification of an E2E: a test of an operator on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["init"], "packs are not supported; name the files as `katalog`, `crd` and `cr`"))]
#[schemars(transform = Refused(&["valuesFiles"], "list the files under `valueFiles` of the chart, in `setup.helm`"))]
pub struct E2eSpec {
    /// The Katalog file, relative to this file: its operators run in the process of `ork e2e`. Required, unless `custom` names
    /// another operator or the document has only `imports`.
    pub katalog: Option<String>,
    /// A file with custom resource definitions to apply.
    pub crd: Option<String>,
    /// Further files with custom resource definitions.
    pub crd_files: Vec<String>,
    /// A file with custom resources: they are applied after the expectations of `setup-complete`, and deleted before those of
    /// `cr-deleted`.
    pub cr: Option<String>,
    /// Further files with custom resources.
    pub cr_files: Vec<String>,
    /// The cluster for the test.
    pub cluster: Option<Cluster>,
    /// An operator that `ork` does not start.
    pub custom: Option<CustomOperator>,
    /// Preparation before the operator starts.
    pub setup: Option<E2eSetup>,
    /// Functions that the templates of `when` and `or` can call.
    pub notes: Option<Notes>,
    /// Diagnostics that are printed once if any expectation is not met.
    pub on_failure: Option<OnFailure>,
    /// A list of expectations. Those of a phase are checked in this order.
    pub expect: Vec<Expectation>,
    /// Files with further E2E documents, relative to this file. They run after the expectations of this one.
    pub imports: Vec<Import>,
}

/// The cluster of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    /// The provider of the cluster. Default `kind`.
    pub provider: Option<ClusterProvider>,
    /// Name of the kind cluster. Default `ork-e2e`.
    pub name: Option<String>,
    /// If `true`, uses the kind cluster of that name if it is in the kubeconfig. Default `false`.
    pub reuse: Option<bool>,
}

/// A provider of the cluster of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ClusterProvider {
    /// A cluster for this test alone: a control plane that `ork` starts, or a kind cluster that you started.
    #[default]
    Kind,
    /// The cluster of the kubeconfig.
    Existing,
}

/// An operator that `ork` does not start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomOperator {
    /// `kubernetes`: the operator runs in the cluster already, or `setup` installs it.
    pub target: CustomTarget,
}

/// The place where an operator that `ork` does not start runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CustomTarget {
    /// In the cluster.
    Kubernetes,
}

/// Preparation before the operator starts.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum E2eSetup {
    /// A list of files.
    Files(Vec<SetupFile>),
    /// Manifests, then charts, then objects to wait for.
    Steps(E2eSetupSteps),
}

/// Preparation before the operator starts: first `apply`, then `helm`, then `wait`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct E2eSetupSteps {
    /// A list of manifests to apply, in order.
    pub apply: Vec<SetupFile>,
    /// Charts to install with the program `helm`, in order.
    pub helm: Vec<HelmChart>,
    /// A list of objects that must exist before the operator starts.
    pub wait: Vec<SetupWait>,
}

/// The manifests, charts and objects of `setup`, in the order in which they are used.
impl E2eSetup {
    /// The manifests.
    pub fn files(&self) -> &[SetupFile] {
        match self {
            Self::Files(files) => files,
            Self::Steps(steps) => &steps.apply,
        }
    }

    /// The charts.
    pub fn charts(&self) -> &[HelmChart] {
        match self {
            Self::Files(_) => &[],
            Self::Steps(steps) => &steps.helm,
        }
    }

    /// What is waited for in the end.
    pub fn wait(&self) -> &[SetupWait] {
        match self {
            Self::Files(_) => &[],
            Self::Steps(steps) => &steps.wait,
        }
    }
}

/// The phase in which an expectation is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// After setup and the start of the operator, before any custom resource is applied.
    #[default]
    SetupComplete,
    /// After the custom resources were applied.
    CrApplied,
    /// After the deletion of the custom resources was requested.
    CrDeleted,
}

impl Phase {
    /// As documents write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SetupComplete => "setup-complete",
            Self::CrApplied => "cr-applied",
            Self::CrDeleted => "cr-deleted",
        }
    }
}

/// An expectation, or a file with some. All of its assertions are polled until they hold together.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Expectation {
    /// A file with expectations under `expect`, relative to this one. Must not be combined with other fields.
    pub include: Option<String>,
    /// Name of the expectation, as a description. Required without `include`.
    pub name: Option<String>,
    /// The phase in which the expectation is checked. Default `setup-complete`.
    pub after: Option<Phase>,
    /// The timeout for all assertions to hold. Default `60s`.
    pub timeout: Option<Span>,
    /// The delay before the first check. It is not part of `timeout`. Default `0s`.
    pub wait: Option<Span>,
    /// Conditions on the first custom resource and the time; if they do not hold, the expectation is skipped.
    #[serde(flatten)]
    pub gates: Gates,
    /// Objects that are expected.
    pub resources: Vec<ExpectedResource>,
    /// Commands, and what is expected of their output.
    pub commands: Vec<Command>,
    /// Calls of `kubectl`, and what is expected of their output.
    pub kubectl: Option<Kubectl>,
    /// Diagnostics that are printed if this expectation is not met.
    pub on_failure: Option<OnFailure>,
}

/// A command of the shell, run with `sh -c` in the folder of the document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// The command.
    pub run: String,
    /// The expected exit code. Default `0`.
    #[schemars(range(min = 0, max = 255))]
    pub exit_code: Option<i32>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// Commands to run after a failure. Their output is printed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OnFailure {
    /// Calls of `kubectl`.
    pub kubectl: Option<Kubectl>,
    /// Commands.
    pub commands: Vec<Command>,
}

/// A file with further E2E documents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Import {
    /// The path, relative to this file.
    Path(String),
    /// The path, and how its documents are run.
    Suite(ImportedSuite),
}

/// A file with further E2E documents, and how they are run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedSuite {
    /// The path, relative to this file.
    pub path: String,
    /// If `true`, the documents run on their own control plane. Requires a cluster that `ork` starts. Default `false`.
    pub fresh_cluster: Option<bool>,
    /// The delay before the documents run. Default `0s`.
    pub wait: Option<Span>,
}

impl Import {
    /// The path, relative to the document.
    pub fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Suite(suite) => &suite.path,
        }
    }

    /// Whether it needs a cluster of its own.
    pub fn is_fresh(&self) -> bool {
        matches!(self, Self::Suite(suite) if suite.fresh_cluster == Some(true))
    }

    /// How long to wait before its documents run.
    pub fn wait(&self) -> Duration {
        match self {
            Self::Path(_) => Duration::ZERO,
            Self::Suite(suite) => suite.wait.map_or(Duration::ZERO, |span| span.0),
        }
    }
}

/// The shape of a whole E2E. `spec` may be left out of a suite of `imports`.
pub(crate) fn document_shape() -> Shape {
    envelope::without_spec(envelope::shape::<E2eSpec>(BLOCKS))
}
