//! Processes and folders that do not outlive this process, however it ends.
//!
//! ```text
//! this process ──holds a pipe──► reaper (sh, a process group of its own)
//!      │ starts                      │ end of file: kill -9 what is registered and not gone, remove the folders
//!      ▼                             ▼
//! sh: echo "pid $$" >> register; exec server
//! ```
//!
//! A child registers itself before it becomes the server, so there is no moment at which a server runs unregistered. The
//! reaper needs no signal handler here and no `unsafe`: the kernel closes the pipe even after SIGKILL. It is one per process,
//! started on first use, and lives in a process group of its own, as the children do: Ctrl-C at a terminal or the kill of a
//! test's group does not reach it.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Registers, then becomes the program: `$0` is the register. A register that is gone means that the parent is gone too.
const REGISTER: &str = r#"[ -e "$0" ] && echo "pid $$" >>"$0" && exec "$@""#;

/// The process-wide reaper's two ends.
struct Reaper {
    register: PathBuf,
    /// Never written to: it closes when this process ends.
    _pipe: ChildStdin,
}

impl Reaper {
    fn start() -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("orkestra-reaper-")
            .tempdir()?
            .keep();
        let register = folder.join("register");
        std::fs::write(&register, "")?;
        let mut reaper = Command::new("sh")
            .arg("-c")
            .arg(include_str!("reaper.sh"))
            .arg("reaper")
            .arg(&register)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let pipe = reaper.stdin.take().context("a piped stdin")?;
        Ok(Self {
            register,
            _pipe: pipe,
        })
    }

    fn note(&self, line: &str) -> Result<()> {
        // One write of one line: appends of several threads do not mix.
        std::fs::OpenOptions::new()
            .append(true)
            .open(&self.register)?
            .write_all(format!("{line}\n").as_bytes())
            .context("cannot write to the reaper's register")
    }
}

fn reaper() -> Result<&'static Reaper> {
    static REAPER: OnceLock<std::result::Result<Reaper, String>> = OnceLock::new();
    match REAPER.get_or_init(|| Reaper::start().map_err(|error| format!("{error:#}"))) {
        Ok(reaper) => Ok(reaper),
        Err(error) => bail!("cannot start the reaper: {error}"),
    }
}

/// Has `folder` removed, with all that is in it, when this process ends.
pub(crate) fn remove_at_end(folder: &Path) -> Result<()> {
    let path = folder.to_str().context("a folder's name is not text")?;
    reaper()?.note(&format!("folder {path}"))
}

/// A signal to send to a [`Guarded`] process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: the ask to end in order, as the kubelet sends it.
    Term,
    /// SIGINT: Ctrl-C.
    Int,
    /// SIGSTOP: the process stands still, as on a node that lost its CPU.
    Stop,
    /// SIGCONT: it goes on.
    Cont,
}

/// A running child that ends with this process at the latest, and with this value if that goes first.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    name: String,
    log: PathBuf,
    status: Option<ExitStatus>,
}

/// Starts the program that `command` describes, so that it cannot outlive this process.
///
/// Taken from `command` are its program, arguments, folder and changes of the environment (not `env_clear`, which a
/// [`Command`] does not tell). Standard output and error are appended to the file `log`; standard input is empty. The process
/// has a process group of its own and its real pid, so `kill -9` and SIGTERM reach the program itself.
pub fn spawn_guarded(command: &Command, log: &Path) -> Result<Guarded> {
    let program = command.get_program();
    let name = Path::new(program)
        .file_name()
        .unwrap_or(program)
        .to_string_lossy()
        .into_owned();
    let output = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let mut wrapped = Command::new("sh");
    wrapped
        .arg("-c")
        .arg(REGISTER)
        .arg(&reaper()?.register)
        .arg(program)
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(key, value),
            None => wrapped.env_remove(key),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    let child = wrapped.spawn().context("cannot start sh")?;
    Ok(Guarded {
        child,
        name,
        log: log.to_owned(),
        status: None,
    })
}

impl Guarded {
    /// The program's own process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file that standard output and error go to.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What the program has printed so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// How the program ended, if it has.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                // From now on the pid may belong to somebody else.
                reaper()?.note(&format!("gone {}", self.child.id()))?;
            }
        }
        Ok(self.status)
    }

    /// Waits until the program ends by itself, `limit` at most.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!(
                    "{} still runs after {limit:?}; its log:\n{}",
                    self.name,
                    self.log()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal; nothing happens if the program has ended.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.status()?.is_some() {
            return Ok(());
        }
        let name = match signal {
            Signal::Term => "TERM",
            Signal::Int => "INT",
            Signal::Stop => "STOP",
            Signal::Cont => "CONT",
        };
        // The shell's own `kill`: not every machine has one in a package.
        let sent = Command::new("sh")
            .args(["-c", r#"kill -s "$0" "$1""#, name, &self.pid().to_string()])
            .stderr(Stdio::null())
            .status()?;
        // It may have ended by itself in between.
        if !sent.success() && self.status()?.is_none() {
            bail!("cannot send SIG{name} to {} ({})", self.name, self.pid());
        }
        Ok(())
    }

    /// Ends the program with SIGKILL, which it cannot see coming, and waits until it is gone.
    pub fn kill(&mut self) -> Result<()> {
        if self.status()?.is_none() {
            self.child.kill()?;
            self.wait(Duration::from_secs(10))?;
        }
        Ok(())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Nobody is left to tell: the reaper tries again when this process ends.
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, log: &Path) -> Guarded {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("GREETING", "hello");
        spawn_guarded(&command, log).expect("sh starts")
    }

    #[test]
    fn the_program_keeps_its_arguments_environment_and_pid() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = sh(r#"echo "$GREETING $$""#, &folder.path().join("log"));
        let status = child.wait(Duration::from_secs(10)).expect("exit status");
        assert!(status.success());
        assert_eq!(child.log(), format!("hello {}\n", child.pid()));
    }

    #[test]
    fn sigterm_reaches_the_program_itself() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
        let mut child = sh(script, &folder.path().join("log"));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !child.log().contains("ready") {
            assert!(Instant::now() < deadline, "the program is not ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.signal(Signal::Term).expect("the signal is sent");
        let status = child.wait(Duration::from_secs(10)).expect("exit status");
        assert_eq!(status.code(), Some(7));
        assert_eq!(child.log(), "ready\nbye\n");
    }

    #[test]
    fn a_program_that_does_not_exist_ends_with_the_shells_word_for_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let command = Command::new("/nonexistent/server");
        let mut child = spawn_guarded(&command, &folder.path().join("log")).expect("sh starts");
        assert_eq!(
            child.wait(Duration::from_secs(10)).expect("it ends").code(),
            Some(127)
        );
    }

    #[test]
    fn the_reaper_ends_what_is_registered_and_spares_what_is_gone() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("60").spawn().expect("sleep starts")
        };
        let (mut left, mut stranger, mut again) = (sleep(), sleep(), sleep());
        let data = scratch.path().join("data of two words");
        std::fs::create_dir(&data).expect("the folder is created");
        let own = scratch.path().join("reaper");
        std::fs::create_dir(&own).expect("the folder is created");
        // The stranger has the pid of a server that has ended; `again` has a pid that was registered twice.
        let lines = format!(
            "pid {0}\npid {1}\nfolder {3}\ngone {1}\npid {2}\ngone {2}\npid {2}\n",
            left.id(),
            stranger.id(),
            again.id(),
            data.display()
        );
        std::fs::write(own.join("register"), lines).expect("the register is written");
        let reaped = Command::new("sh")
            .arg("-c")
            .arg(include_str!("reaper.sh"))
            .arg("reaper")
            .arg(own.join("register"))
            .stdin(Stdio::null())
            .status()
            .expect("sh starts");
        assert!(reaped.success());
        let spared = stranger.try_wait().expect("its state").is_none();
        stranger.kill().expect("the stranger is killed");
        stranger.wait().expect("the stranger ends");
        assert!(spared, "the reaper killed the stranger");
        assert!(!left.wait().expect("it ends").success());
        assert!(!again.wait().expect("it ends").success());
        assert!(!data.exists() && !own.exists());
    }
}
