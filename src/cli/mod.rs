//! The command line, one file per command. Each parses its arguments, calls the library and prints.
//!
//! Exit codes: 0 success, 1 invalid input or a failed check, 2 wrong usage, 3 the cluster or the registry is unreachable.

mod changes;
mod completion;
mod connection;
mod controller;
mod convert;
mod crds;
mod diff;
mod e2e;
mod explain;
mod files;
mod gateway;
mod generate;
mod groups;
mod history;
mod init;
mod install;
mod katalog;
mod lock;
mod man;
mod migrate;
mod notes;
mod object;
mod options;
mod output;
mod plan;
mod reconcile;
mod registry;
mod release;
mod render;
mod rollback;
mod run;
mod schema;
mod serve;
mod simulate;
mod sources;
mod support_bundle;
mod suspend;
mod uninstall;
mod usage;
mod validate;
mod version;
mod webhooks;
mod why;

use std::{fmt::Write as _, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use orkestra_cluster::client;

use orkestra_operator::context;

/// Runs Kubernetes operators that are declared instead of programmed.
///
/// A Katalog declares kinds of custom resources and the children of each. `ork controller` watches the Katalogs of a
/// cluster; `ork run` reads them from files. Both start one operator for every declared kind.
#[derive(Debug, Parser)]
#[command(
    name = "ork",
    version,
    verbatim_doc_comment,
    help_template = groups::help_template(),
    after_help = EXIT_CODES
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  invalid input or a failed check
  2  wrong usage
  3  the cluster or the registry is unreachable";

#[derive(Debug, Subcommand)]
enum Command {
    Controller(controller::Args),
    Gateway(gateway::Args),
    Run(run::Args),
    Init(init::Args),
    Validate(validate::Args),
    Convert(convert::Args),
    Render(render::Args),
    Diff(diff::Args),
    Lock(lock::Args),
    Simulate(simulate::Args),
    #[command(name = "e2e")]
    E2e(e2e::Args),
    Notes(notes::Args),
    Explain(explain::Args),
    Schema(schema::Args),
    Generate(generate::Args),
    Release(release::Args),
    Install(install::Args),
    Uninstall(uninstall::Args),
    History(history::Args),
    Rollback(rollback::Args),
    Plan(plan::Args),
    Why(why::Args),
    Suspend(suspend::SuspendArgs),
    Resume(suspend::ResumeArgs),
    Reconcile(reconcile::Args),
    SupportBundle(support_bundle::Args),
    Migrate(migrate::Args),
    Push(registry::push::Args),
    Pull(registry::pull::Args),
    Inspect(registry::inspect::Args),
    Tag(registry::tag::Args),
    List(registry::list::Args),
    Search(registry::list::SearchArgs),
    Login(registry::login::Args),
    Logout(registry::login::LogoutArgs),
    Sign(registry::sign::Args),
    Verify(registry::verify::Args),
    Crds(crds::Args),
    Completion(completion::Args),
    Man(man::Args),
    Version(version::Args),
}

/// Why a command ended without success.
#[derive(Debug)]
enum Failure {
    /// The input is invalid, or a check failed: 1.
    Input(anyhow::Error),
    /// Invalid input whose diagnostics have been printed.
    Reported,
    /// The cluster or the registry is unreachable: 3.
    Cluster(anyhow::Error),
    /// An error that has been printed, with an exit code of the command.
    Code(u8),
}

impl Failure {
    /// Returns the failure of an error: a cluster or registry that did not answer has an exit code of its own.
    fn of(error: impl Into<anyhow::Error>, is_unreachable: bool) -> Self {
        if is_unreachable {
            Self::Cluster(error.into())
        } else {
            Self::Input(error.into())
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Input(error)
    }
}

/// Without a usable kubeconfig, no cluster is reachable.
impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        Self::Cluster(error.into())
    }
}

/// An unreachable registry has the exit code of an unreachable cluster.
impl From<orkestra_registry::Error> for Failure {
    fn from(error: orkestra_registry::Error) -> Self {
        let is_unreachable = error.is_unreachable();
        Self::of(error, is_unreachable)
    }
}

/// Runs the command in the process's arguments.
pub fn main() -> ExitCode {
    let cli = usage::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // Pure passes occupy at most one worker per core. One more worker is always free for requests, watches and timers.
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        runtime.worker_threads(context::cores() + 1);
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::error(&anyhow::Error::new(error).context("cannot start the runtime"));
            return ExitCode::FAILURE;
        }
    };
    let code = match runtime.block_on(execute(cli)) {
        Ok(()) => 0,
        Err(Failure::Reported) => 1,
        Err(Failure::Code(code)) => code,
        Err(Failure::Input(error)) => {
            output::error(&error);
            1
        }
        Err(Failure::Cluster(error)) => {
            output::error(&error);
            3
        }
    };
    // A thread that is blocked in a DNS lookup would keep the process alive.
    runtime.shutdown_background();
    ExitCode::from(code)
}

async fn execute(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Controller(args) => controller::execute(args).await,
        Command::Gateway(args) => Box::pin(gateway::execute(args)).await,
        Command::Run(args) => run::execute(args).await,
        Command::Init(args) => init::execute(args).await,
        Command::Validate(args) => validate::execute(args).await,
        Command::Convert(args) => convert::execute(&args),
        Command::Render(args) => render::execute(args).await,
        Command::Diff(args) => diff::execute(args).await,
        Command::Lock(args) => lock::execute(args).await,
        Command::Simulate(args) => simulate::execute(args).await,
        Command::E2e(args) => e2e::execute(args).await,
        Command::Notes(args) => notes::execute(args),
        Command::Explain(args) => explain::execute(&args),
        Command::Schema(args) => schema::execute(&args),
        Command::Generate(args) => generate::execute(args).await,
        Command::Release(args) => release::execute(args).await,
        Command::Install(args) => install::execute(args).await,
        Command::Uninstall(args) => uninstall::execute(args).await,
        Command::History(args) => history::execute(args).await,
        Command::Rollback(args) => rollback::execute(args).await,
        Command::Plan(args) => plan::execute(args).await,
        Command::Why(args) => why::execute(args).await,
        Command::Suspend(args) => suspend::suspend(args).await,
        Command::Resume(args) => suspend::resume(args).await,
        Command::Reconcile(args) => reconcile::execute(args).await,
        Command::SupportBundle(args) => support_bundle::execute(args).await,
        Command::Migrate(args) => migrate::execute(args).await,
        Command::Push(args) => registry::push::execute(args).await,
        Command::Pull(args) => registry::pull::execute(args).await,
        Command::Inspect(args) => registry::inspect::execute(args).await,
        Command::Tag(args) => registry::tag::execute(args).await,
        Command::List(args) => registry::list::execute(args).await,
        Command::Search(args) => registry::list::search(args).await,
        Command::Login(args) => registry::login::execute(args).await,
        Command::Logout(args) => registry::login::logout(args).await,
        Command::Sign(args) => registry::sign::execute(args).await,
        Command::Verify(args) => registry::verify::execute(args).await,
        Command::Crds(args) => crds::execute(args),
        Command::Completion(args) => completion::execute(&args),
        Command::Man(args) => man::execute(&args),
        Command::Version(args) => version::execute(args).await,
    }
}

/// Renders `docs/reference/cli.md` from the definitions above.
pub fn markdown() -> String {
    let mut text = String::from(
        "<!-- Generated from src/cli: UPDATE=1 cargo test --lib cli -->\n# Command line\n\n\
         Every command's `--help`, as `ork` prints it.\n",
    );
    let mut root = Cli::command();
    root.build();
    text.push_str("\n##");
    section(&mut root, "ork", &mut text);
    for group in &groups::GROUPS {
        let _ = write!(text, "\n## {}\n\n{}\n", group.title, group.about);
        let commands = group.commands.iter().filter(|name| **name != "help");
        for command in commands.filter_map(|name| root.find_subcommand(name)) {
            describe(command.clone(), "ork ", &mut text);
        }
    }
    text
}

fn describe(mut command: clap::Command, parent: &str, text: &mut String) {
    command.build();
    let name = format!("{parent}{}", command.get_name());
    text.push_str("\n###");
    section(&mut command, &name, text);
    let children = command
        .get_subcommands()
        .filter(|child| child.get_name() != "help");
    for child in children {
        describe(child.clone(), &format!("{name} "), text);
    }
}

/// Adds the help of a command below the name.
fn section(command: &mut clap::Command, name: &str, text: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let help = lines.join("\n");
    let _ = write!(text, " {name}\n\n```text\n{}\n```\n", help.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_committed_page_of_commands_is_current() {
        orkestra_testkit::assert_document("docs/reference/cli.md", &markdown());
    }

    #[test]
    fn files_are_taken_from_positions_and_from_either_flag() {
        for line in [
            "ork run -k a -k b",
            "ork run -k a b",
            "ork run --katalog a --katalog b",
            "ork run -f a -f b",
            "ork run --file a --file b",
            "ork run -f a -k b",
            "ork run a b",
            "ork run a -f b",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let Command::Run(args) = cli.command else {
                panic!("{line}")
            };
            let files = args.files.or_default().unwrap();
            assert_eq!(files, ["a", "b"].map(std::path::PathBuf::from), "{line}");
        }
        for command in ["validate", "generate rbac", "render --cr c"] {
            for files in ["-f a", "-k a", "a"] {
                let line = match files {
                    // The file is placed before `--cr`: arguments after `--cr` are custom resources.
                    "a" => format!("ork {}", command.replace(" --cr c", " a --cr c"))
                        .replace("validate", "validate a")
                        .replace("rbac", "rbac a"),
                    _ => format!("ork {command} {files}"),
                };
                assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
            }
        }
        assert!(Cli::try_parse_from(["ork", "release"]).is_err());
        assert!(Cli::try_parse_from(["ork", "release", "-f", "a", "-k", "b"]).is_ok());
        assert!(Cli::try_parse_from(["ork", "release", "katalog/one", "-n", "shop"]).is_ok());
        assert!(Cli::try_parse_from(["ork", "release", "one", "-k", "a"]).is_err());
    }

    #[test]
    fn a_wrong_value_is_an_error_with_a_reason() {
        let cases = [
            (
                "ork controller --listen 8080",
                "expected an address and a port",
            ),
            (
                "ork controller --listen 0.0.0.0:99999",
                "expected an address and a port",
            ),
            ("ork controller --listen=", "expected an address and a port"),
            ("ork controller --log inof", "`inof` is not a level"),
            ("ork controller --log-format xml", "human"),
            ("ork controller --namespace No_Good", "not a valid name"),
        ];
        for (line, reason) in cases {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(reason), "{line}: {error}");
        }
        assert!(Cli::try_parse_from(["ork", "controller", "--listen", ":9090"]).is_ok());
    }
}
