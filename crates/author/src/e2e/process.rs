//! Runs the programs of a test.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
};

use orkestra_e2e::CallOutput;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    time::Instant,
};

/// The client that calls and port forwards run.
pub(crate) const KUBECTL: &str = "kubectl";
/// The maximum size of an output, in bytes.
const MOST_OUTPUT: u64 = 8 << 20;
/// The base of the exit code of a program that a signal ended, as in shells. Source: POSIX, "Exit Status for Commands".
const SIGNALLED: i32 = 128;

/// The environment of programs.
#[derive(Clone, Debug)]
pub(crate) struct ProgramEnvironment {
    /// The folder of the document.
    pub(crate) folder: PathBuf,
    /// Environment variables in addition to those of this process.
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    /// The program does not exist.
    #[error("the program `{0}` is not installed, or not in $PATH")]
    Missing(String),
    /// The program cannot be started, or its output cannot be read.
    #[error("cannot run `{0}`: {1}")]
    Io(String, io::Error),
    /// The program timed out.
    #[error("`{0}` has not ended in time")]
    Late(String),
}

impl ProcessError {
    /// True if a retry would have the same result.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Self::Missing(_))
    }
}

impl ProgramEnvironment {
    /// Creates a command with its arguments. The program is killed when it is dropped.
    pub(crate) fn command(&self, program: &str, args: &[OsString]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.folder)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must reach only this process, which cleans up.
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    /// Runs a program until it exits, until `deadline` at most.
    pub(crate) async fn run(
        &self,
        program: &str,
        args: &[OsString],
        input: Option<&str>,
        deadline: Instant,
    ) -> Result<CallOutput, ProcessError> {
        let mut command = self.command(program, args);
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let failed = |error| ProcessError::Io(program.to_owned(), error);
        let mut child = spawn(&mut command, program)?;
        let group = child.id();
        let answer = tokio::time::timeout_at(deadline, finish(&mut child, input)).await;
        let Ok(finished) = answer else {
            end_group(group).await;
            return Err(ProcessError::Late(program.to_owned()));
        };
        let (status, output, error) = finished.map_err(failed)?;
        Ok(CallOutput {
            exit_code: code(status),
            output: String::from_utf8_lossy(&output).into_owned(),
            error: String::from_utf8_lossy(&error).into_owned(),
            status: None,
        })
    }
}

/// Starts a program.
pub(crate) fn spawn(command: &mut Command, program: &str) -> Result<Child, ProcessError> {
    // A program is not a task; the call that needs it supervises it.
    Command::spawn(command).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ProcessError::Missing(program.to_owned()),
        _ => ProcessError::Io(program.to_owned(), error),
    })
}

async fn finish(
    child: &mut Child,
    input: Option<&str>,
) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program that does not read all of its input closes the pipe; its exit code is more informative.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let read_output = async {
        match stdout {
            Some(pipe) => pipe.take(MOST_OUTPUT).read_to_end(&mut output).await,
            None => Ok(0),
        }
    };
    let read_error = async {
        match stderr {
            Some(pipe) => pipe.take(MOST_OUTPUT).read_to_end(&mut error).await,
            None => Ok(0),
        }
    };
    let ((), read, said) = futures::join!(write, read_output, read_error);
    read.and(said)?;
    let status = child.wait().await?;
    Ok((status, output, error))
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let signalled = || SIGNALLED + status.signal().unwrap_or_default();
    status.code().unwrap_or_else(signalled)
}

/// Kills a program and the processes that it started.
async fn end_group(group: Option<u32>) {
    let Some(group) = group else { return };
    // The shell's built-in `kill`, because not every machine has the program.
    let sent = Command::new("sh")
        .args(["-c", r#"kill -s KILL -- "-$0""#, &group.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // The program may have exited itself.
    let _ = sent.await;
}
