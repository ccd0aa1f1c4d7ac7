//! A killed test binary: its control plane and the other programs that it started end with it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testbed::{ControlPlane, Options, eventually, spawn_guarded};

use crate::scenario::LIMIT;

/// The environment variable with the file into which the second process of this test writes its folder.
const HELD: &str = "ORKESTRA_TEST_HELD";

#[tokio::test]
async fn nothing_outlives_a_killed_test_binary() -> Result<()> {
    if let Some(file) = std::env::var_os(HELD) {
        return hold_a_control_plane(Path::new(&file));
    }
    let scratch = std::env::temp_dir().join(format!("orkestra-held-{}", std::process::id()));
    std::fs::create_dir(&scratch)?;
    let reported = scratch.join("folder");
    let mut again = Command::new(std::env::current_exe()?);
    again
        .args([
            "--exact",
            "control_plane::killed::nothing_outlives_a_killed_test_binary",
            "--nocapture",
        ])
        .env(HELD, &reported);
    let mut holder = spawn_guarded(&again, &scratch.join("log"))?;
    let folder = eventually("the control plane runs", LIMIT, async || {
        let folder = std::fs::read_to_string(&reported);
        Ok(folder.ok().map(Ok).or_else(|| match holder.status() {
            Ok(None) => None,
            ended => Some(Err(format!("{ended:?}: {}", holder.log()))),
        }))
    })
    .await?
    .map_err(anyhow::Error::msg)?;
    // A program that has just started may not have replaced the shell that guards it yet.
    eventually("all processes run", LIMIT, async || {
        let before = processes_that_name(&folder)?;
        let runs = |server: &&str| before.iter().any(|args| args.contains(server));
        let all = ["etcd", "kube-apiserver", "kube-controller-manager", "tail"];
        ensure!(all.iter().all(runs), "{before:?}");
        Ok(Some(()))
    })
    .await?;

    holder.kill()?;

    eventually("nothing is left", LIMIT, async || {
        let left = processes_that_name(&folder)?;
        let data = Path::new(&folder).exists();
        ensure!(
            left.is_empty() && !data,
            "{left:?}; data folder still there: {data}"
        );
        Ok(Some(()))
    })
    .await?;
    std::fs::remove_dir_all(&scratch).context("the scratch folder")
}

/// Runs in the second process: starts a control plane and a guarded program, and keeps both until SIGKILL.
fn hold_a_control_plane(file: &Path) -> Result<()> {
    let cluster = ControlPlane::start(Options::default())?;
    let folder = cluster.folder().display().to_string();
    let mut tail = Command::new("tail");
    tail.arg("-f").arg(cluster.folder().join("server"));
    let _tail = spawn_guarded(&tail, &cluster.folder().join("tail.log"))?;
    // Rename a complete file, so that the reader never sees a partial one.
    let part = file.with_extension("part");
    std::fs::write(&part, folder)?;
    std::fs::rename(part, file)?;
    loop {
        std::thread::park();
    }
}

/// Returns the command lines that contain `text`, of running processes. A zombie process has an empty command line.
fn processes_that_name(text: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    if Path::new("/proc/self/cmdline").exists() {
        for entry in std::fs::read_dir("/proc")? {
            // A process may end during the listing.
            if let Ok(line) = std::fs::read(entry?.path().join("cmdline")) {
                all.push(String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
    } else {
        let output = Command::new("ps").args(["-A", "-o", "args="]).output()?;
        ensure!(
            output.status.success(),
            "neither /proc nor ps lists the processes"
        );
        all.extend(
            String::from_utf8_lossy(&output.stdout)
                .lines()
                .map(str::to_owned),
        );
    }
    all.retain(|args| args.contains(text));
    Ok(all)
}
