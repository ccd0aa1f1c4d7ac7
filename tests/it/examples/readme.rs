//! Parses the commands of a README.

use anyhow::{Result, ensure};

/// Returns the commands in the `sh` blocks of a text, in order, one per line, without comments and empty lines.
///
/// # Errors
/// Fails for a command that runs neither `ork`, `kubectl` nor a script of the folder, or that continues on the next line.
pub(crate) fn commands(readme: &str) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    for block in blocks(readme).filter(|block| block.about == "sh") {
        let lines = block.text.lines().map(str::trim);
        for command in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let programs = ["ork ", "kubectl ", "./"];
            let known = programs.iter().any(|program| command.starts_with(program));
            ensure!(
                known && !command.ends_with('\\'),
                "`{command}` in a README: write commands of ork and kubectl, each on one line"
            );
            commands.push(command.to_owned());
        }
    }
    Ok(commands)
}

/// A fenced code block.
pub(crate) struct Block<'a> {
    /// The text after the opening fence: the language, and optionally a file.
    pub(crate) about: &'a str,
    /// The lines between the fences.
    pub(crate) text: &'a str,
}

/// Returns the fenced code blocks of a text.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, begun) = rest.split_once("\n```")?;
        let (about, inside) = begun.split_once('\n')?;
        let (text, after) = inside.split_at(inside.find("```")?);
        rest = after.strip_prefix("```").unwrap_or(after);
        Some(Block { about, text })
    })
}

/// Returns the text that a command prints once it is ready, if it keeps running.
pub(crate) fn stays(command: &str) -> Option<&'static str> {
    let programs = [
        ("ork run ", " runs revision "),
        ("ork controller ", "this process is the leader"),
        ("kubectl proxy ", "Starting to serve on "),
        ("./hook.py", "listening on "),
    ];
    let found = programs
        .iter()
        .find(|(program, _)| command.starts_with(program));
    found.map(|(_, works)| *works)
}

/// Returns the files that a command applies.
pub(crate) fn applied(command: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let applies = words.starts_with(&["kubectl", "apply"]);
    let pairs = words.into_iter().zip(command.split_whitespace().skip(1));
    pairs
        .filter(move |(flag, _)| applies && *flag == "-f")
        .map(|(_, file)| file)
}

#[test]
fn commands_are_lines_of_sh_blocks_and_files_follow_their_flag() {
    let readme = "# A\n```sh\nork run -k a.yaml\n```\ntext\n```sh\n# then\nkubectl apply -f a.yaml -f b.yaml\n```\n```yaml\na: 1\n```";
    let found = commands(readme).unwrap();
    assert_eq!(
        found,
        ["ork run -k a.yaml", "kubectl apply -f a.yaml -f b.yaml"]
    );
    assert!(stays(&found[0]).is_some() && stays(&found[1]).is_none());
    assert_eq!(applied(&found[1]).collect::<Vec<_>>(), ["a.yaml", "b.yaml"]);
    assert_eq!(applied("kubectl delete -f a.yaml").count(), 0);
    assert!(commands("# A\n```sh\nmake demo\n```").is_err());
}
