//! A killed test binary: its control plane and the other programs that it started end with it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use testbed::{ControlPlane, Options, spawn_guarded};

/// The environment variable with the file into which the second process of this test writes its folder.
const HELD: &str = "ORKESTRA_TEST_HELD";

#[test]
fn nothing_outlives_a_killed_test_binary() -> Result<()> {
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
    let deadline = Instant::now() + Duration::from_mins(2);
    let folder = loop {
        if let Ok(folder) = std::fs::read_to_string(&reported) {
            break folder;
        }
        let ended = holder.status()?;
        ensure!(
            ended.is_none() && Instant::now() < deadline,
            "no control plane: {}",
            holder.log()
        );
        std::thread::sleep(Duration::from_millis(20));
    };
    // A program that has just started may not have replaced the shell that guards it yet.
    loop {
        let before = processes_that_name(&folder)?;
        let runs = |server: &&str| before.iter().any(|args| args.contains(server));
        if ["etcd", "kube-apiserver", "kube-controller-manager", "tail"]
            .iter()
            .all(runs)
        {
            break;
        }
        ensure!(Instant::now() < deadline, "some do not run: {before:?}");
        std::thread::sleep(Duration::from_millis(20));
    }

    holder.kill()?;

    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = processes_that_name(&folder)?;
        let data = Path::new(&folder).exists();
        if left.is_empty() && !data {
            break;
        }
        if Instant::now() >= deadline {
            bail!("left after 5 s: {left:?}; data folder still there: {data}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
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
