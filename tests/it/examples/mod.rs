//! Every folder of `examples/` on a real control plane, as its README describes: each command in it is run, and each applied
//! custom resource must reach the objects of `expected/` and a status that another pass would not change.
//!
//! ```text
//!  README.md ── commands ──► sh, in the folder: `ork run …` and `kubectl proxy …` run until the end, the others must succeed
//!                              └ `kubectl apply -f NAME.yaml` ──► live: as in expected/NAME.yaml, not changed by another pass
//! ```
//!
//! The Katalog of `ork init` and the tutorial are run as well.
//!
//! A new example needs no edit here: its README contains the commands. All examples share the namespace `default`, so that a
//! reader can run several at once. `EXAMPLE=16 cargo test --test it examples` runs the examples whose names begin with `16`.

mod drift;
mod in_cluster;
mod live;
pub(crate) mod readme;
mod scaffold;
pub(crate) mod storage;
pub(crate) mod tutorial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::{FutureExt, StreamExt as _, future::LocalBoxFuture, stream};
use testbed::{ControlPlane, Guarded, Options, Signal, eventually, spawn_guarded};

use crate::scenario::{LIMIT, printed};

/// The number of examples that run at a time.
const AT_A_TIME: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_does_on_a_cluster_what_its_readme_and_its_expected_objects_say() -> Result<()>
{
    // A separate cluster: as in a reader's cluster, only one kind is called `website`.
    let cluster = &ControlPlane::start(Options {
        nodes: true,
        ..Options::default()
    })?;
    let client = cluster.admin().client()?;
    let scratch = cluster.folder().join("examples");
    let runs = folders()?.into_iter().map(|folder| {
        let scratch = scratch.join(folder.file_name().unwrap_or_default());
        async move {
            let started = Instant::now();
            let example = Example {
                cluster,
                kubeconfig: cluster.admin().kubeconfig_path().to_owned(),
                folder,
                scratch,
            };
            let result = example.run().await;
            println!("{}: {:?}", example.folder.display(), started.elapsed());
            result.with_context(|| format!("{}", example.folder.display()))
        }
    });
    let timed = async |name, run: LocalBoxFuture<Result<()>>| {
        let started = Instant::now();
        let result = run.await;
        println!("{name}: {:?}", started.elapsed());
        result.context(name)
    };
    let others = [
        ("init", scaffold::run(cluster).boxed_local()),
        ("tutorial", tutorial::run(cluster).boxed_local()),
    ];
    let others = others.into_iter().filter(|(name, _)| is_wanted(name));
    let others = others.map(|(name, run)| timed(name, run).boxed_local());
    let runs = others.chain(runs.map(FutureExt::boxed_local));
    let all = stream::iter(runs)
        .buffer_unordered(AT_A_TIME)
        .collect::<Vec<_>>();
    let results = tokio::select! {
        results = all => results,
        end = storage::provide(client) => return end,
    };
    let failures: Vec<String> = results
        .into_iter()
        .filter_map(|result| Some(format!("{:#}", result.err()?)))
        .collect();
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

fn folders() -> Result<Vec<PathBuf>> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut folders: Vec<PathBuf> = fs::read_dir(all)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    folders.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        // The other folders are repository layouts, which `gitops_folder` applies.
        let is_example = |name: &str| name.starts_with(|first: char| first.is_ascii_digit());
        path.is_dir() && name.is_some_and(|name| is_example(name) && is_wanted(name))
    });
    folders.sort();
    Ok(folders)
}

/// Returns true if the variable `EXAMPLE` selects the example.
fn is_wanted(name: &str) -> bool {
    name.starts_with(&std::env::var("EXAMPLE").unwrap_or_default())
}

/// The commands that keep running, and their processes.
type Running = Vec<(String, Guarded)>;

/// One example.
struct Example<'a> {
    cluster: &'a ControlPlane,
    /// The kubeconfig of its commands.
    kubeconfig: PathBuf,
    /// The folder of the example, in which its commands run.
    folder: PathBuf,
    /// The folder for files that are not part of the example.
    scratch: PathBuf,
}

impl Example<'_> {
    /// Runs the commands of the README in their order, then ends `ork run`.
    async fn run(&self) -> Result<()> {
        let readme = fs::read_to_string(self.folder.join("README.md"))?;
        let commands = readme::commands(&readme)?;
        self.ensure_complete(&commands)?;
        self.run_all(&commands).await
    }

    /// Runs commands in their order, then ends `ork run`.
    async fn run_all(&self, commands: &[String]) -> Result<()> {
        fs::create_dir_all(&self.scratch)?;
        let mut running = Vec::new();
        let mut result = Ok(());
        for command in commands {
            result = self
                .step(command, &mut running)
                .await
                .with_context(|| format!("`{command}`"));
            if result.is_err() {
                break;
            }
        }
        self.finish(running, result).await
    }

    /// Ends the programs that are still running; returns `result`, or the first error of a program if the steps succeeded.
    async fn finish(&self, running: Running, mut result: Result<()>) -> Result<()> {
        for (command, mut program) in running {
            // Other programs are killed when they are dropped; their exit status does not matter.
            if !command.starts_with("ork ") {
                continue;
            }
            let ended = end(&mut program).await;
            let log = || format!("`{command}` printed:\n{}", program.log());
            result = result.and(ended).with_context(log);
        }
        result
    }

    /// Checks that the README runs the operators, and that it uses each custom resource with expected objects.
    fn ensure_complete(&self, commands: &[String]) -> Result<()> {
        let runs = commands
            .iter()
            .any(|command| command.starts_with("ork run "));
        ensure!(runs, "its README has no command `ork run -k …`");
        for entry in fs::read_dir(self.folder.join("expected"))? {
            let name = entry?.file_name();
            let name = name.to_str().context("the name of a file is not text")?;
            let mut words = commands.iter().flat_map(|all| all.split_whitespace());
            ensure!(
                words.any(|word| word.rsplit('/').next() == Some(name)),
                "no command of its README is about {name}"
            );
        }
        let mut applied = commands.iter().flat_map(|all| readme::applied(all));
        ensure!(
            applied.any(|file| self.expected(file).exists()),
            "its README applies no custom resource"
        );
        Ok(())
    }

    /// Returns the path of the file with the objects that are expected for the custom resources in `file`.
    fn expected(&self, file: &str) -> PathBuf {
        let name = Path::new(file).file_name().unwrap_or_default();
        self.folder.join("expected").join(name)
    }

    async fn step(&self, command: &str, running: &mut Running) -> Result<()> {
        if let Some(works) = readme::stays(command) {
            let program = self.start(command, works, running.len()).await?;
            running.push((command.to_owned(), program));
        } else if command.starts_with("kubectl wait ") {
            // The timeout in the README is for an idle machine: retry until `LIMIT`.
            eventually("it succeeds", LIMIT, async || {
                self.sh(command).await.map(Some)
            })
            .await?;
        } else {
            self.sh(command).await?;
        }
        for file in readme::applied(command) {
            if self.expected(file).exists() {
                let what = format!("{file} is as expected");
                eventually(&what, LIMIT, async || self.look(file).await.map(Some)).await?;
            }
        }
        Ok(())
    }

    /// Starts a command that keeps running, and waits until it prints that it is ready, as a reader would.
    async fn start(&self, command: &str, works: &str, number: usize) -> Result<Guarded> {
        let log = self.scratch.join(format!("run-{number}.log"));
        let mut run = spawn_guarded(&self.shell(&format!("exec {command}")), &log)?;
        let runs = eventually("it is ready", LIMIT, async || {
            if let Some(status) = run.status()? {
                return Ok(Some(Err(anyhow::anyhow!("it ended with {status}"))));
            }
            Ok(run.log().contains(works).then_some(Ok(())))
        });
        runs.await
            .and_then(|runs| runs)
            .with_context(|| format!("it printed:\n{}", run.log()))?;
        Ok(run)
    }

    /// Runs a command, which must succeed; returns its output.
    async fn sh(&self, command: &str) -> Result<String> {
        printed(
            &self.output(&mut self.shell(command).into()).await?,
            command,
        )
    }

    /// Returns a shell command in the example's folder, with its kubeconfig.
    fn shell(&self, command: &str) -> Command {
        let cluster = self.cluster;
        let ork = Path::new(env!("CARGO_BIN_EXE_ork")).parent();
        let tools = [ork, Some(cluster.assets().folder())];
        let tools = tools.into_iter().flatten().map(Path::to_path_buf);
        let before = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(tools.chain(std::env::split_paths(&before)));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(&self.folder)
            .env("PATH", path.unwrap_or(before))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.scratch.join("kubectl-cache"))
            .env("ORK_LISTEN", "127.0.0.1:0")
            .env("NO_COLOR", "1");
        shell
    }

    async fn output(&self, command: &mut tokio::process::Command) -> Result<Output> {
        let command = command.stdin(std::process::Stdio::null());
        Ok(command.kill_on_drop(true).output().await?)
    }
}

/// Ends `ork run` with SIGTERM, and checks that it succeeds.
async fn end(operator: &mut Guarded) -> Result<()> {
    operator.signal(Signal::Term)?;
    let status = eventually("it ends", LIMIT, async || operator.status()).await?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}
