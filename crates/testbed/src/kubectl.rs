//! The control plane's own `kubectl`, which has exactly the server's version.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result};

use crate::control_plane::ControlPlane;
use crate::identity::Identity;

impl ControlPlane {
    /// Runs `kubectl ARGS` as `identity` and returns its output and exit status; `stdin` is its standard input.
    ///
    /// Blocks the calling thread. An `Err` means that kubectl could not be started, not that it exited with an error.
    pub fn kubectl(
        &self,
        identity: &Identity,
        args: &[&str],
        stdin: Option<&str>,
    ) -> Result<Output> {
        let mut child = Command::new(self.assets().binary("kubectl")?)
            .arg("--kubeconfig")
            .arg(identity.kubeconfig_path())
            // kubectl keys its API cache by address: use a separate cache for each cluster.
            .arg("--cache-dir")
            .arg(self.folder().join("kubectl-cache"))
            .args(args)
            .args(without_openapi_v2(args))
            .env_remove("KUBECONFIG")
            // kubectl exits before a garbage collection pays off: a quarter less CPU time for each of thousands of calls.
            .env("GOGC", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run kubectl")?;
        let mut pipe = child.stdin.take().context("a piped stdin")?;
        let text = stdin.unwrap_or_default().to_owned();
        // Write on a separate thread, so that the two processes do not block each other on full pipes.
        let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
        let output = child.wait_with_output()?;
        // If kubectl did not read all of its input, it has closed the pipe. Its exit code reports any failure.
        let _ = writer.join();
        Ok(output)
    }
}

/// Returns the flag that keeps a client-side `apply` from requesting the document with the schemas of all kinds, or nothing.
///
/// After each change of a CRD the API server builds that document again: more than a second of CPU time with 300 kinds. `apply`
/// uses it only for Kubernetes' own kinds, for which kubectl's built-in types give the same result.
fn without_openapi_v2(args: &[&str]) -> Option<&'static str> {
    let is_client_side = args.contains(&"apply") && !args.contains(&"--server-side");
    is_client_side.then_some("--openapi-patch=false")
}
