//! Commands and their working directory.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// Returns the directory with `registry`, `oras` and `cosign`, which are built if necessary.
///
/// # Errors
/// The build fails.
pub fn tools() -> Result<&'static Path> {
    static TOOLS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = TOOLS.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    found.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}

fn build() -> Result<PathBuf> {
    let output = Command::new(root().join("hack/registry/build")).output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "hack/registry/build failed:\n{log}"
    );
    let text = String::from_utf8(output.stdout)?;
    Ok(PathBuf::from(
        text.lines()
            .last()
            .context("hack/registry/build printed no folder")?,
    ))
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the `ork` that was built with the tests.
///
/// # Errors
/// `ork` does not exist.
pub fn ork() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.ancestors().nth(2).context("the test has no folder")?;
    let ork = folder.join("ork");
    ensure!(
        ork.exists(),
        "{} is missing: run `make registry-test`, which builds it",
        ork.display()
    );
    Ok(ork)
}

/// A temporary directory that contains docker's configuration.
#[derive(Debug)]
pub struct Workspace {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Returns the output of a command that must succeed.
    ///
    /// # Errors
    /// The command failed.
    pub fn ok(self) -> Result<String> {
        ensure!(
            self.code == 0,
            "exit code {}\n{}\n{}",
            self.code,
            self.out,
            self.err
        );
        Ok(self.out)
    }

    /// Returns the output as JSON.
    ///
    /// # Errors
    /// The command failed or printed something else.
    pub fn json(self) -> Result<serde_json::Value> {
        Ok(serde_json::from_str(&self.ok()?)?)
    }

    /// Returns the error output of a command that must fail with this code.
    ///
    /// # Errors
    /// The command exited with another code.
    pub fn fails(self, code: i32) -> Result<String> {
        ensure!(
            self.code == code,
            "exit code {}, expected {code}\n{}\n{}",
            self.code,
            self.out,
            self.err
        );
        Ok(self.err)
    }
}

impl Workspace {
    /// Creates a temporary directory.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new() -> Result<Self> {
        Ok(Self {
            folder: TempDir::new()?,
            variables: Vec::new(),
        })
    }

    /// Returns a path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets an environment variable of later commands.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Writes a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Runs `ork` with arguments separated by spaces.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn ork(&self, line: &str) -> Result<Ran> {
        self.run(&mut Command::new(ork()?), line, None)
    }

    /// Runs `ork` with a text on standard input.
    ///
    /// # Errors
    /// The errors of [`Workspace::ork`].
    pub fn ork_with(&self, line: &str, input: &str) -> Result<Ran> {
        self.run(&mut Command::new(ork()?), line, Some(input))
    }

    /// Runs one of the tools with arguments separated by spaces.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn tool(&self, name: &str, line: &str) -> Result<Ran> {
        self.run(&mut Command::new(tools()?.join(name)), line, None)
    }

    /// Runs a shell script.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn shell(&self, script: &str) -> Result<Ran> {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]);
        self.run(&mut command, "", None)
    }

    fn run(&self, command: &mut Command, line: &str, input: Option<&str>) -> Result<Ran> {
        use std::io::Write as _;
        let path = std::env::var("PATH").unwrap_or_default();
        let ork = ork()?;
        let own = ork.parent().unwrap_or(Path::new("/"));
        let path = format!("{}:{}:{path}", own.display(), tools()?.display());
        command
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("DOCKER_CONFIG", self.path("docker"))
            .env("COSIGN_PASSWORD", "correct-horse")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input may have exited.
            let _ = stdin.write_all(input.unwrap_or_default().as_bytes());
        }
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output()?;
        Ok(Ran {
            code: status.code().context("ended by a signal")?,
            out: String::from_utf8(stdout)?,
            err: String::from_utf8_lossy(&stderr).into_owned(),
        })
    }
}
