//! `ork lock`

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Context as _;
use orkestra_compiler::compose::{Lock, Locked, digest_of};
use orkestra_language::api::{KatalogSpec, Setup};

use super::{
    Failure,
    options::FileOptions,
    output::{self, Counts},
    sources::{SourceOptions, lock_file},
};
use orkestra_loader::{
    compose::{ChartReference, Fetch},
    files,
};

/// Write komposer.lock: the digest of every source of a Komposer
///
/// The file is written next to the Komposer. Commit both. `ork run --locked` and other commands with `--locked` then
/// use these revisions, and refuse other content. With --check, nothing is written, and the exit code is 1 if a source has
/// another revision than the one in the file. The default path is katalog.yaml or komposer.yaml in the current directory.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    files: FileOptions,
    /// Compare only, and print the sources that differ
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let paths = args.files.or_default()?;
    let mut locks: BTreeMap<PathBuf, Lock> = BTreeMap::new();
    for path in &paths {
        let fetch = args.sources.current(path)?;
        let one = [path.clone()];
        let fetching = files::validate_with(&one, &*fetch);
        let found = output::progress("fetching sources", fetching).await;
        output::snippets(&found.problems.0, &found.texts);
        let counts = Counts::of(&found.problems);
        if counts.errors > 0 {
            output::note(&counts.to_string());
            return Err(Failure::Reported);
        }
        let composed: Vec<_> = (found.katalogs.iter())
            .filter_map(|katalog| katalog.composed.as_ref())
            .collect();
        if composed.is_empty() {
            return Err(Failure::Input(anyhow::anyhow!(
                "{} has no Komposer, and no Katalog with sources",
                path.display()
            )));
        }
        let lock = locks.entry(lock_file(path)).or_default();
        for record in composed.iter().flat_map(|resolved| &resolved.sources) {
            let locked = Locked {
                revision: record.revision.clone(),
                digest: record.digest.clone(),
            };
            lock.sources.insert(record.source.clone(), locked);
        }
        for resolved in &composed {
            let charts = locked_charts(&resolved.document.spec, &*fetch);
            lock.sources.extend(charts.await?);
        }
    }
    let mut differ = false;
    for (file, lock) in &locks {
        if args.check {
            differ |= compare(file, lock)?;
        } else {
            fs::write(file, lock.to_yaml())
                .with_context(|| format!("cannot write {}", file.display()))?;
            let sources = output::count(lock.sources.len(), "source");
            output::note(&format!("{} locks {sources}", file.display()));
        }
    }
    if differ {
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Fetches the charts that `setup.helm` names, by their identities.
async fn locked_charts(
    spec: &KatalogSpec,
    fetch: &dyn Fetch,
) -> anyhow::Result<BTreeMap<String, Locked>> {
    let enabled = spec.crds.values().filter(|entry| entry.is_enabled());
    let charts = enabled.flat_map(|entry| entry.setup.iter().flat_map(Setup::charts));
    let mut locked = BTreeMap::new();
    for reference in charts.filter_map(ChartReference::of) {
        let archive = fetch
            .chart(reference)
            .await
            .map_err(|why| anyhow::anyhow!("chart {} of `setup.helm`: {why}", reference.id()))?;
        let revision = reference.version.to_owned();
        let digest = digest_of(&archive);
        locked.insert(reference.id(), Locked { revision, digest });
    }
    Ok(locked)
}

/// Prints the sources that differ from a lock file; true if there are any.
fn compare(file: &std::path::Path, now: &Lock) -> anyhow::Result<bool> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; `ork lock` writes it", file.display()))?;
    let before = Lock::read(&text).with_context(|| file.display().to_string())?;
    let shown = |locked: &Locked| match &*locked.revision {
        "" => locked.digest.clone(),
        revision => format!("{} ({revision})", locked.digest),
    };
    let mut lines = Vec::new();
    for (source, locked) in &now.sources {
        match before.sources.get(source) {
            Some(before) if before.digest == locked.digest => {}
            Some(before) => {
                lines.push(format!(
                    "~ {source}: {} → {}\n",
                    shown(before),
                    shown(locked)
                ));
            }
            None => lines.push(format!("+ {source}: {}\n", shown(locked))),
        }
    }
    for (source, locked) in &before.sources {
        if !now.sources.contains_key(source) {
            lines.push(format!("- {source}: {}\n", shown(locked)));
        }
    }
    output::print(&lines.concat())?;
    Ok(!lines.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use tempfile::TempDir;

    use super::*;
    use crate::cli::{Cli, execute};

    const PAGE: &str = include_str!("../../docs/guides/sources.md");

    fn blocks(language: &str) -> Vec<&'static str> {
        let fence = format!("```{language}\n");
        let parts = PAGE.split(&*fence).skip(1);
        parts.filter_map(|part| part.split("```").next()).collect()
    }

    fn katalog(workers: u32) -> String {
        format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{name: ponds}}\nspec:\n  crds:\n    pond:\n      workers: {workers}\n      apiTypes: {{group: water.example, version: v1, kind: Pond, plural: ponds}}\n"
        )
    }

    #[tokio::test]
    async fn the_page_on_sources_locks_checks_and_validates() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        let komposer = "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {name: waters}\nsources:\n  files: [ponds.yaml]\nspec:\n  crds:\n    pond:\n      workers: 5\n";
        fs::write(at("komposer.yaml"), komposer).unwrap();
        fs::write(at("ponds.yaml"), katalog(2)).unwrap();
        let run = |line: &str| {
            let line = line.replace("komposer.yaml", &at("komposer.yaml").display().to_string());
            Box::pin(execute(Cli::try_parse_from(line.split(' ')).unwrap()))
        };
        let lines: Vec<&str> = blocks("sh").into_iter().flat_map(str::lines).collect();
        assert_eq!(lines.len(), 3);
        for line in &lines {
            run(line).await.unwrap();
        }
        let lock = Lock::read(&fs::read_to_string(at("komposer.lock")).unwrap()).unwrap();
        assert!(lock.sources.contains_key("ponds.yaml"));
        fs::write(at("ponds.yaml"), katalog(3)).unwrap();
        for line in &lines[1..] {
            assert!(matches!(run(line).await, Err(Failure::Reported)), "{line}");
        }
    }

    #[test]
    fn the_sample_of_the_page_is_a_komposer() {
        let stream = orkestra_language::document::parse_stream("sources.md", blocks("yaml")[0]);
        let read = orkestra_language::document::read_komposer(&stream.sources[0]);
        let (document, warnings) = read.unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let sources = document.spec.sources.unwrap_or_default();
        assert_eq!(sources.len(), 4);
    }
}
