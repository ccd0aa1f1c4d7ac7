//! `ork crds`

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use orkestra_core::api;

use super::{Failure, output};

/// Prints the custom resource definitions of Orkestra's own kinds
///
/// The output is for `kubectl apply --filename -`. Authors of Katalogs, and of Motifs that Katalogs import, decide what
/// runs with the permissions of Orkestra: grant that to administrators only.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Folder to write a file for each definition to, instead of printing them
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn execute(Args { output }: Args) -> Result<(), Failure> {
    if let Some(folder) = output {
        return Ok(write(&folder)?);
    }
    let yaml = api::crds_yaml().context("cannot write the definitions as YAML")?;
    Ok(output::print(&yaml)?)
}

fn write(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for definition in api::crds() {
        let plural = definition
            .pointer("/spec/names/plural")
            .and_then(|plural| plural.as_str());
        let file = folder.join(format!(
            "{}.yaml",
            plural.context("a definition has no plural")?
        ));
        let yaml = output::to_yaml(&definition)?;
        fs::write(&file, yaml).with_context(|| format!("cannot write {}", file.display()))?;
        output::note(&format!("wrote {}", file.display()));
    }
    Ok(())
}
