//! `ork completion`

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Failure, output};

/// Print a completion script for a shell
///
/// bash: `source <(ork completion bash)` in ~/.bashrc. zsh: `ork completion zsh > "${fpath[1]}/_ork"`.
/// fish: `ork completion fish > ~/.config/fish/completions/ork.fish`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Shell
    #[arg(value_enum)]
    shell: Name,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    Ok(output::print(&script(args.shell))?)
}

fn script(shell: Name) -> String {
    let shell = match shell {
        Name::Bash => Shell::Bash,
        Name::Zsh => Shell::Zsh,
        Name::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ork", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_completes_commands_and_flags() {
        for shell in [Name::Bash, Name::Zsh, Name::Fish] {
            let script = script(shell);
            for word in ["validate", "kubeconfig", "show-secrets"] {
                assert!(script.contains(word), "{shell:?}: {word}");
            }
        }
    }
}
