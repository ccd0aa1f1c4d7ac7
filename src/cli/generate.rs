//! `ork generate`

use std::path::PathBuf;

use clap::Subcommand;
use orkestra_core::plan::{Plan, rbac};

use super::{Failure, files, output};

/// Prints manifests
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Rbac(Rbac),
}

/// Prints the rights that Orkestra and the Katalogs need, and nothing more
///
/// A namespace, a service account, cluster roles and their bindings, for `kubectl apply --filename -`. Without a file: what
/// `ork controller` itself needs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Rbac {
    /// Katalog files; may be repeated
    #[arg(short = 'k', long = "katalog", value_name = "FILE", num_args = 1..)]
    katalogs: Vec<PathBuf>,
}

pub(super) async fn execute(
    Args {
        what: What::Rbac(args),
    }: Args,
) -> Result<(), Failure> {
    let plans = files::compile(&args.katalogs).await?;
    let plans: Vec<&Plan> = plans.iter().map(AsRef::as_ref).collect();
    Ok(output::print(&rbac_yaml(&plans)?)?)
}

fn rbac_yaml(plans: &[&Plan]) -> anyhow::Result<String> {
    rbac::manifests(plans).iter().map(output::to_yaml).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_rights_are_current() {
        let header = "# Generated: UPDATE=1 cargo test --lib cli. What `ork controller` needs without any Katalog;\n\
                      # `ork generate rbac -k FILE` prints this and what a Katalog needs.\n";
        crate::testing::assert_document(
            "config/rbac.yaml",
            &format!("{header}{}", rbac_yaml(&[]).unwrap()),
        );
    }
}
