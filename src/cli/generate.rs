//! `ork generate`

use std::{collections::BTreeSet, sync::Arc};

use clap::Subcommand;
use orkestra_core::plan::{Plan, rbac};

use super::{
    Failure, files,
    options::{Files, parse_namespace},
    output,
};
use crate::gitops::{
    argocd::{self, Keys},
    flux,
};

/// Print manifests
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Rbac(Rbac),
    Argocd(Argocd),
    Flux(Flux),
}

/// Print the minimal RBAC manifests for Orkestra and the Katalogs
///
/// The output has a namespace, a service account, roles and role bindings, for `kubectl apply --filename -`. If a Katalog
/// limits its custom resources (`allowedNamespaces`) and their children to fixed namespaces, it gets Roles in these namespaces,
/// which must exist; all other rules are in `ClusterRoles`. Without a file, the output has the permissions of `ork controller`
/// itself, and the `ClusterRoles` `orkestra-author` and `orkestra-viewer`, which have no bindings. Authors of Katalogs or Motifs
/// have the permissions of Orkestra.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Rbac {
    #[command(flatten)]
    files: Files,
    /// Namespace whose Katalogs to run, as for `ork controller`; may be repeated. Access to Katalogs is limited to these
    /// namespaces [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
}

/// Print the settings of Argo CD for Katalogs and their custom resources
///
/// The output is a `ConfigMap` `argocd-cm` to merge with the existing one, with `kubectl apply --server-side --filename -`: health
/// checks, and the fields to ignore in comparisons, for Orkestra's own kinds and the kinds of the Katalogs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Argocd {
    #[command(flatten)]
    files: Files,
    /// Namespace of Argo CD
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace, default_value = "argocd")]
    namespace: String,
    /// Print one entry per API group instead of per kind, which covers kinds that are added later. The entries are all in the key
    /// `resource.customizations`, which replaces an existing one; some managed Argo CDs refuse it
    #[arg(long)]
    wildcards: bool,
}

/// Print Flux Kustomizations for Katalogs and their custom resources
///
/// The output has two Kustomizations that wait for their objects: `katalogs` for the directory katalogs/ of the `GitRepository`
/// flux-system, and `resources`, which depends on it, for resources/. Their `healthCheckExprs` are for Orkestra's own kinds and the
/// kinds of the Katalogs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Flux {
    #[command(flatten)]
    files: Files,
    /// Namespace of the Kustomizations
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace, default_value = "flux-system")]
    namespace: String,
}

pub(super) async fn execute(Args { what }: Args) -> Result<(), Failure> {
    let text = match what {
        What::Rbac(args) => {
            let plans = files::compile(&args.files.given()).await?;
            let namespaces = args.namespaces.into_iter().map(Into::into).collect();
            rbac_yaml(&borrowed(&plans), &namespaces)?
        }
        What::Argocd(args) => {
            let plans = files::compile(&args.files.given()).await?;
            let keys = if args.wildcards {
                Keys::Groups
            } else {
                Keys::Kinds
            };
            output::to_yaml(&argocd::config_map(
                &borrowed(&plans),
                keys,
                &args.namespace,
            ))?
        }
        What::Flux(args) => {
            let plans = files::compile(&args.files.given()).await?;
            let both = flux::kustomizations(&borrowed(&plans), &args.namespace);
            let texts: anyhow::Result<String> = both.iter().map(output::to_yaml).collect();
            texts?
        }
    };
    Ok(output::print(&text)?)
}

fn borrowed(plans: &[Arc<Plan>]) -> Vec<&Plan> {
    plans.iter().map(AsRef::as_ref).collect()
}

fn rbac_yaml(plans: &[&Plan], namespaces: &BTreeSet<Box<str>>) -> anyhow::Result<String> {
    let mut manifests = rbac::manifests(plans, namespaces);
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
        let text = rbac_yaml(&[], &BTreeSet::new()).unwrap();
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
        let header = "# Generated: UPDATE=1 cargo test --lib cli. The permissions of `ork controller` without any Katalog;\n\
                      # `ork generate rbac -k FILE` prints these and the permissions that a Katalog needs.\n";
        crate::testing::assert_document(
            "config/rbac.yaml",
            &format!("{header}{}", rbac_yaml(&[], &BTreeSet::new()).unwrap()),
        );
    }
}
