//! Runs one call and filters its output.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use orkestra_e2e::{Argument, CallAction, CallOutput, Filter, ProgramCall};
use orkestra_language::api::e2e::PodChoice;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use super::{
    forward::{self, ForwardError},
    process::{KUBECTL, ProcessError, ProgramEnvironment},
};
use orkestra_loader::files::beside;

/// The shell for commands.
const SHELL: &str = "sh";
const JQ: &str = "jq";

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TestCallError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Forward(#[from] ForwardError),
    #[error("no Pod has the labels `{0}`")]
    NoPod(String),
    #[error("the Lease `{0}` has no holder")]
    NoLeader(String),
    #[error("the output is not YAML: {0}")]
    NotYaml(String),
    #[error("`jq` failed: {0}")]
    Filter(String),
    #[error("cannot write a temporary file: {0}")]
    Scratch(std::io::Error),
}

impl TestCallError {
    /// True if a retry would have the same result.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Process(error) | Self::Forward(ForwardError::Process(error)) => {
                error.is_lasting()
            }
            _ => false,
        }
    }

    /// True if it timed out.
    pub(crate) fn is_late(&self) -> bool {
        matches!(
            self,
            Self::Process(ProcessError::Late(_)) | Self::Forward(ForwardError::Late)
        )
    }
}

/// Runs calls of a document.
#[derive(Debug)]
pub(crate) struct CallRunner<'a> {
    /// The file of the document; paths are relative to it.
    pub(crate) file: &'a Path,
    pub(crate) place: &'a ProgramEnvironment,
}

impl CallRunner<'_> {
    /// Runs a call, until `deadline` at most.
    pub(crate) async fn run(
        &self,
        call: &ProgramCall<'_>,
        deadline: Instant,
    ) -> Result<CallOutput, TestCallError> {
        let pod = match &call.pod {
            Some(choice) => Some(self.pod(choice, call.namespace, deadline).await?),
            None => None,
        };
        let pod = pod.as_deref().unwrap_or_default();
        let mut answer = match &call.action {
            CallAction::Shell(command) => {
                let args = ["-c", command].map(OsString::from);
                self.place.run(SHELL, &args, None, deadline).await?
            }
            CallAction::Kubectl(words, input) => {
                let args = self.args(words, pod, None);
                let input = input.as_deref();
                self.place.run(KUBECTL, &args, input, deadline).await?
            }
            CallAction::Copy(words) => self.copy(words, pod, deadline).await?,
            CallAction::Forward(forward) => {
                let target = self.args(&forward.target, pod, None);
                forward::request(self.place, forward, &target, deadline).await?
            }
        };
        if let Some(filter) = &call.filter
            && answer.exit_code == call.exit_code
        {
            answer.output = self.filter(filter, &answer.output, deadline).await?;
        }
        Ok(answer)
    }

    fn args(&self, words: &[Argument], pod: &str, scratch: Option<&Path>) -> Vec<OsString> {
        let word = |word: &Argument| match word {
            Argument::Text(text) => text.into(),
            Argument::File(file) => self.whole(file).into(),
            Argument::Pod(before, after) => format!("{before}{pod}{after}").into(),
            Argument::Scratch => scratch.unwrap_or(Path::new("")).into(),
        };
        words.iter().map(word).collect()
    }

    /// Returns the absolute path of a file relative to the document, because programs run in another folder.
    fn whole(&self, file: &str) -> PathBuf {
        let path = beside(self.file, file);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Runs `kubectl cp` to a new file and returns its contents.
    async fn copy(
        &self,
        words: &[Argument],
        pod: &str,
        deadline: Instant,
    ) -> Result<CallOutput, TestCallError> {
        let folder = TempDir::new().map_err(TestCallError::Scratch)?;
        let file = folder.path().join("copy");
        let args = self.args(words, pod, Some(&file));
        let mut answer = self.place.run(KUBECTL, &args, None, deadline).await?;
        if answer.exit_code == 0 {
            let copied = std::fs::read(&file).map_err(TestCallError::Scratch)?;
            answer.output = String::from_utf8_lossy(&copied).into_owned();
        }
        Ok(answer)
    }

    /// Returns the name of the selected Pod.
    async fn pod(
        &self,
        choice: &PodChoice,
        namespace: Option<&str>,
        deadline: Instant,
    ) -> Result<String, TestCallError> {
        if let Some(name) = &choice.name {
            return Ok(name.clone());
        }
        if let Some(leader) = &choice.leader_election {
            let field = "jsonpath={.spec.holderIdentity}";
            let namespace = leader.namespace.as_deref().or(namespace);
            let args = ["get", "lease", &leader.lease, "-o", field];
            let holder = self.ask(&args, namespace, deadline).await?;
            // The suffix after the name of the Pod makes the holder unique.
            let pod = holder.split('_').next().unwrap_or_default();
            return match pod {
                "" => Err(TestCallError::NoLeader(leader.lease.clone())),
                pod => Ok(pod.to_owned()),
            };
        }
        let labels = choice.label_selector.as_deref().unwrap_or_default();
        let field = "jsonpath={.items[*].metadata.name}";
        let args = ["get", "pods", "-l", labels, "-o", field];
        let names = self.ask(&args, namespace, deadline).await?;
        let first = names.split_whitespace().min();
        first
            .map(str::to_owned)
            .ok_or_else(|| TestCallError::NoPod(labels.to_owned()))
    }

    async fn ask(
        &self,
        args: &[&str],
        namespace: Option<&str>,
        deadline: Instant,
    ) -> Result<String, TestCallError> {
        let namespace = namespace.into_iter().flat_map(|name| ["-n", name]);
        let args: Vec<OsString> = args
            .iter()
            .copied()
            .chain(namespace)
            .map(OsString::from)
            .collect();
        let answer = self.place.run(KUBECTL, &args, None, deadline).await?;
        Ok(answer.output)
    }

    /// Applies an expression of `jq` to the output.
    async fn filter(
        &self,
        filter: &Filter,
        output: &str,
        deadline: Instant,
    ) -> Result<String, TestCallError> {
        let (expression, input) = match filter {
            Filter::Json(expression) => (expression, output.to_owned()),
            Filter::Yaml(expression) => (expression, yaml_to_json(output)?),
        };
        let args = ["-r", expression].map(OsString::from);
        let answer = self.place.run(JQ, &args, Some(&input), deadline).await?;
        if answer.exit_code != 0 {
            return Err(TestCallError::Filter(answer.error.trim().to_owned()));
        }
        Ok(answer.output)
    }
}

/// Converts YAML documents to a sequence of JSON values, the form in which `jq` reads several.
fn yaml_to_json(text: &str) -> Result<String, TestCallError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| TestCallError::NotYaml(error.to_string()))?;
    let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
    Ok(documents.join("\n"))
}
