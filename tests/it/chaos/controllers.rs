//! The processes of `ork controller`, each behind its own proxy.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use orkestra_ground::tasks::Task;
use serde_json::Value;
use testbed::{Guarded, Proxy, Signal, free_port, spawn_guarded};

use super::schedule::LEASE_NAMESPACE;
use crate::private::Private;
use crate::scenario;

/// A controller process and the processes that replace it.
pub(crate) struct Controller {
    pub(crate) proxy: Arc<Proxy>,
    process: Option<Guarded>,
    listen: String,
    log: PathBuf,
}

impl Controller {
    /// Returns a controller that is not started yet and that logs to `log`.
    pub(crate) fn new(proxy: Proxy, log: PathBuf) -> Self {
        Self {
            proxy: Arc::new(proxy),
            process: None,
            listen: String::new(),
            log,
        }
    }

    /// Starts the process unless it runs. A process that has ended is an error: no failure of its API server may end it.
    pub(crate) fn ensure_runs(&mut self) -> Result<()> {
        if let Some(process) = &mut self.process {
            let Some(status) = process.status()? else {
                return Ok(());
            };
            // No error if another process has taken the port.
            let log = self.log();
            let last = log.lines().last().unwrap_or_default();
            if !last.contains("in use") {
                bail!("a controller ended with {status}: {last}");
            }
        }
        self.listen = format!("127.0.0.1:{}", free_port()?);
        let kubeconfig = self.proxy.identity().kubeconfig_path();
        let args = ["controller", "--listen", &self.listen];
        let lease = ["--leader-elect-resource-namespace", LEASE_NAMESPACE];
        let mut command = Private::ork(kubeconfig, &[args.as_slice(), &lease].concat());
        command.env("ORK_TASK_FAULTS", self.faults());
        self.process = Some(spawn_guarded(&command, &self.log)?);
        Ok(())
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.ensure_runs()?;
        let mut process = self.process.take().context("it does not run")?;
        process.kill()
    }

    /// Ends the process with SIGTERM. Its exit status is not checked: the API server may be unreachable.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        self.ensure_runs()?;
        let mut process = self.process.take().context("it does not run")?;
        process.signal(Signal::Term)?;
        process.wait(scenario::LIMIT).map(drop)
    }

    fn faults(&self) -> PathBuf {
        self.log.with_extension("faults")
    }

    /// Ends a task of that name, or the next one that starts. If the process is killed before it reads the request, its successor
    /// reads it.
    pub(crate) fn end_task(&self, task: Task) -> Result<()> {
        let new = self.log.with_extension("new-faults");
        std::fs::write(&new, task.name())?;
        Ok(std::fs::rename(new, self.faults())?)
    }

    /// Stops the process with SIGSTOP, or continues it with SIGCONT.
    pub(crate) fn pause(&mut self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::Stop } else { Signal::Cont };
        let process = self.process.as_mut().context("it is not running")?;
        process.signal(signal)
    }

    /// Returns the page `/katalog`.
    pub(crate) async fn page(&self) -> Result<Value> {
        let answer = scenario::ask(&self.listen, "/katalog").await?;
        let (_, body) = answer
            .split_once("\r\n\r\n")
            .context("an answer without a body")?;
        Ok(serde_json::from_str(body)?)
    }

    /// Returns the log lines of panics, without those that the test itself caused.
    pub(crate) fn panics(&self) -> Vec<String> {
        let log = self.log();
        let unasked =
            |line: &&str| line.contains("panicked") && !line.contains("a fault on purpose");
        let lines = log.lines().filter(unasked);
        lines.map(str::to_owned).collect()
    }

    /// Returns the log of the process and its predecessors.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}
