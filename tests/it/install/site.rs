//! A control plane with a fake node, and what an administrator does there.

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
pub(super) const NAMESPACE: &str = "orkestra-system";

pub(super) struct Site {
    pub(super) cluster: ControlPlane,
    /// The administrator's client.
    client: Client,
    controller: Option<Guarded>,
}

/// The names of Orkestra's own CRDs.
pub(super) fn definitions() -> Vec<String> {
    orkestra::install::definitions()
        .into_iter()
        .map(|one| one.name)
        .collect()
}

impl Site {
    /// An empty control plane whose Pods run.
    pub(super) fn start() -> Result<Self> {
        let cluster = ControlPlane::start(Options {
            nodes: true,
            ..Options::default()
        })?;
        let client = cluster.admin().client()?;
        Ok(Self {
            cluster,
            client,
            controller: None,
        })
    }

    /// `ork` as that user, in the repository.
    pub(super) fn command(identity: &Identity, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command
            .args(args)
            .env("KUBECONFIG", identity.kubeconfig_path())
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    }

    /// What `ork` prints to the administrator; it must succeed.
    pub(super) fn ork(&self, args: &[&str]) -> Result<String> {
        printed(&Self::command(&self.cluster.admin(), args).output()?, "ork")
    }

    /// What `ork` says to the administrator; it must refuse.
    pub(super) fn refused(&self, args: &[&str]) -> Result<String> {
        Self::refused_as(&self.cluster.admin(), args)
    }

    /// The same to that user.
    pub(super) fn refused_as(identity: &Identity, args: &[&str]) -> Result<String> {
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

    /// What `kubectl` prints to the administrator; paths are those of the repository.
    pub(super) fn kubectl(&self, args: &[&str], stdin: Option<&str>) -> Result<String> {
        printed(
            &self.cluster.kubectl(&self.cluster.admin(), args, stdin)?,
            "kubectl",
        )
    }

    /// A file with that text.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.cluster.folder().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_str().context("a path is not text")?.to_owned())
    }

    /// Grants what the Katalog of a folder needs.
    pub(super) fn grant(&self, folder: &str) -> Result<()> {
        let katalog = Path::new(folder).join("katalog.yaml");
        let katalog = katalog.to_str().context("a path is not text")?;
        let rules = self.ork(&["generate", "rbac", "-k", katalog])?;
        self.kubectl(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            Some(&rules),
        )
        .map(drop)
    }

    /// Objects in the namespace of the installation.
    pub(super) fn objects(&self, plural: &str) -> Objects {
        Objects::namespaced(&self.client, "", NAMESPACE, plural)
    }

    /// The objects at a path.
    pub(super) fn objects_at(&self, path: &str) -> Objects {
        Objects::at(&self.client, path)
    }

    /// Cluster-scoped objects.
    pub(super) fn cluster_objects(&self, plural: &str) -> Objects {
        Objects::of_cluster(&self.client, plural)
    }

    /// The CRD of a kind of Orkestra's.
    pub(super) async fn definition(&self, plural: &str) -> Result<Option<Value>> {
        let definitions = self.cluster_objects("customresourcedefinitions");
        definitions
            .get(&format!("{plural}.orkestra.orkspace.io"))
            .await
    }

    /// Starts the controller as the installed service account, and waits until it leads and is ready.
    pub(super) async fn launch(&mut self) -> Result<()> {
        self.launch_with(&[]).await
    }

    /// The same with further arguments.
    pub(super) async fn launch_with(&mut self, more: &[&str]) -> Result<()> {
        let account = format!("system:serviceaccount:{NAMESPACE}:orkestra");
        let groups = [
            "system:serviceaccounts",
            "system:serviceaccounts:orkestra-system",
        ];
        let identity = self.cluster.identity(&account, &groups)?;
        let listen = format!("127.0.0.1:{}", free_port()?);
        let args = [
            "controller",
            "--leader-elect-resource-namespace",
            NAMESPACE,
            "--listen",
            &listen,
        ];
        let args = [&args[..], more].concat();
        let log = self.cluster.folder().join("controller.log");
        self.controller = Some(spawn_guarded(&Self::command(&identity, &args), &log)?);
        let is_ready = eventually("the controller is ready", LIMIT, async || {
            let answer = ask(&listen, "/readyz").await?;
            Ok(answer.starts_with("HTTP/1.1 200").then_some(()))
        });
        is_ready.await.with_context(|| self.log())
    }

    /// What the controller has logged.
    pub(super) fn log(&self) -> String {
        self.controller
            .as_ref()
            .map(Guarded::log)
            .unwrap_or_default()
    }

    /// Ends the controller.
    pub(super) fn stop(&mut self) -> Result<()> {
        let mut controller = self.controller.take().context("no controller runs")?;
        controller.signal(Signal::Term)?;
        let status = controller.wait(LIMIT)?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(())
    }
}
