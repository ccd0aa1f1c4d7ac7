//! A control plane with a fake node, and the commands that an administrator runs there.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::Value;
use testbed::{
    ControlPlane, Guarded, Identity, Options, Signal, eventually, free_port, spawn_guarded,
};

use crate::scenario::{LIMIT, Objects, ask, printed};

/// The namespace of the installation.
pub(crate) const NAMESPACE: &str = "orkestra-system";
/// The image of the tests. No Pod runs it: the nodes are fake.
pub(crate) const IMAGE: &str = "registry.invalid/orkestra";
/// The user name of the controller's service account.
pub(crate) const ACCOUNT: &str = "system:serviceaccount:orkestra-system:orkestra";

pub(crate) struct Site {
    pub(crate) cluster: ControlPlane,
    /// The administrator's client.
    client: Client,
    controller: Option<Guarded>,
    /// The number of controllers that were started.
    started: usize,
}

/// Returns the names of Orkestra's CRDs.
pub(crate) fn definitions() -> Vec<String> {
    orkestra_admin::install::definitions()
        .into_iter()
        .map(|one| one.name)
        .collect()
}

impl Site {
    /// Starts an empty control plane on which Pods run.
    pub(crate) fn start() -> Result<Self> {
        let cluster = ControlPlane::start(Options {
            nodes: true,
            ..Options::default()
        })?;
        let client = cluster.admin().client()?;
        Ok(Self {
            cluster,
            client,
            controller: None,
            started: 0,
        })
    }

    /// Returns a command that runs `ork` as a user, in the repository.
    pub(crate) fn command(identity: &Identity, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command
            .args(args)
            .env("KUBECONFIG", identity.kubeconfig_path())
            .env("ORK_IMAGE", IMAGE)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    }

    /// Runs `ork` as the administrator, which must succeed; returns its standard output.
    pub(crate) fn ork(&self, args: &[&str]) -> Result<String> {
        printed(&Self::command(&self.cluster.admin(), args).output()?, "ork")
    }

    /// Runs `ork` as the administrator, which must succeed; returns its standard output and standard error.
    pub(crate) fn said(&self, args: &[&str]) -> Result<String> {
        let output = Self::command(&self.cluster.admin(), args).output()?;
        let warned = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(printed(&output, "ork")? + &warned)
    }

    /// Runs `ork` as the administrator, which must exit with 1; returns its output.
    pub(crate) fn refused(&self, args: &[&str]) -> Result<String> {
        Self::refused_as(&self.cluster.admin(), args)
    }

    /// Runs `ork` as a user, which must exit with 1; returns its output.
    pub(crate) fn refused_as(identity: &Identity, args: &[&str]) -> Result<String> {
        let Output {
            status,
            stdout,
            stderr,
        } = Self::command(identity, args).output()?;
        let said = [stdout, stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        ensure!(
            status.code() == Some(1),
            "ork {args:?} ended with {status}: {said}"
        );
        Ok(said)
    }

    /// Runs `kubectl` as the administrator; returns its standard output. Paths are relative to the repository.
    pub(crate) fn kubectl(&self, args: &[&str], stdin: Option<&str>) -> Result<String> {
        printed(
            &self.cluster.kubectl(&self.cluster.admin(), args, stdin)?,
            "kubectl",
        )
    }

    /// Returns a command that runs `kubectl` as the administrator, in the repository.
    pub(crate) fn kubectl_command(&self, args: &[&str]) -> Result<Command> {
        let mut command = Command::new(self.cluster.assets().binary("kubectl")?);
        command
            .args(args)
            .env("KUBECONFIG", self.cluster.admin().kubeconfig_path())
            .env("KUBECACHEDIR", self.cluster.folder().join("kubectl-cache"))
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        Ok(command)
    }

    /// Writes a file into the folder of the control plane; returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.cluster.folder().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_str().context("a path is not text")?.to_owned())
    }

    /// Grants the permissions that the Katalog of a folder needs.
    pub(crate) fn grant(&self, folder: &str) -> Result<()> {
        let katalog = Path::new(folder).join("katalog.yaml");
        let katalog = katalog.to_str().context("a path is not text")?;
        let rules = self.ork(&["generate", "rbac", "--only-katalogs", "-k", katalog])?;
        self.kubectl(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            Some(&rules),
        )
        .map(drop)
    }

    /// Returns the objects of a kind in the namespace of the installation.
    pub(crate) fn objects(&self, plural: &str) -> Objects {
        Objects::namespaced(&self.client, "", NAMESPACE, plural)
    }

    /// Returns the objects at a path.
    pub(crate) fn objects_at(&self, path: &str) -> Objects {
        Objects::at(&self.client, path)
    }

    /// Returns the cluster-scoped objects of a kind.
    pub(crate) fn cluster_objects(&self, plural: &str) -> Objects {
        Objects::of_cluster(&self.client, plural)
    }

    /// Returns the CRD of one of Orkestra's kinds.
    pub(crate) async fn definition(&self, plural: &str) -> Result<Option<Value>> {
        let definitions = self.cluster_objects("customresourcedefinitions");
        definitions
            .get(&format!("{plural}.orkestra.orkspace.io"))
            .await
    }

    /// Starts the controller as the installed service account, and waits until it is ready.
    pub(crate) async fn launch(&mut self) -> Result<()> {
        self.launch_with(&["controller"]).await
    }

    /// Starts the controller with the arguments of the installed Deployment.
    pub(crate) async fn launch_as_installed(&mut self) -> Result<()> {
        let mut deployment = self.objects("deployments").fetch("orkestra").await?;
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].take();
        let args: Vec<String> = serde_json::from_value(args)?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.launch_with(&args).await
    }

    /// Starts another controller, and waits until it is ready. Returns the one that ran before.
    pub(crate) async fn launch_beside(&mut self) -> Result<Guarded> {
        let before = self.controller.take().context("no controller runs")?;
        self.launch().await?;
        Ok(before)
    }

    /// Starts the controller with these arguments, the command first.
    pub(crate) async fn launch_with(&mut self, args: &[&str]) -> Result<()> {
        let groups = [
            "system:serviceaccounts",
            "system:serviceaccounts:orkestra-system",
        ];
        let identity = self.cluster.identity(ACCOUNT, &groups)?;
        let listen = format!("127.0.0.1:{}", free_port()?);
        // A Pod would have its own address and namespace; this process gets them as arguments.
        let own = [
            "--leader-elect-resource-namespace",
            NAMESPACE,
            "--listen",
            &listen,
        ];
        self.started += 1;
        let name = format!("controller-{}.log", self.started);
        let log = self.cluster.folder().join(name);
        let args = [args, &own].concat();
        self.controller = Some(spawn_guarded(&Self::command(&identity, &args), &log)?);
        let is_ready = eventually("the controller is ready", LIMIT, async || {
            let answer = ask(&listen, "/readyz").await?;
            Ok(answer.starts_with("HTTP/1.1 200").then_some(()))
        });
        is_ready.await.with_context(|| self.log())
    }

    /// Returns the log of the controller.
    pub(crate) fn log(&self) -> String {
        self.controller
            .as_ref()
            .map(Guarded::log)
            .unwrap_or_default()
    }

    /// Stops the controller, which must exit successfully.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let mut controller = self.controller.take().context("no controller runs")?;
        controller.signal(Signal::Term)?;
        let status = controller.wait(LIMIT)?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(())
    }
}
