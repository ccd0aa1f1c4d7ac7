//! `ork generate rbac`

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use orkestra_compiler::compose::{Base, Composition, Declared, RequestKind};
use orkestra_language::{api::sources::Verify, document::parse_stream};
use orkestra_plan::{KatalogRef, Plan, rbac};

use super::super::{
    Failure, files,
    options::{FileOptions, parse_namespace},
    output,
    sources::SourceOptions,
};

/// Print the minimal RBAC manifests for Orkestra and the Katalogs
///
/// The output has a namespace, a service account, roles and role bindings, for `kubectl apply --filename -`. If a Katalog
/// limits its custom resources (`allowedNamespaces`) and their children to fixed namespaces, it gets Roles in these namespaces,
/// which must exist; all other rules are in `ClusterRoles`. Without a file, the output has the permissions of `ork controller`
/// itself, and the `ClusterRoles` `orkestra-author` and `orkestra-viewer`, which have no bindings. Authors of Katalogs or Motifs
/// have the permissions of Orkestra.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Rbac {
    #[command(flatten)]
    files: FileOptions,
    /// Namespace whose Katalogs to run, as for `ork controller`; may be repeated. Access to Katalogs is limited to these
    /// namespaces [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: RbacFormat,
    /// Print only the roles and bindings of the Katalogs. `ork install`, the Helm chart and `config/` grant the permissions of
    /// `ork controller` itself
    #[arg(long)]
    only_katalogs: bool,
    /// Include what `ork controller --manage-crds` needs: the permission to write the definitions that `schema`
    /// generates
    #[arg(long)]
    manage_crds: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum RbacFormat {
    /// Manifests, for `kubectl apply --filename -`
    #[default]
    Manifests,
    /// The permissions of the Katalogs alone, as values of the Helm chart and of `ork install`
    Values,
}

/// Returns the manifests, or the values of the chart.
pub(crate) async fn text(args: Rbac) -> Result<String, Failure> {
    let mut paths = args.files.given();
    let named = NamedSources::of(&listed(&paths));
    for one in named.iter().filter(|one| one.is_incomplete) {
        output::note(&format!(
            "{}: sources in the cluster are not read: pass the files of their Katalogs too, to include the permissions of their operators",
            one.path.display()
        ));
        // Of a folder, the other files remain.
        let is_around = |path: &PathBuf| path.is_dir() && one.path.starts_with(path);
        if paths.iter().any(is_around) {
            paths = listed(&paths);
        }
        paths.retain(|path| *path != one.path);
    }
    let fetch = args.sources.fetch(&paths)?;
    let plans = files::compile(&paths, &*fetch, args.manage_crds).await?;
    let plans: Vec<&Plan> = plans.iter().map(AsRef::as_ref).collect();
    let namespaces = args.namespaces.into_iter().map(Into::into).collect();
    if args.output == RbacFormat::Values {
        return Ok(rbac_values(&plans)?);
    }
    let mut text = if args.only_katalogs {
        yaml(&rbac::katalog_manifests(&plans))?
    } else {
        rbac_yaml(&plans, &namespaces, named.is_empty())?
    };
    for one in &named {
        for manifest in rbac::source_manifests(&one.reference, &one.config_maps, &one.secrets) {
            text.push_str(&output::to_yaml(&manifest)?);
        }
    }
    Ok(text)
}

/// Returns the paths, with folders replaced by their files that contain something of Orkestra.
fn listed(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let files = paths.iter().flat_map(|path| {
        if !path.is_dir() {
            return vec![path.clone()];
        }
        // An unreadable file is reported where it is compiled.
        let found = orkestra_loader::files::find(path, &mut seen)
            .into_iter()
            .flatten();
        let found = found.filter(|file| orkestra_loader::files::is_relevant(&file.text));
        found.map(|file| file.path).collect()
    });
    files.collect()
}

/// The objects of the cluster that the sources of a document name.
struct NamedSources {
    path: PathBuf,
    reference: KatalogRef,
    config_maps: BTreeSet<String>,
    secrets: BTreeSet<String>,
    /// Whether it has sources that are objects of the cluster, whose operators are not known here.
    is_incomplete: bool,
}

impl NamedSources {
    /// Reads the documents with sources; others, and those with errors, are left to the compilation.
    fn of(paths: &[PathBuf]) -> Vec<Self> {
        let mut all = Vec::new();
        for path in paths {
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(path).unwrap_or_default();
            for source in &parse_stream(&shown, &text).sources {
                let base = Base::File(shown.clone());
                match Declared::read(source, base) {
                    Ok(Declared::ComposedKatalog(composition)) => {
                        all.push(Self::of_one(path, &composition));
                    }
                    Ok(Declared::Komposer(komposer)) => all.push(Self::of_one(path, &komposer.0)),
                    Ok(Declared::Whole(_)) | Err(_) => {}
                }
            }
        }
        all
    }

    fn of_one(path: &Path, composition: &Composition) -> Self {
        let namespace = composition.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let mut named = Self {
            path: path.to_owned(),
            reference: KatalogRef::new(namespace, composition.name.clone()).of(composition.kind()),
            config_maps: BTreeSet::new(),
            secrets: BTreeSet::new(),
            is_incomplete: false,
        };
        for request in composition.requests() {
            match &request.kind {
                RequestKind::ConfigMap { name, .. } => {
                    named.config_maps.insert(name.clone());
                    named.is_incomplete = true;
                }
                RequestKind::Katalogs { .. } => named.is_incomplete = true,
                _ => {}
            }
            let auth = request.auth.and_then(|auth| auth.secret_ref);
            let verify = request.verify.iter().flat_map(Verify::secrets);
            let secrets = auth.iter().chain(verify);
            named
                .secrets
                .extend(secrets.map(|secret| secret.name.clone()));
        }
        named
    }
}

/// Returns the manifests; with those for people, if no document is given.
fn rbac_yaml(
    plans: &[&Plan],
    namespaces: &BTreeSet<Box<str>>,
    is_bare: bool,
) -> anyhow::Result<String> {
    let mut manifests = rbac::manifests(plans, namespaces);
    if plans.is_empty() && is_bare {
        manifests.extend(rbac::roles_for_people());
    }
    yaml(&manifests)
}

fn yaml(manifests: &[serde_json::Value]) -> anyhow::Result<String> {
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
        let text = rbac_yaml(&[], &BTreeSet::new(), true).unwrap();
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
                let all = serde_json::json!(["katalogs", "komposers", "motifs"]);
                assert_eq!(rule["resources"], all, "{name}");
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
