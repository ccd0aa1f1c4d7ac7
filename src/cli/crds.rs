//! `ork crds`

use anyhow::Context as _;
use orkestra_core::api;

use super::{Failure, output};

/// Prints the custom resource definitions of Orkestra's own kinds
///
/// The output is for `kubectl apply --filename -`. Whoever may write a Katalog decides what runs with the rights of
/// Orkestra: grant that to administrators only.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn execute(Args {}: Args) -> Result<(), Failure> {
    let yaml = api::crds_yaml().context("cannot write the definitions as YAML")?;
    Ok(output::print(&yaml)?)
}
