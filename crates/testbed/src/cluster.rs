//! One control plane per folder, run by a process in the background.
//!
//! ```text
//! DIR/lock        held by the running `testbed serve`: free means that none runs, whatever else lies here
//! DIR/pid         its process
//! DIR/log         what it printed
//! DIR/kubeconfig  the administrator's; written last, so its presence means "ready"
//! DIR/data-PID    the control plane's own; removed when it ends, by its reaper at the latest. A successor has another one,
//!                 so that a late removal never meets it.
//! ```

use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use testbed::{Assets, ControlPlane, Options};
use tokio::signal::unix::{SignalKind, signal};

/// How long `up` waits; a control plane needs seconds, a machine that compiles meanwhile makes it a minute.
const READY_LIMIT: Duration = Duration::from_mins(3);
/// How long `down` waits for an end in order.
const DOWN_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// The files of one folder.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn at(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Self {
            dir: dir.canonicalize()?,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Takes the lock, or hands back nothing because a control plane runs here.
    fn lock(&self) -> Result<Option<File>> {
        let file = File::create(self.file("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock"),
        }
    }

    /// Removes what a control plane left that is dead. Only with the lock in hand.
    fn clean(&self) -> Result<()> {
        for name in ["kubeconfig", "pid"] {
            if self.file(name).exists() {
                fs::remove_file(self.file(name))?;
            }
        }
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("data-") {
                // A reaper may be at it at this moment.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }

    /// The data folder of the control plane that runs here.
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

/// Starts a control plane in the background, unless one runs here, and prints how to use it.
pub(crate) fn up(dir: &Path, nodes: bool) -> Result<()> {
    let place = Place::at(dir)?;
    // Before the background process starts, so that a person sees a first build going on.
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
                "it was started without a node: end it first (testbed down), then start it again"
            );
        }
    }
    eprintln!("testbed: to use it in this shell:");
    println!("export KUBECONFIG={}", quote(&place.file("kubeconfig")));
    println!("export PATH={}:$PATH", quote(assets.folder()));
    Ok(())
}

/// The background process gets the lock with its standard input, so that there is no moment at which nobody holds it.
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
        // Neither Ctrl-C nor the end of the shell is meant for it.
        .process_group(0)
        .spawn()
        .context("cannot start the background process")
}

/// Waits for the kubeconfig; `server` is the process that is to write it, if it is ours.
fn wait_until_ready(place: &Place, mut server: Option<&mut Child>) -> Result<()> {
    let deadline = Instant::now() + READY_LIMIT;
    while !place.file("kubeconfig").exists() {
        let ended = match &mut server {
            Some(server) => server.try_wait()?,
            None => None,
        };
        // A second `up` at the same moment lost the lock to the first: then that one's control plane will do.
        if ended.is_some() && place.lock()?.is_some() {
            bail!("it did not start:\n{}", place.log_tail());
        }
        if Instant::now() >= deadline {
            bail!(
                "it is not ready within {READY_LIMIT:?}:\n{}",
                place.log_tail()
            );
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Ends the control plane that runs here, by its recorded process, and removes what it stored.
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
            // The lock is held, so the process lives and the number is its own. It writes it right after taking the lock.
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
    // A folder that holds something else stays.
    let _ = fs::remove_dir(&place.dir);
    drop(lock);
    let said = if asked {
        "ended the control plane"
    } else {
        "none was up"
    };
    eprintln!("testbed: {said} in {}", place.dir.display());
    Ok(())
}

/// Runs a control plane until it is asked to end. `locked` tells that standard input is the folder's lock, taken by `up`.
pub(crate) fn serve(dir: &Path, locked: bool, nodes: bool) -> Result<()> {
    let place = Place::at(dir)?;
    let lock = if locked { None } else { place.lock()? };
    if !locked && lock.is_none() {
        bail!("a control plane runs in {} already", place.dir.display());
    }
    place.clean()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // The end of the terminal that it was started from is not its own.
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
        // First the word that it is there, then the thing itself.
        fs::remove_file(place.file("kubeconfig"))?;
        drop(cluster);
        result
    })
}

/// Prints a kubeconfig for `user` of the control plane that runs here.
pub(crate) fn kubeconfig(dir: &Path, user: &str, groups: &[String]) -> Result<()> {
    let place = Place {
        dir: dir.to_owned(),
    };
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    print!("{}", testbed::issue(&place.data()?, user, &groups)?);
    Ok(())
}

/// `path` as a word of a shell's command line.
fn quote(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
