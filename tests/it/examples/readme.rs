//! The commands of a README.

use anyhow::{Result, ensure};

/// The commands in the `sh` blocks of a text, in order, each on a line of its own; comments and empty lines are left out.
///
/// # Errors
/// Names a command that is neither `ork`'s nor `kubectl`'s, or goes on in the next line.
pub(super) fn commands(readme: &str) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in readme.lines().map(str::trim) {
        match (inside, line) {
            (_, "```") => inside = false,
            (false, "```sh") => inside = true,
            (true, command) if !command.is_empty() && !command.starts_with('#') => {
                let known = command.starts_with("ork ") || command.starts_with("kubectl ");
                ensure!(
                    known && !command.ends_with('\\'),
                    "`{command}` in a README: write commands of ork and kubectl, each on one line"
                );
                commands.push(command.to_owned());
            }
            _ => {}
        }
    }
    Ok(commands)
}

/// What a command prints once it is at work, if it runs until somebody ends it.
pub(super) fn stays(command: &str) -> Option<&'static str> {
    let programs = [
        ("ork run ", " runs, revision "),
        ("kubectl proxy ", "Starting to serve on "),
    ];
    let found = programs
        .iter()
        .find(|(program, _)| command.starts_with(program));
    found.map(|(_, works)| *works)
}

/// The files that a command applies.
pub(super) fn applied(command: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let applies = words.starts_with(&["kubectl", "apply"]);
    let pairs = words.into_iter().zip(command.split_whitespace().skip(1));
    pairs
        .filter(move |(flag, _)| applies && *flag == "-f")
        .map(|(_, file)| file)
}

#[test]
fn commands_are_lines_of_sh_blocks_and_files_follow_their_flag() {
    let readme = "```sh\nork run -k a.yaml\n```\ntext\n```sh\n# then\nkubectl apply -f a.yaml -f b.yaml\n```\n```yaml\na: 1\n```";
    let found = commands(readme).unwrap();
    assert_eq!(
        found,
        ["ork run -k a.yaml", "kubectl apply -f a.yaml -f b.yaml"]
    );
    assert!(stays(&found[0]).is_some() && stays(&found[1]).is_none());
    assert_eq!(applied(&found[1]).collect::<Vec<_>>(), ["a.yaml", "b.yaml"]);
    assert_eq!(applied("kubectl delete -f a.yaml").count(), 0);
    assert!(commands("```sh\nmake demo\n```").is_err());
}
