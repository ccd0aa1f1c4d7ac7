//! Faults for a process under test: a test ends one of its tasks by name. See `crates/ground/src/tasks/faults.rs`.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use orkestra_ground::tasks::{OnTaskEnd, Task};
use testbed::eventually;

use super::{LIMIT, Scenario};

/// The environment variable with the path of the file that contains the faults.
pub(crate) const FAULTS: &str = "ORK_TASK_FAULTS";

/// Writes faults, one per line, into the file that a process reads. Returns once the process has read them.
pub(crate) async fn strike(file: &Path, lines: &[&str]) -> Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, lines.join("\n"))?;
    std::fs::rename(new, file)?;
    eventually("the faults are read", LIMIT, async || {
        Ok((!file.exists()).then_some(()))
    })
    .await
}

/// Returns the value of a task's series in a response of `/metrics`; 0 if there is no series.
pub(crate) fn task_count(answer: &str, metric: &str, task: Task) -> Result<u64> {
    let series = format!("{metric}{{task=\"{}\"}} ", task.name());
    let value = answer.lines().find_map(|line| line.strip_prefix(&series));
    Ok(value.unwrap_or("0").parse()?)
}

impl Scenario {
    /// Makes the controller read faults, from its next start on.
    pub(crate) fn accept_faults(&mut self) {
        let file = self.faults().display().to_string();
        self.environment.push((FAULTS, file));
    }

    fn faults(&self) -> PathBuf {
        self.path("faults")
    }

    /// Ends the running task of the controller, or else the next one that starts.
    pub(crate) async fn strike(&self, task: Task) -> Result<()> {
        strike(&self.faults(), &[task.name()]).await
    }

    /// Returns how often a task of the controller has failed, and how often it was restarted.
    pub(crate) async fn task_counts(&self, task: Task) -> Result<(u64, u64)> {
        let answer = self.http("/metrics").await?;
        let [failures, restarts] = [
            "orkestra_task_failures_total",
            "orkestra_task_restarts_total",
        ]
        .map(|metric| task_count(&answer, metric, task));
        Ok((failures?, restarts?))
    }

    /// Ends a task that the controller restarts, and waits for the restart.
    pub(crate) async fn restart_task(&self, task: Task) -> Result<()> {
        ensure!(task.at_end() == OnTaskEnd::Restart, "{task:?}");
        let (failed, restarted) = self.task_counts(task).await?;
        self.strike(task).await?;
        eventually(&format!("{task:?} is restarted"), LIMIT, async || {
            let now = self.task_counts(task).await?;
            ensure!(now == (failed + 1, restarted + 1), "{now:?}");
            Ok(Some(()))
        })
        .await
    }
}
