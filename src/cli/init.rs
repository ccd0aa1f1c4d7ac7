//! `ork init`

use std::path::PathBuf;

use anyhow::Context as _;

use super::{Failure, output};
use crate::init::Scaffold;

/// Writes the files that a new Katalog begins with
///
/// A definition, a Katalog, a custom resource, a README, and a test that compares what is made with what is expected.
/// Nothing is overwritten.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Name of the Katalog, such as frog-pond
    name: String,
    /// Folder for the files [default: the name]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Kind of the custom resource [default: the name in CamelCase]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// API group of the custom resource [default: example.org]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    let scaffold = Scaffold::new(&args.name, args.kind.as_deref(), args.group.as_deref())
        .context("cannot begin a Katalog")?;
    let folder = args.dir.unwrap_or_else(|| PathBuf::from(&args.name));
    let written = scaffold
        .write(&folder)
        .await
        .context("cannot begin a Katalog")?;
    for file in written {
        output::note(&format!("wrote {}", folder.join(file).display()));
    }
    output::note(&format!(
        "{} tells what to do next",
        folder.join("README.md").display()
    ));
    Ok(())
}
