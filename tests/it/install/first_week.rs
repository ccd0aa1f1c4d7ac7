//! `docs/learn/first-week.md` on a real control plane: each file, each edit and each command of the page in order, and each output
//! that it shows.
//!
//! ```text
//!  ```yaml FILE   written        ```sh     run, one line at a time, each must succeed
//!  ```diff FILE   edited         ```text   the output of the last command: `…` stands for any text, runs of spaces for one
//! ```

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use testbed::eventually;

use super::documents::output_of;
use super::site::Site;
use crate::examples::readme::{self, Block};
use crate::examples::tutorial::edited;
use crate::scenario::LIMIT;

/// The reader of the page.
struct Reader {
    site: Site,
    folder: tempfile::TempDir,
    /// Whether the controller runs, which the page installs.
    runs: bool,
    /// The last command, and its output.
    last: (String, String),
}

impl Reader {
    async fn follow(&mut self, block: &Block<'_>) -> Result<()> {
        let (language, file) = block.about.split_once(' ').unwrap_or((block.about, ""));
        let path = self.folder.path().join(file);
        match language {
            "yaml" => Ok(std::fs::write(path, block.text)?),
            "diff" => {
                let text = std::fs::read_to_string(&path)?;
                Ok(std::fs::write(path, edited(&text, block.text)?)?)
            }
            "sh" => {
                for command in block.text.lines().filter(|line| !line.is_empty()) {
                    let typed = self.command(command).await;
                    self.last = (
                        command.to_owned(),
                        typed.with_context(|| format!("`{command}`"))?,
                    );
                }
                Ok(())
            }
            "text" => self.compare(block.text).await,
            _ => anyhow::bail!("a block `{}`", block.about),
        }
    }

    /// Runs a command. The controller is not a Pod here: it starts and stops when its Pods would.
    async fn command(&mut self, command: &str) -> Result<String> {
        if self.runs
            && (command.starts_with("ork install ") || command.starts_with("ork uninstall "))
        {
            self.site.stop()?;
            self.runs = false;
        }
        // The timeout in the page is for an idle machine.
        let output = if command.starts_with("kubectl wait ") {
            eventually("it succeeds", LIMIT, async || self.run(command).map(Some)).await?
        } else {
            self.run(command)?
        };
        if command.starts_with("ork install ") {
            self.site.launch().await?;
            self.runs = true;
        }
        Ok(output)
    }

    fn run(&self, command: &str) -> Result<String> {
        output_of(&self.site, self.folder.path(), command)
    }

    /// Compares the output of the last command with the page. One that reads is repeated: the cluster may still be on its way.
    async fn compare(&self, shown: &str) -> Result<()> {
        let (command, output) = &self.last;
        if !command.starts_with("kubectl get ") {
            return same(shown, output).with_context(|| format!("`{command}`"));
        }
        let reached = eventually("the output is as shown", LIMIT, async || {
            same(shown, &self.run(command)?).map(Some)
        });
        reached.await.with_context(|| format!("`{command}`"))
    }
}

/// Checks that an output is as shown.
fn same(shown: &str, output: &str) -> Result<()> {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim().lines();
        lines
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let (shown, output) = (lines(shown), lines(output));
    let is_same = shown.len() == output.len()
        && shown
            .iter()
            .zip(&output)
            .all(|(shown, line)| fits(shown, line));
    ensure!(
        is_same,
        "it printed\n{}\nthe page shows\n{}",
        output.join("\n"),
        shown.join("\n")
    );
    Ok(())
}

/// Whether a line is as shown, with any text for each `…`.
fn fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_week_goes_as_its_page_says() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/learn/first-week.md"))?;
    let mut reader = Reader {
        site: Site::start()?,
        folder: tempfile::tempdir()?,
        runs: false,
        last: Default::default(),
    };
    let (mut commands, mut outputs) = (0, 0);
    for block in readme::blocks(&page) {
        commands += usize::from(block.about == "sh");
        outputs += usize::from(block.about == "text");
        let line = block.text.lines().next().unwrap_or_default();
        let followed = reader.follow(&block).await;
        followed
            .with_context(|| format!("the block `{}` that begins with `{line}`", block.about))?;
    }
    ensure!(commands > 20 && outputs > 12, "{commands}, {outputs}");
    ensure!(!reader.runs, "the page ends with `ork uninstall`");
    Ok(())
}

#[test]
fn dots_stand_for_any_text() {
    assert!(fits("a … c", "a b c") && fits("…", "") && fits("a…", "ab"));
    assert!(!fits("a … c", "a b d") && !fits("a", "ab") && !fits("a…b", "a"));
    assert!(same("NAME  AGE\nx   …\n", "NAME   AGE\nx      3s\n").is_ok());
    assert!(same("a\n", "a\nb\n").is_err());
}
