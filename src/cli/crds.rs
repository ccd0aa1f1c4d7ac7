//! `ork crds`

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use orkestra_language::api;

use super::{Failure, output};

/// Print the CRDs of Orkestra's own kinds
///
/// Pipe the output to `kubectl apply --filename -`. Authors of Katalogs, and of Motifs that Katalogs import, decide what
/// runs with the permissions of Orkestra: grant write access to administrators only.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Directory to write one file per CRD to, instead of printing them
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn execute(Args { output }: Args) -> Result<(), Failure> {
    if let Some(folder) = output {
        return Ok(write(&folder)?);
    }
    let yaml = api::crds_yaml().context("cannot write the CRDs as YAML")?;
    Ok(output::print(&yaml)?)
}

fn write(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the directory {}", folder.display()))?;
    for definition in api::crds() {
        let plural = definition
            .pointer("/spec/names/plural")
            .and_then(|plural| plural.as_str());
        let file = folder.join(format!("{}.yaml", plural.context("a CRD has no plural")?));
        let yaml = output::to_yaml(&definition)?;
        fs::write(&file, yaml).with_context(|| format!("cannot write {}", file.display()))?;
        output::note(&format!("wrote {}", file.display()));
    }
    Ok(())
}
