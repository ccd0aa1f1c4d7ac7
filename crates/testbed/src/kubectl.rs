//! The control plane's own `kubectl`: a client of exactly the server's version, whatever the machine has.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result};

use crate::control_plane::ControlPlane;
use crate::identity::Identity;

impl ControlPlane {
    /// Runs `kubectl ARGS` as `identity` and hands back what it printed and how it ended; `stdin` is its standard input.
    ///
    /// It blocks the calling thread. An `Err` means that it could not be run, not that it ended with an error.
    pub fn kubectl(
        &self,
        identity: &Identity,
        args: &[&str],
        stdin: Option<&str>,
    ) -> Result<Output> {
        let mut child = Command::new(self.assets().binary("kubectl")?)
            .arg("--kubeconfig")
            .arg(identity.kubeconfig_path())
            // What it caches of the API is keyed by address: another cluster's answers must not reach this one.
            .arg("--cache-dir")
            .arg(self.folder().join("kubectl-cache"))
            .args(args)
            .args(without_openapi_v2(args))
            .env_remove("KUBECONFIG")
            // It ends before its garbage is worth a collection: a quarter less CPU time for each of thousands of calls.
            .env("GOGC", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run kubectl")?;
        let mut pipe = child.stdin.take().context("a piped stdin")?;
        let text = stdin.unwrap_or_default().to_owned();
        // On a thread, or the two could wait for each other over full pipes.
        let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
        let output = child.wait_with_output()?;
        // A kubectl that did not read to the end has closed the pipe; its exit code tells.
        let _ = writer.join();
        Ok(output)
    }
}

/// The flag that keeps a client-side `apply` from asking for the schemas of all kinds in one document, or nothing.
///
/// After each change of a CRD the API server makes that document anew: more than a second of CPU time with 300 kinds. `apply` uses
/// it for Kubernetes' own kinds alone, where kubectl's built-in types say the same.
fn without_openapi_v2(args: &[&str]) -> Option<&'static str> {
    let is_client_side = args.contains(&"apply") && !args.contains(&"--server-side");
    is_client_side.then_some("--openapi-patch=false")
}
