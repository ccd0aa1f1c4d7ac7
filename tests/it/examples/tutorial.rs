//! `docs/learn/tutorial.md` on a real control plane: each file, each edit and each command of the tutorial, in order.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use testbed::ControlPlane;

use super::{Example, readme};

/// Runs the steps of the tutorial in the folder `wiki`.
pub(crate) async fn run(cluster: &ControlPlane) -> Result<()> {
    let scratch = cluster.folder().join("examples/tutorial");
    let folder = scratch.join("wiki");
    fs::create_dir_all(&folder)?;
    // The tutorial sets a namespace in its kubeconfig, which must not affect the examples.
    let kubeconfig = scratch.join("kubeconfig");
    fs::copy(cluster.admin().kubeconfig_path(), &kubeconfig)?;
    let example = Example {
        cluster,
        kubeconfig,
        folder,
        scratch,
    };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/learn/tutorial.md");
    let page = fs::read_to_string(page)?;
    let mut running = Vec::new();
    let mut result = Ok(());
    for block in readme::blocks(&page) {
        result = type_in(&example, &block, &mut running).await;
        if result.is_err() {
            break;
        }
    }
    example.finish(running, result).await
}

/// Runs one block: writes a file, edits a file, or runs commands.
async fn type_in(
    example: &Example<'_>,
    block: &readme::Block<'_>,
    running: &mut super::Running,
) -> Result<()> {
    let (language, file) = block.about.split_once(' ').unwrap_or((block.about, ""));
    let path = example.folder.join(file);
    match language {
        "yaml" => Ok(fs::write(path, block.text)?),
        "diff" => {
            let text = fs::read_to_string(&path)?;
            Ok(fs::write(path, edited(&text, block.text)?)?)
        }
        _ => {
            let commands = readme::commands(&format!("\n```sh\n{}```", block.text))?;
            ensure!(
                !commands.is_empty(),
                "no command in a block `{}`",
                block.about
            );
            for command in commands {
                let done = example.step(&command, running).await;
                done.with_context(|| format!("`{command}`"))?;
            }
            Ok(())
        }
    }
}

/// Returns the text after an edit, whose old lines must occur once in the text.
pub(crate) fn edited(text: &str, edit: &str) -> Result<String> {
    let side = |sign: char| {
        let mut text = String::new();
        for line in edit.lines().filter(|line| line.starts_with([' ', sign])) {
            text.push_str(&line[1..]);
            text.push('\n');
        }
        text
    };
    let (old, new) = (side('-'), side('+'));
    let found = text.matches(&old).count();
    ensure!(
        found == 1,
        "these lines occur {found} times:\n{old}in\n{text}"
    );
    Ok(text.replacen(&old, &new, 1))
}

#[test]
fn an_edit_replaces_lines_that_stand_there_once() {
    let text = "a:\n  b: 1\n  c: 2\n";
    assert_eq!(
        edited(text, " a:\n+  x: 0\n   b: 1\n").unwrap(),
        "a:\n  x: 0\n  b: 1\n  c: 2\n"
    );
    assert_eq!(
        edited(text, "-  c: 2\n+  c: 3\n").unwrap(),
        "a:\n  b: 1\n  c: 3\n"
    );
    assert!(edited(text, "-  d: 2\n").is_err());
}
