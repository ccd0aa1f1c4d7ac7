//! One control plane per folder, run by a process in the background.
//!
//! ```text
//! DIR/lock        held by the running `testbed serve`: if it is free, no control plane runs, whatever other files exist
//! DIR/pid         its process id
//! DIR/log         its output
//! DIR/kubeconfig  the administrator's; written last, so if it exists the control plane is ready
//! DIR/data-PID    the control plane's data; removed when it ends, at the latest by its reaper. The next control plane uses
//!                 another folder, so a late removal does not affect it.
//! ```

use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use testbed::{Assets, ControlPlane, Options};
use tokio::signal::unix::{SignalKind, signal};

/// The longest time that `up` waits. A control plane starts within seconds, but takes up to a minute while the machine compiles.
const READY_LIMIT: Duration = Duration::from_mins(3);
/// The longest time that `down` waits for an orderly end.
const DOWN_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// The files of one folder.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn at(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self {
            dir: dir.canonicalize()?,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Takes the lock. Returns `None` if a control plane runs in this folder.
    fn lock(&self) -> Result<Option<File>> {
        let file = File::create(self.file("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock"),
        }
    }

    /// Removes the files of a control plane that has ended. The caller must hold the lock.
    fn clean(&self) -> Result<()> {
        for name in ["kubeconfig", "pid"] {
            if self.file(name).exists() {
                fs::remove_file(self.file(name))?;
            }
        }
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("data-") {
                // A reaper may be removing it at the same time.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }

    /// Returns the data folder of the control plane that runs in this folder.
    fn data(&self) -> Result<PathBuf> {
        let pid = fs::read_to_string(self.file("pid"))
            .with_context(|| format!("no control plane is up in {}", self.dir.display()))?;
        Ok(self.file(&format!("data-{}", pid.trim())))
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.file("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }
}

/// Starts a control plane in the background, unless one runs in this folder, and prints how to use it.
pub(crate) fn up(dir: &Path, nodes: bool) -> Result<()> {
    let place = Place::at(dir)?;
    // Before the background process starts, so that the progress of a first build is visible.
    let assets = Assets::find()?;
    if let Some(lock) = place.lock()? {
        place.clean()?;
        let mut server = start_in_background(&place, lock, nodes)?;
        wait_until_ready(&place, Some(&mut server))?;
        eprintln!("testbed: a control plane is up in {}", place.dir.display());
    } else {
        wait_until_ready(&place, None)?;
        eprintln!("testbed: one is up already in {}", place.dir.display());
        if nodes && !place.data()?.join("logs/kwok.log").exists() {
            bail!(
                "it was started without a node: stop it with `testbed down`, then start it again"
            );
        }
    }
    eprintln!("testbed: to use it in this shell:");
    println!("export KUBECONFIG={}", quote(&place.file("kubeconfig")));
    println!("export PATH={}:$PATH", quote(assets.folder()));
    Ok(())
}

/// Starts the background process. It inherits the lock as its standard input, so the lock is held without interruption.
fn start_in_background(place: &Place, lock: File, nodes: bool) -> Result<Child> {
    let log = File::create(place.file("log"))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--locked", "--dir"]).arg(&place.dir);
    if nodes {
        command.arg("--nodes");
    }
    command
        .stdin(lock)
        .stdout(log.try_clone()?)
        .stderr(log)
        // Neither Ctrl-C nor the end of the shell ends it.
        .process_group(0)
        .spawn()
        .context("cannot start the background process")
}

/// Waits for the kubeconfig. `server` is the process that writes it, if this process started it.
fn wait_until_ready(place: &Place, mut server: Option<&mut Child>) -> Result<()> {
    let deadline = Instant::now() + READY_LIMIT;
    while !place.file("kubeconfig").exists() {
        let ended = match &mut server {
            Some(server) => server.try_wait()?,
            None => None,
        };
        // If two `up` run at the same time, one loses the lock to the other and waits for that one's control plane.
        if ended.is_some() && place.lock()?.is_some() {
            bail!("the control plane did not start:\n{}", place.log_tail());
        }
        if Instant::now() >= deadline {
            bail!(
                "the control plane is not ready within {READY_LIMIT:?}:\n{}",
                place.log_tail()
            );
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Ends the control plane that runs in this folder, by its recorded process id, and removes its data.
pub(crate) fn down(dir: &Path) -> Result<()> {
    if !dir.is_dir() {
        eprintln!("testbed: none is up in {}", dir.display());
        return Ok(());
    }
    let place = Place::at(dir)?;
    let deadline = Instant::now() + DOWN_LIMIT;
    let mut asked = false;
    let lock = loop {
        if let Some(lock) = place.lock()? {
            break lock;
        }
        if !asked {
            // The lock is held, so the process is alive and the pid is correct: it writes the pid right after it takes the lock.
            if let Ok(pid) = fs::read_to_string(place.file("pid")) {
                asked = Command::new("sh")
                    .args(["-c", r#"kill -s TERM "$0""#, pid.trim()])
                    .status()?
                    .success();
            }
        }
        if Instant::now() >= deadline {
            bail!("it still runs after {DOWN_LIMIT:?}:\n{}", place.log_tail());
        }
        std::thread::sleep(PAUSE);
    };
    place.clean()?;
    for name in ["log", "lock"] {
        let _ = fs::remove_file(place.file(name));
    }
    // The folder is kept if it contains other files.
    let _ = fs::remove_dir(&place.dir);
    drop(lock);
    let said = if asked {
        "ended the control plane"
    } else {
        "no control plane was up"
    };
    eprintln!("testbed: {said} in {}", place.dir.display());
    Ok(())
}

/// Runs a control plane until it receives a signal to end. `locked` means that standard input is the folder's lock, taken by
/// `up`.
pub(crate) fn serve(dir: &Path, locked: bool, nodes: bool) -> Result<()> {
    let place = Place::at(dir)?;
    let lock = if locked { None } else { place.lock()? };
    if !locked && lock.is_none() {
        bail!("a control plane already runs in {}", place.dir.display());
    }
    place.clean()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // The end of the terminal that started it does not end it.
        let _hangup = signal(SignalKind::hangup())?;
        fs::write(place.file("pid"), std::process::id().to_string())?;
        let cluster = ControlPlane::start(Options {
            nodes,
            folder: Some(place.data()?),
            ..Options::default()
        })?;
        let part = place.file("kubeconfig.part");
        fs::write(&part, cluster.admin().kubeconfig())?;
        fs::rename(&part, place.file("kubeconfig"))?;
        eprintln!("testbed: serving at {}", cluster.url());
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let result = loop {
            tokio::select! {
                _ = terminate.recv() => break Ok(()),
                _ = interrupt.recv() => break Ok(()),
                _ = ticks.tick() => if let Err(error) = cluster.check() { break Err(error) },
            }
        };
        // Remove the kubeconfig first, so that it never refers to a control plane that has ended.
        fs::remove_file(place.file("kubeconfig"))?;
        drop(cluster);
        result
    })
}

/// Prints a kubeconfig for `user` of the control plane that runs in this folder.
pub(crate) fn kubeconfig(dir: &Path, user: &str, groups: &[String]) -> Result<()> {
    let place = Place {
        dir: dir.to_owned(),
    };
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    print!("{}", testbed::issue(&place.data()?, user, &groups)?);
    Ok(())
}

/// Quotes `path` as one word of a shell's command line.
fn quote(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
