//! Parses arguments into a command and reports wrong ones.

use std::{borrow::Cow, ffi::OsStr, io::Write as _, path::Path, sync::LazyLock};

use clap::{
    CommandFactory as _, FromArgMatches as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, connection::CLUSTER_FLAGS};

/// The name of the program when kubectl runs it: as the file `kubectl-ork`.
///
/// Source: Kubernetes, "Extend kubectl with plugins".
const PLUGIN: &str = "kubectl ork";

/// True if kubectl runs this process: its file is `kubectl-ork`.
fn is_plugin() -> bool {
    static IS_PLUGIN: LazyLock<bool> = LazyLock::new(|| {
        std::env::args_os()
            .next()
            .is_some_and(|file| names_plugin(&file))
    });
    *IS_PLUGIN
}

fn names_plugin(file: &OsStr) -> bool {
    let stem = Path::new(file).file_stem();
    stem.is_some_and(|stem| stem == "kubectl-ork")
}

/// Returns a message with the commands that it names as this process was called: `kubectl ork`, if kubectl runs it.
pub(crate) fn called(text: &str) -> Cow<'_, str> {
    if is_plugin() {
        Cow::Owned(as_plugin(text))
    } else {
        Cow::Borrowed(text)
    }
}

fn as_plugin(text: &str) -> String {
    text.replace("`ork ", &format!("`{PLUGIN} "))
}

/// Returns the definitions of all commands, with the name by which this process was called.
fn command() -> clap::Command {
    if is_plugin() {
        Cli::command().name(PLUGIN).bin_name(PLUGIN)
    } else {
        Cli::command()
    }
}

/// Parses the arguments of the process. Wrong arguments end it with exit code 2; `--help` and `--version` end it with 0.
pub(crate) fn parse() -> Cli {
    let matches = command().try_get_matches();
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| {
        let error = explained(error);
        if is_plugin() {
            let text = as_plugin(&error.render().ansi().to_string());
            // If the stream is closed, nothing can be reported anywhere.
            let _ = if error.use_stderr() {
                anstream::stderr().write_all(text.as_bytes())
            } else {
                anstream::stdout().write_all(text.as_bytes())
            };
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// Returns the error. For a misplaced cluster flag, it lists the commands that accept the flag.
fn explained(error: clap::Error) -> clap::Error {
    let Some(flag) = misplaced(&error) else {
        return error;
    };
    let commands = cluster_commands(&Cli::command()).join(", ");
    let message =
        format!("`{flag}` is accepted only after commands that connect to a cluster: {commands}");
    command().error(ErrorKind::UnknownArgument, message)
}

/// Returns the cluster flag that the command does not accept.
fn misplaced(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let mut flags = CLUSTER_FLAGS.iter().map(|flag| format!("--{flag}"));
    flags.find(|flag| argument.split('=').next() == Some(flag))
}

/// Returns the commands with cluster flags, such as `ork run`.
fn cluster_commands(root: &clap::Command) -> Vec<String> {
    let has_flags = |command: &&clap::Command| {
        let mut flags = command.get_arguments();
        flags.any(|flag| CLUSTER_FLAGS.contains(&flag.get_id().as_str()))
    };
    let commands = root.get_subcommands().filter(has_flags);
    commands
        .map(|command| format!("`{} {}`", root.get_name(), command.get_name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn a_plugin_of_kubectl_names_itself_so() {
        for (file, is_plugin) in [
            ("/usr/local/bin/kubectl-ork", true),
            ("kubectl-ork.exe", true),
            ("/usr/local/bin/ork", false),
            ("kubectl-orkestra", false),
        ] {
            assert_eq!(names_plugin(OsStr::new(file)), is_plugin, "{file}");
        }
        assert_eq!(
            as_plugin("pond/north is suspended: `ork resume pond/north` first"),
            "pond/north is suspended: `kubectl ork resume pond/north` first"
        );
    }

    #[test]
    fn a_cluster_flag_is_accepted_only_after_a_command_that_connects() {
        for line in [
            "ork run --kubeconfig k --context c",
            "ork controller --context=c",
            "ork release one --kubeconfig k",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        for line in [
            "ork validate --kubeconfig k",
            "ork validate --context=c",
            "ork --kubeconfig k run",
        ] {
            let error = explained(Cli::try_parse_from(line.split(' ')).unwrap_err());
            assert_eq!(error.exit_code(), 2, "{line}");
            let text = error.to_string();
            for part in [
                "only after commands that connect",
                "`ork run`",
                "`ork release`",
            ] {
                assert!(text.contains(part), "{line}: {text}");
            }
            assert!(!text.contains("`ork validate`"), "{text}");
        }
    }

    #[test]
    fn another_unknown_flag_keeps_its_message() {
        let error = Cli::try_parse_from(["ork", "run", "--kubeconfg", "k"]).unwrap_err();
        let text = explained(error).to_string();
        assert!(text.contains("--kubeconfig"), "{text}");
        assert!(!text.contains("only after"), "{text}");
    }
}
