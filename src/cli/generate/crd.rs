//! `ork generate crd`

use anyhow::Context as _;

use super::super::{Failure, options::FileOptions, output, sources::SourceOptions};
use orkestra_loader::files;

/// Print the CRDs that entries of Katalogs declare with schema
///
/// The output is a YAML stream for `kubectl apply --filename -`, in the order of the files and of the kinds. Equal files give equal
/// output. `ork run` applies the same definitions.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Crd {
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

/// Returns the manifests.
pub(crate) async fn text(args: Crd) -> Result<String, Failure> {
    let paths = args.files.or_default()?;
    let fetch = args.sources.fetch(&paths)?;
    let found = files::validate_with(&paths, &*fetch).await;
    output::snippets(&found.problems.0, &found.texts);
    if found.problems.has_errors() {
        return Err(Failure::Reported);
    }
    let katalogs = found.katalogs.iter();
    let texts = katalogs.map(|katalog| files::definitions_yaml(&katalog.document.spec));
    let texts: Result<Vec<String>, _> = texts.collect();
    let text = texts.context("cannot write a definition as YAML")?.concat();
    if text.is_empty() {
        return Err(anyhow::anyhow!("no entry declares `schema`").into());
    }
    Ok(text)
}
