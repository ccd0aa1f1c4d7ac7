//! `testbed up`, `down` and `kubeconfig`: starting, using and ending a control plane in the background.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, Result};

fn testbed(args: &[&str], dir: &Path) -> Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_testbed"))
        .args(args)
        .arg("--dir")
        .arg(dir)
        .output()
        .context("cannot run testbed")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ends a control plane that a failed test left running.
struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        let _ = testbed(&["down"], self.0);
    }
}

#[test]
fn a_cluster_that_is_up_stays_until_it_is_asked_to_end() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path().join("it's here");
    let _down = Down(&dir);
    let first = testbed(&["up"], &dir)?;
    assert!(first.status.success(), "{}", said(&first));
    let kubeconfig = dir.join("kubeconfig");
    let server = std::fs::read_to_string(&kubeconfig)?;

    // The output is shell code and must be quoted for any name of the folder.
    let lines = String::from_utf8(first.stdout)?;
    let version = Command::new("sh")
        .args([
            "-c",
            "eval \"$1\" && kubectl get --raw /version",
            "sh",
            &lines,
        ])
        .output()?;
    assert!(version.status.success(), "{}", said(&version));

    let second = testbed(&["up"], &dir)?;
    assert!(
        second.status.success() && said(&second).contains("up already"),
        "{}",
        said(&second)
    );
    assert_eq!(
        std::fs::read_to_string(&kubeconfig)?,
        server,
        "a second `up` must not change the kubeconfig"
    );
    let with_node = testbed(&["up", "--nodes"], &dir)?;
    assert!(!with_node.status.success() && said(&with_node).contains("without a node"));

    let clerk = testbed(
        &["kubeconfig", "--user", "clerk", "--group", "readers"],
        &dir,
    )?;
    assert!(clerk.status.success(), "{}", said(&clerk));
    assert!(String::from_utf8(clerk.stdout)?.contains(r#"user: "clerk""#));

    let down = testbed(&["down"], &dir)?;
    assert!(
        down.status.success() && said(&down).contains("ended"),
        "{}",
        said(&down)
    );
    assert!(!dir.exists(), "the folder is left after `down`");
    let again = testbed(&["down"], &dir)?;
    assert!(
        again.status.success() && said(&again).contains("none is up"),
        "{}",
        said(&again)
    );
    Ok(())
}

#[test]
fn what_a_killed_one_left_does_not_stand_in_the_way() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path().join("cluster");
    let _down = Down(&dir);
    let first = testbed(&["up"], &dir)?;
    assert!(first.status.success(), "{}", said(&first));
    let pid = std::fs::read_to_string(dir.join("pid"))?;
    let killed = Command::new("sh")
        .args(["-c", r#"kill -9 "$0""#, &pid])
        .status()?;
    assert!(killed.success());

    let second = testbed(&["up"], &dir)?;
    assert!(second.status.success(), "{}", said(&second));
    assert!(
        !said(&second).contains("up already"),
        "the killed control plane counts as running"
    );
    assert_ne!(std::fs::read_to_string(dir.join("pid"))?, pid);
    Ok(())
}
