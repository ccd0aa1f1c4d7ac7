//! `ork generate`

use std::collections::BTreeSet;

use clap::Subcommand;
use orkestra_core::plan::{Plan, rbac};

use super::{
    Failure, files,
    options::{Files, parse_namespace},
    output,
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
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: RbacFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum RbacFormat {
    /// Manifests, for `kubectl apply --filename -`
    #[default]
    Manifests,
    /// The permissions of the Katalogs alone, as values of the Helm chart and of `ork install`
    Values,
}

pub(super) async fn execute(
    Args {
        what: What::Rbac(args),
    }: Args,
) -> Result<(), Failure> {
    let plans = files::compile(&args.files.given()).await?;
    let plans: Vec<&Plan> = plans.iter().map(AsRef::as_ref).collect();
    let namespaces = args.namespaces.into_iter().map(Into::into).collect();
    Ok(output::print(&match args.output {
        RbacFormat::Manifests => rbac_yaml(&plans, &namespaces)?,
        RbacFormat::Values => rbac_values(&plans)?,
    })?)
}

fn rbac_yaml(plans: &[&Plan], namespaces: &BTreeSet<Box<str>>) -> anyhow::Result<String> {
    let mut manifests = rbac::manifests(plans, namespaces);
    if plans.is_empty() {
        manifests.extend(rbac::roles_for_people());
    }
    manifests.iter().map(output::to_yaml).collect()
}

/// The permissions of Katalogs as values of the chart.
fn rbac_values(plans: &[&Plan]) -> anyhow::Result<String> {
    let katalog = |plan: &&Plan| {
        let permissions = rbac::permissions(plan);
        serde_json::json!({
            "namespace": plan.katalog.namespace,
            "name": plan.katalog.name,
            "rules": permissions.cluster,
            "namespaceRules": permissions.namespaces,
        })
    };
    let katalogs: Vec<_> = plans.iter().map(katalog).collect();
    output::to_yaml(&serde_json::json!({ "katalogs": katalogs }))
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
}
