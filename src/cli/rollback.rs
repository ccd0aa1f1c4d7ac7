//! `ork rollback`

use anyhow::{Context as _, anyhow};
use orkestra_cluster::requests::{Cluster, ClusterError, Served};
use orkestra_compiler::compilation::{essence, restored_spec};
use orkestra_controller::{AcceptedRevision, History};
use orkestra_engine::reconcile::patch::merge_patch;
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::{KatalogRef, ObjectKey};
use serde_json::Value;

use super::{Failure, history, katalog::KatalogOptions, output};

/// The field manager of a rollback.
const MANAGER: &str = "ork-rollback";
/// Field managers of tools that apply what a repository or a release has, again and again, with the name of the tool.
const APPLIERS: [(&str, &str); 4] = [
    ("argocd", "Argo CD"),
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
    ("helm", "Helm"),
];

/// Return a Katalog or Komposer to an accepted revision
///
/// The spec of the revision is written to the object, as one more revision: `ork history` lists those that are kept. Motifs are objects of
/// their own and stay as they are; the command names those that differ from the ones that the revision used.
///
/// An object that Argo CD, Flux or Helm applies is refused, since they would apply their own revision again: revert the change there.
/// With `--force`, it is written nevertheless.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    katalog: KatalogOptions,
    /// Number of the revision [default: the one before the newest]
    #[arg(long, value_name = "N")]
    to: Option<i64>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write even if another tool applies the object
    #[arg(long)]
    force: bool,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let (cluster, katalog, history) = args.katalog.history().await?;
    let revision = match args.to {
        Some(number) => history::find(&history, number)?,
        None => previous(&history)?,
    };
    let number = revision.number;
    let document = history::document(&history, number)?;
    let Some(patch) = patch(&history.object, document) else {
        let text = format!(
            "{} has the spec of revision {number} already\n",
            katalog.titled()
        );
        return Ok(output::print(&text)?);
    };
    for name in differing(&cluster, &katalog, revision).await? {
        output::note(&format!(
            "Motif `{name}` differs from the one that revision {number} used, and stays as it is"
        ));
    }
    if args.dry_run {
        let text = serde_saphyr::to_string(&patch.to_json()).map_err(anyhow::Error::from)?;
        return Ok(output::print(&text)?);
    }
    if let Some((manager, tool)) = applier(&history.object).filter(|_| !args.force) {
        return Err(anyhow!(
            "{} is applied by {tool} (field manager `{manager}`), which would apply its own revision again: revert the change there, or \
             suspend it there and use `--force`",
            katalog.titled()
        )
        .into());
    }
    write(&cluster, &katalog, &history.object, &patch).await?;
    let text = format!("{} rolled back to revision {number}\n", katalog.titled());
    Ok(output::print(&text)?)
}

/// Returns the revision before the newest one.
fn previous(history: &History) -> Result<&AcceptedRevision, anyhow::Error> {
    let mut all = history.revisions.iter().rev();
    let (_, before) = (all.next(), all.next());
    before.context("no earlier revision is kept")
}

/// Returns the merge patch of the spec that makes the object what the revision was; none if it is.
fn patch(object: &Value, document: &Value) -> Option<Node> {
    let live = object.get("spec").cloned().unwrap_or_default();
    let wanted = restored_spec(object, document);
    merge_patch(&Node::from(&live), &Node::from(&wanted))
}

/// Returns the tool that applies the spec of the object, with its field manager.
fn applier(object: &Value) -> Option<(&str, &'static str)> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let of_spec = entries
        .iter()
        .filter(|entry| entry.pointer("/fieldsV1/f:spec").is_some());
    let mut managers = of_spec.filter_map(|entry| entry["manager"].as_str());
    managers.find_map(|manager| {
        let mut tools = APPLIERS.iter();
        let (_, tool) = tools.find(|(prefix, _)| manager.starts_with(prefix))?;
        Some((manager, *tool))
    })
}

/// Returns the names of the Motifs that are not as the revision used them.
async fn differing(
    cluster: &Cluster,
    katalog: &KatalogRef,
    revision: &AcceptedRevision,
) -> Result<Vec<String>, Failure> {
    let motifs = Served::namespaced(names::GROUP, names::VERSION, "Motif", "motifs");
    let mut differing = Vec::new();
    for (name, used) in &revision.motifs {
        let key = ObjectKey {
            namespace: Some(katalog.namespace.as_str().into()),
            name: name.as_str().into(),
        };
        let live = match cluster.get(&motifs, &key).await {
            Ok(live) => live.to_json(),
            // Motifs of files and registries are no objects.
            Err(ClusterError::NotFound(_)) => continue,
            Err(error) => return Err(failed(error, &format!("read Motif {name}"))),
        };
        if essence(&live).get("spec") != essence(used).get("spec") {
            differing.push(name.clone());
        }
    }
    Ok(differing)
}

/// Writes the patch, if the object is still in the state that it was computed for.
async fn write(
    cluster: &Cluster,
    katalog: &KatalogRef,
    object: &Value,
    patch: &Node,
) -> Result<(), Failure> {
    let kind = katalog.kind;
    let served = Served::namespaced(names::GROUP, names::VERSION, kind.kind(), kind.plural());
    let key = ObjectKey {
        namespace: Some(katalog.namespace.as_str().into()),
        name: katalog.name.as_str().into(),
    };
    let version = object.pointer("/metadata/resourceVersion");
    let version = Node::from(version.and_then(Value::as_str).unwrap_or_default());
    let body = Node::object([
        ("metadata", Node::object([("resourceVersion", version)])),
        ("spec", patch.clone()),
    ]);
    let written = cluster
        .merge_patch(&served, &key, None, MANAGER, &body)
        .await;
    written.map_err(|error| failed(error, &format!("write {}", katalog.titled())))?;
    Ok(())
}

fn failed(error: ClusterError, what: &str) -> Failure {
    let is_unreachable = matches!(error, ClusterError::Unavailable(_));
    let error = anyhow::Error::new(error).context(format!("cannot {what}"));
    Failure::of(error, is_unreachable)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rollback_sets_what_the_revision_had_and_removes_what_it_had_not() {
        let object =
            json!({ "spec": { "crds": { "pond": { "a": 1 }, "lake": {} }, "suspend": true } });
        let document = json!({ "spec": { "crds": { "pond": { "b": 2 } } } });
        let patch = patch(&object, &document).unwrap().to_json();
        let expected = json!({ "crds": { "pond": { "a": null, "b": 2 }, "lake": null } });
        assert_eq!(patch, expected);
        let same = json!({ "spec": { "crds": { "pond": { "a": 1 }, "lake": {} } } });
        assert_eq!(super::patch(&object, &same), None);
    }

    #[test]
    fn tools_that_would_apply_their_own_revision_again_are_named() {
        let object = |manager: &str, fields: Value| json!({ "metadata": { "managedFields": [{ "manager": manager, "fieldsV1": fields }] } });
        let spec = || json!({ "f:spec": { "f:crds": {} } });
        for (manager, tool) in [
            ("argocd-controller", Some("Argo CD")),
            ("kustomize-controller", Some("Flux")),
            ("helm", Some("Helm")),
            ("kubectl-client-side-apply", None),
        ] {
            let object = object(manager, spec());
            assert_eq!(applier(&object).map(|(_, tool)| tool), tool, "{manager}");
        }
        let labels = object("argocd-controller", json!({ "f:metadata": {} }));
        assert_eq!(applier(&labels), None);
    }
}
