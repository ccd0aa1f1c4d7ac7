//! `ork man`

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

use super::{Cli, Failure, output};

/// Print the man page of `ork`, or write the pages of all commands
///
/// To view the page, run `ork man | man -l -`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Directory to write one page per command to, such as ork-run.1
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let mut root = Cli::command();
    root.build();
    match &args.output {
        Some(folder) => write(folder, root)?,
        None => output::print(&String::from_utf8_lossy(&page(root)?))?,
    }
    Ok(())
}

/// Writes a page for each command. Pages of commands that no longer exist are not removed.
fn write(folder: &Path, root: clap::Command) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the directory {}", folder.display()))?;
    let mut written = 0;
    let mut left = vec![root];
    while let Some(command) = left.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = folder.join(format!("{name}.1"));
        let children = command
            .get_subcommands()
            .filter(|one| one.get_name() != "help");
        left.extend(children.cloned());
        fs::write(&file, page(command)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
        written += 1;
    }
    let pages = output::count(written, "page");
    output::note(&format!("wrote {pages} to {}", folder.display()));
    Ok(())
}

fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    // Without a date, so that equal sources give equal pages.
    let man = Man::new(command).date("");
    man.render(&mut page)
        .context("cannot render the man page")?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_of_its_own_and_equal_runs_write_equal_pages() {
        let text = || {
            let folder = tempfile::TempDir::new().unwrap();
            let mut root = Cli::command();
            root.build();
            write(folder.path(), root).unwrap();
            let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
            ["ork.1", "ork-run.1", "ork-generate-rbac.1"].map(read)
        };
        let pages = text();
        assert!(pages[1].contains("kubeconfig"), "{}", pages[1]);
        assert_eq!(pages, text());
    }
}
