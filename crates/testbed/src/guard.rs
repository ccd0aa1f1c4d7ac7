//! Processes and folders that end with this process, even if it is killed.
//!
//! ```text
//! this process ──holds a pipe──► reaper (sh, a process group of its own)
//!      │ starts                      │ end of file: kill -9 each registered process that is not marked gone, remove the folders
//!      ▼                             ▼
//! sh: echo "pid $$" >> register; exec server
//! ```
//!
//! A child registers itself before it becomes the server, so no server runs unregistered. The reaper needs no signal handler in
//! this process and no `unsafe`: the kernel closes the pipe even after SIGKILL. There is one reaper per process, started on first
//! use. It and the children run in process groups of their own, so that Ctrl-C at a terminal or a kill of a test's process group
//! does not reach them.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Registers the process and then becomes the program. `$0` is the register. If the register does not exist, the parent has
/// ended.
const REGISTER: &str = r#"[ -e "$0" ] && echo "pid $$" >>"$0" && exec "$@""#;

/// This process' ends of the connection to the reaper.
struct Reaper {
    register: PathBuf,
    /// Never written to. The kernel closes it when this process ends.
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
        // One write for each line, so that lines of several threads do not mix.
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

/// Registers `folder` for removal, with all its contents, when this process ends.
pub(crate) fn remove_at_end(folder: &Path) -> Result<()> {
    let path = folder.to_str().context("a folder's name is not text")?;
    reaper()?.note(&format!("folder {path}"))
}

/// A signal to send to a [`Guarded`] process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: the request for an orderly end, as the kubelet sends it.
    Term,
    /// SIGINT: Ctrl-C.
    Int,
    /// SIGSTOP: the process is suspended, as on a node without CPU time.
    Stop,
    /// SIGCONT: the process is resumed.
    Cont,
}

/// A running child process. It ends when this value is dropped, at the latest when this process ends.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    name: String,
    log: PathBuf,
    status: Option<ExitStatus>,
}

/// Starts the program that `command` describes, so that it ends with this process.
///
/// The program, arguments, folder and environment changes are taken from `command` (but not `env_clear`, which a [`Command`] does
/// not expose). Standard output and error are appended to the file `log`; standard input is empty. The process runs in its own
/// process group, and its pid is that of the program, so `kill -9` and SIGTERM reach the program itself.
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
    /// Returns the program's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the file to which standard output and error are written.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Returns the program's output so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Returns the program's exit status, if it has ended.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                // From now on the kernel may give this pid to another process.
                reaper()?.note(&format!("gone {}", self.child.id()))?;
            }
        }
        Ok(self.status)
    }

    /// Waits until the program ends without a signal, for at most `limit`.
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

    /// Sends a signal. Does nothing if the program has ended.
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
        // Use the shell's built-in `kill`: some machines have no `kill` program.
        let sent = Command::new("sh")
            .args(["-c", r#"kill -s "$0" "$1""#, name, &self.pid().to_string()])
            .stderr(Stdio::null())
            .status()?;
        // The program may have ended in between.
        if !sent.success() && self.status()?.is_none() {
            bail!("cannot send SIG{name} to {} ({})", self.name, self.pid());
        }
        Ok(())
    }

    /// Ends the program with SIGKILL and waits until it is gone.
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
        // The error cannot be reported here. The reaper tries again when this process ends.
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
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = sh(r#"echo "$GREETING $$""#, &folder.path().join("log"));
        let status = child.wait(Duration::from_secs(10)).expect("it ends");
        assert!(status.success());
        assert_eq!(child.log(), format!("hello {}\n", child.pid()));
    }

    #[test]
    fn sigterm_reaches_the_program_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
        let mut child = sh(script, &folder.path().join("log"));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !child.log().contains("ready") {
            assert!(Instant::now() < deadline, "the program is not ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.signal(Signal::Term).expect("it is sent");
        let status = child.wait(Duration::from_secs(10)).expect("it ends");
        assert_eq!(status.code(), Some(7));
        assert_eq!(child.log(), "ready\nbye\n");
    }

    #[test]
    fn a_program_that_does_not_exist_ends_with_the_shells_word_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let command = Command::new("/nonexistent/server");
        let mut child = spawn_guarded(&command, &folder.path().join("log")).expect("sh starts");
        assert_eq!(
            child.wait(Duration::from_secs(10)).expect("it ends").code(),
            Some(127)
        );
    }

    #[test]
    fn the_reaper_ends_what_is_registered_and_spares_what_is_gone() {
        let scratch = tempfile::tempdir().expect("a folder");
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("60").spawn().expect("sleep starts")
        };
        let (mut left, mut stranger, mut again) = (sleep(), sleep(), sleep());
        let data = scratch.path().join("data of two words");
        std::fs::create_dir(&data).expect("a folder");
        let own = scratch.path().join("reaper");
        std::fs::create_dir(&own).expect("a folder");
        // `stranger` has the pid of a server that is gone. `again` has a pid that was registered a second time.
        let lines = format!(
            "pid {0}\npid {1}\nfolder {3}\ngone {1}\npid {2}\ngone {2}\npid {2}\n",
            left.id(),
            stranger.id(),
            again.id(),
            data.display()
        );
        std::fs::write(own.join("register"), lines).expect("written");
        let reaped = Command::new("sh")
            .arg("-c")
            .arg(include_str!("reaper.sh"))
            .arg("reaper")
            .arg(own.join("register"))
            .stdin(Stdio::null())
            .status()
            .expect("sh starts");
        assert!(reaped.success());
        let spared = stranger.try_wait().expect("a child").is_none();
        stranger.kill().expect("ours");
        stranger.wait().expect("ours");
        assert!(spared, "the stranger was ended");
        assert!(!left.wait().expect("ended").success());
        assert!(!again.wait().expect("ended").success());
        assert!(!data.exists() && !own.exists());
    }
}
