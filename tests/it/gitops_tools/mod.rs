//! Real components of `GitOps` tools on a real control plane: Argo CD's sync engine and Flux's kustomize-controller.
//!
//! They take minutes to build: `make gitops` builds them and runs these tests, which are ignored otherwise.

mod argocd;
mod flux;
mod orkestra;
mod prometheus;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// Returns the folder that contains a tool, which is built on first use.
fn tools(name: &str) -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hack/gitops/build");
    let output = Command::new(&script)
        .arg(name)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(output.status.success(), "`make gitops-tools` shows why");
    let text = String::from_utf8(output.stdout)?;
    Ok(PathBuf::from(text.lines().last().context("no folder")?))
}

/// Returns the path of the health check that Argo CD runs.
fn health() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config/argocd/health.lua")
}
