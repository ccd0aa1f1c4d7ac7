//! A control plane for one test, for actions that would disturb other tests. `ork` runs in it as the service account that
//! `ork generate rbac` names.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use testbed::{ControlPlane, Identity, Options};

use crate::scenario::{Objects, printed};
use crate::waters;

/// A control plane for one test.
pub(crate) struct Private {
    pub(crate) cluster: ControlPlane,
    /// The identity of `ork`.
    pub(crate) identity: Identity,
    /// The administrator's client.
    pub(crate) client: Client,
    group: &'static str,
}

impl Private {
    /// Starts a control plane. Ponds and lakes belong to the API group `group`.
    pub(crate) fn start(options: Options, group: &'static str) -> Result<Self> {
        let cluster = ControlPlane::start(options)?;
        let identity = cluster.identity(
            "system:serviceaccount:orkestra-system:orkestra",
            &["system:serviceaccounts"],
        )?;
        let client = cluster.admin().client()?;
        Ok(Self {
            cluster,
            identity,
            client,
            group,
        })
    }

    /// Installs Orkestra's own kinds, ponds and lakes, and grants `ork` the permissions that the Katalog requires.
    pub(crate) fn prepare(&self, katalog: &str) -> Result<()> {
        let file = self.cluster.folder().join("katalog.yaml");
        std::fs::write(&file, katalog)?;
        self.apply(&self.printed(&["crds"])?)?;
        let file = file.to_str().context("a path is not text")?;
        self.apply(&self.printed(&["generate", "rbac", "-k", file])?)?;
        self.apply(&waters::crds()?.replace("GROUP", self.group))?;
        self.cluster.relearn_kinds()
    }

    /// Runs `kubectl apply` as the administrator.
    pub(crate) fn apply(&self, text: &str) -> Result<()> {
        let admin = self.cluster.admin();
        let output = self
            .cluster
            .kubectl(&admin, &["apply", "-f", "-"], Some(text))?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Returns the command `ork` with that kubeconfig.
    pub(crate) fn ork(kubeconfig: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command.args(args).env("KUBECONFIG", kubeconfig);
        command
    }

    /// Runs `ork` and returns its output.
    fn printed(&self, args: &[&str]) -> Result<String> {
        let output = Self::ork(self.identity.kubeconfig_path(), args).output()?;
        printed(&output, "ork")
    }

    /// Returns the objects of a plural in a namespace, accessed with that client. An unknown plural belongs to `group`.
    pub(crate) fn objects(&self, client: &Client, namespace: &str, plural: &str) -> Objects {
        Objects::namespaced(client, self.group, namespace, plural)
    }
}
