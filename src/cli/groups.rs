//! The commands of `ork` in groups by purpose, for `ork --help` and the page of commands.

use std::fmt::Write as _;

use clap::{Subcommand as _, builder::Styles};

use super::Command;

/// Commands that serve one purpose.
pub(crate) struct CommandGroup {
    pub(crate) title: &'static str,
    /// What they are for, in a sentence.
    pub(crate) about: &'static str,
    /// Their names, in the order of use.
    pub(crate) commands: &'static [&'static str],
}

/// All groups. A test requires that each command is in one.
pub(crate) const GROUPS: [CommandGroup; 6] = [
    CommandGroup {
        title: "Author",
        about: "Write and test Katalogs. Only `e2e` needs a cluster.",
        commands: &[
            "init", "validate", "render", "simulate", "e2e", "explain", "notes", "schema",
            "generate",
        ],
    },
    CommandGroup {
        title: "Run",
        about: "Run the operators of Katalogs, and their webhooks.",
        commands: &["run", "controller", "gateway"],
    },
    CommandGroup {
        title: "Change",
        about: "See what a change does before it is made, and fix what it depends on.",
        commands: &["plan", "diff", "history", "rollback", "convert", "lock"],
    },
    CommandGroup {
        title: "Operate",
        about: "Install Orkestra in a cluster, and look after it.",
        commands: &[
            "install",
            "uninstall",
            "why",
            "suspend",
            "resume",
            "reconcile",
            "crds",
            "migrate",
            "release",
            "support-bundle",
        ],
    },
    CommandGroup {
        title: "Registry",
        about: "Share Katalogs and Motifs as artifacts of OCI registries.",
        commands: &[
            "push", "pull", "inspect", "tag", "list", "search", "sign", "verify", "login", "logout",
        ],
    },
    CommandGroup {
        title: "Other",
        about: "About `ork` itself.",
        commands: &["completion", "man", "version", "help"],
    },
];

/// Returns the template of `ork --help`: clap lists commands without groups.
pub(crate) fn help_template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("ork"));
    let about = |name: &str| {
        let command = commands.find_subcommand(name)?;
        Some(command.get_about()?.to_string())
    };
    let names = GROUPS.iter().flat_map(|group| group.commands);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    for group in &GROUPS {
        let _ = writeln!(text, "\n{header}{}:{header:#}", group.title);
        for name in group.commands {
            let about =
                about(name).unwrap_or_else(|| "Print the help of `ork` or of a command".to_owned());
            let _ = writeln!(text, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_in_the_help() {
        let mut command = <super::super::Cli as clap::CommandFactory>::command();
        command.build();
        let help = command.render_help().to_string();
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.commands.iter().copied())
            .collect();
        let mut known: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        known.sort_unstable();
        assert_eq!(sorted, known, "the table of groups has each command once");
        for (title, names) in GROUPS.iter().map(|group| (group.title, group.commands)) {
            let (_, section) = help.split_once(&format!("\n{title}:\n")).unwrap();
            let section = section.split("\n\n").next().unwrap();
            let first = section
                .lines()
                .filter_map(|line| line.split_whitespace().next());
            assert_eq!(first.collect::<Vec<_>>(), names, "{title}");
        }
        assert!(help.contains("  validate        Check Katalogs"), "{help}");
    }
}
