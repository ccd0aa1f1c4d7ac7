//! Runs the commands of `docs/guides/registry.md`.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use orkestra_registry_tests::{Access, Registry, Workspace};

/// Returns the commands of a page: its `sh` blocks, in order.
fn blocks(text: &str) -> Vec<&str> {
    let parts = text.split("```sh\n").skip(1);
    parts.filter_map(|part| part.split("```").next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_registries_does_what_it_says() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/guides/registry.md"))?;
    let blocks = blocks(&text);
    ensure!(blocks.len() == 5, "the page has {} blocks", blocks.len());
    let registry = Registry::start(Access::Anonymous).await?;
    let secured = Registry::start(Access::Password).await?;
    let mut work = Workspace::new()?;
    work.set("ORK_REGISTRY_CA_FILE", &secured.authority());
    let examples = root.join("examples").canonicalize()?;
    std::os::unix::fs::symlink(examples, work.path("examples"))?;
    // One script, so that variables are shared between blocks.
    let script = blocks
        .join("\n")
        .replace("localhost:5000", &registry.host)
        .replace("registry.example.org", &secured.host);
    let ran = work.shell(&script)?;
    let said = format!("{}\n{}", ran.out, ran.err);
    ran.ok()?;
    for block in text
        .split("```text\n")
        .skip(1)
        .filter_map(|part| part.split("```").next())
    {
        for line in block.lines() {
            let line = line.replace("localhost:5000", &registry.host);
            // An ellipsis stands for output that differs between runs.
            let parts = line.split('…').map(str::trim);
            let is_said = said
                .lines()
                .any(|out| parts.clone().all(|part| out.contains(part)));
            ensure!(
                is_said,
                "the page shows a line that is not printed: {line}\n{said}"
            );
        }
    }
    Ok(())
}
