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
/// `ork controller` itself needs, and the cluster roles `orkestra-author` and `orkestra-viewer`, which are bound to nobody.
/// Whoever may write Katalogs or Motifs has the permissions of Orkestra.
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
    let mut manifests = rbac::manifests(plans);
    if plans.is_empty() {
        manifests.extend(rbac::roles_for_people());
    }
    manifests.iter().map(output::to_yaml).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_for_people_treat_motifs_as_katalogs_and_are_bound_to_nobody() {
        let text = rbac_yaml(&[]).unwrap();
        let manifests: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
        let mut roles = 0;
        for manifest in &manifests {
            let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
            if !["orkestra-author", "orkestra-viewer"].contains(&name) {
                continue;
            }
            assert_eq!(manifest["kind"], "ClusterRole");
            assert!(manifest["metadata"].get("labels").is_none(), "{name}");
            for rule in manifest["rules"].as_array().unwrap() {
                let both = serde_json::json!(["katalogs", "motifs"]);
                assert_eq!(rule["resources"], both, "{name}");
            }
            roles += 1;
        }
        assert_eq!(roles, 2);
        let bound = |manifest: &serde_json::Value| {
            let role = manifest["roleRef"]["name"].as_str().unwrap_or_default();
            role.starts_with("orkestra-author") || role.starts_with("orkestra-viewer")
        };
        assert!(!manifests.iter().any(bound));
    }

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
