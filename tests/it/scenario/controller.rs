//! The scenario's controller process: starting it, checking it, ending it, and reading its log.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use testbed::{Guarded, Signal, eventually, free_port, spawn_guarded};

use super::{LIMIT, Scenario};

/// The maximum time until the controller ends after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(25);

impl Scenario {
    /// Starts `ork controller` for the Katalogs of the namespace, and waits until it is ready.
    pub(crate) async fn start(&mut self) -> Result<()> {
        self.launch().await?;
        self.until_serving().await
    }

    /// Starts `ork run` in the scenario's directory instead of the controller, and waits until it is ready. Without `katalogs`,
    /// it reads its default files.
    pub(crate) async fn run(&mut self, katalogs: &[&str]) -> Result<()> {
        let mut args = vec!["run".to_owned()];
        args.extend(
            katalogs
                .iter()
                .flat_map(|name| ["--katalog".to_owned(), (*name).to_owned()]),
        );
        self.launch_as(&args).await?;
        self.until_serving().await
    }

    async fn until_serving(&mut self) -> Result<()> {
        eventually("the controller is ready", LIMIT, async || {
            self.check_running()?;
            Ok(self
                .http("/readyz")
                .await?
                .starts_with("HTTP/1.1 200")
                .then_some(()))
        })
        .await
    }

    /// Starts the controller, and waits until it answers HTTP requests.
    pub(crate) async fn launch(&mut self) -> Result<()> {
        let namespace = self.namespace.clone();
        let args = [
            "controller",
            "--leader-elect=false",
            "--namespace",
            &namespace,
        ];
        self.launch_as(&args.map(str::to_owned)).await
    }

    async fn launch_as(&mut self, args: &[String]) -> Result<()> {
        ensure!(self.controller.is_none(), "the controller already runs");
        for attempt in 0.. {
            let port = free_port()?;
            self.listen = format!("127.0.0.1:{port}");
            let mut command = self.command();
            command.current_dir(&self.folder);
            command.args(args).arg("--listen");
            command.arg(format!("{}:{port}", self.host));
            command.args(&self.arguments);
            command.envs(self.environment.iter().cloned());
            let mut controller = spawn_guarded(&command, &self.log_path())?;
            let answers = eventually("the controller answers", LIMIT, async || {
                match controller.status()? {
                    Some(status) => Ok(Some(Err(status))),
                    None => Ok(self.http("/livez").await.ok().map(|_| Ok(()))),
                }
            });
            match answers.await? {
                Ok(()) => {
                    self.controller = Some(controller);
                    return Ok(());
                }
                // Another process may have taken the port.
                Err(_) if attempt < 3 && controller.log().contains("in use") => {}
                Err(status) => bail!("the controller ended with {status}:\n{}", controller.log()),
            }
        }
        Ok(())
    }

    /// Returns the controller's process id, which tests compare to detect a restart.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.controller.as_ref().map(Guarded::pid)
    }

    /// Returns an error if the controller has ended.
    pub(crate) fn check_running(&mut self) -> Result<()> {
        let controller = self
            .controller
            .as_mut()
            .context("no controller was started")?;
        match controller.status()? {
            Some(status) => bail!("the controller ended with {status}"),
            None => Ok(()),
        }
    }

    /// Ends the controller with SIGKILL.
    pub(crate) fn kill9(&mut self) -> Result<()> {
        let mut controller = self.controller.take().context("no controller runs")?;
        ensure!(
            controller.status()?.is_none(),
            "the controller ended before it was killed"
        );
        controller.kill()
    }

    /// Sends SIGTERM to the controller.
    pub(crate) fn signal_term(&mut self) -> Result<()> {
        let controller = self.controller.as_mut();
        let controller = controller.context("no controller runs")?;
        controller.signal(Signal::Term)
    }

    /// Ends the controller with SIGTERM, and checks its exit status.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        self.signal_term()?;
        self.until_ended()
    }

    /// Waits until the controller has ended after a SIGTERM. A second signal would end it immediately.
    pub(crate) fn until_ended(&mut self) -> Result<()> {
        let mut controller = self.controller.take().context("no controller runs")?;
        let status = controller.wait(END_LIMIT)?;
        ensure!(
            status.success(),
            "after SIGTERM the controller ended with {status}"
        );
        Ok(())
    }

    /// Returns the log of the scenario's controllers.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("controller.log")
    }
}
