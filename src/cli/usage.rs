//! Parses arguments into a command and reports wrong ones.

use clap::{
    CommandFactory as _, Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, connection::CLUSTER_FLAGS};

/// Parses the arguments of the process. Wrong arguments end it with exit code 2; `--help` and `--version` end it with 0.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| explained(error).exit())
}

/// Returns the error. For a misplaced cluster flag, it lists the commands that accept the flag.
fn explained(error: clap::Error) -> clap::Error {
    let Some(flag) = misplaced(&error) else {
        return error;
    };
    let commands = cluster_commands(&Cli::command()).join(", ");
    let message =
        format!("`{flag}` is accepted only after commands that connect to a cluster: {commands}");
    Cli::command().error(ErrorKind::UnknownArgument, message)
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
    use super::*;

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
