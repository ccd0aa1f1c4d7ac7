//! Checks references within a pod, and pod selectors.

use std::collections::BTreeMap;

use super::{Workload, names, uses::items};
use crate::{compile::children::DeclaredBlock, scope::At};
use orkestra_language::{
    api::{
        children::{Custom, ListEntry},
        or_template::OrTemplate,
        scalar::Text,
    },
    diagnostics::{Code, did_you_mean},
};
use orkestra_object::value::Node;
use orkestra_plan::kinds::is_built_in_group;

/// The default name of a volume of a `StatefulSet`.
const CLAIM: &str = "data";
/// Maximum number of volumes in a hint.
const VOLUMES_NAMED: usize = 8;
/// Kinds of `custom` entries that may have any pods.
const POD_KINDS: [&str; 7] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "StatefulSet",
];

/// Reports mounts of volumes that the pod does not have.
pub(crate) fn check_mounts(workload: &Workload<'_>) {
    let patched = workload.patches("volumes") || workload.patches("volumeClaimTemplates");
    let open = patched || workload.pod.volumes.template().is_some() || workload.has_other_claims;
    let Some(volumes) = volumes(workload).filter(|_| !open) else {
        return;
    };
    let pod = workload.pod;
    let at = workload.at.field("volumeMounts");
    check_mount_list(&at, pod.volume_mounts.iter().enumerate(), &volumes);
    for (field, list) in [
        ("containers", &pod.containers),
        ("initContainers", &pod.init_containers),
    ] {
        for (index, container) in list.iter().enumerate() {
            let at = workload.at.field(field).index(index).field("volumeMounts");
            check_mount_list(&at, items(container, "volumeMounts"), &volumes);
        }
    }
}

/// Returns the names of the volumes; `None` if one is unknown.
fn volumes(workload: &Workload<'_>) -> Option<Vec<String>> {
    let own = workload.pod.volumes.iter();
    let own = own.map(|volume| Some(names::normalised(volume.get("name")?.as_str()?)));
    let claims = workload.claims.iter().map(|claim| {
        let name = claim.name.as_deref().unwrap_or(CLAIM);
        Some(names::normalised(name))
    });
    own.chain(claims).collect()
}

fn check_mount_list<'a>(
    at: &At<'_>,
    mounts: impl Iterator<Item = (usize, &'a Node)>,
    volumes: &[String],
) {
    for (index, mount) in mounts {
        let Some(name) = mount.get("name").and_then(Node::as_str) else {
            continue;
        };
        let name = names::normalised(name);
        let has_template = |text: &str| text.contains("{{");
        let may_be =
            |volume: &String| *volume == name || has_template(&name) || has_template(volume);
        if volumes.iter().any(may_be) {
            continue;
        }
        let message = format!("the pod has no volume `{name}`");
        let known = volumes.iter().map(String::as_str);
        let hint = did_you_mean(&name, known).unwrap_or_else(|| {
            if volumes.is_empty() || volumes.len() > VOLUMES_NAMED {
                format!("declare it: `volumes: [{{ name: {name}, emptyDir: {{}} }}]`, or with `configMap`, `secret` or `persistentVolumeClaim`")
            } else {
                format!("it has `{}`", volumes.join("`, `"))
            }
        });
        at.index(index)
            .field("name")
            .warn_hint(Code::NoVolume, message, hint);
    }
}

/// Reports selectors that ask for a label with the name of the custom resource, or of a workload, that no workload has.
pub(crate) fn check_selectors(
    block: &DeclaredBlock<'_>,
    blocks: &[DeclaredBlock<'_>],
    workloads: &[Workload<'_>],
) {
    // Objects of kinds outside Kubernetes may create any pods.
    let has_pods = |entry: &Custom| {
        let group = entry
            .api_version
            .trim()
            .rsplit_once('/')
            .map_or("", |(group, _)| group);
        POD_KINDS.contains(&entry.kind.trim()) || !is_built_in_group(group)
    };
    let mut custom = blocks.iter().flat_map(|block| &block.lifecycle.custom);
    if workloads.is_empty()
        || custom.any(has_pods)
        || workloads.iter().any(|workload| {
            workload.patches("labels") || workload.common.meta.labels.template().is_some()
        })
    {
        return;
    }
    let check = |at: At<'_>, kind: &str, selector: Option<&OrTemplate<BTreeMap<String, Text>>>| {
        let selector = selector.and_then(OrTemplate::written);
        if let Some(selector) = selector.filter(|selector| selects_nothing(selector, workloads)) {
            let message = format!(
                "no workload of this operatorBox has these labels: the {kind} selects no pods"
            );
            let hint = "remove `selector` to select the workload of the same name, or the only one; or add the labels to `labels` of the workload";
            let key = selector
                .keys()
                .next()
                .map(String::as_str)
                .unwrap_or_default();
            at.field("selector")
                .key(key)
                .warn_hint(Code::SelectsNothing, message, hint);
        }
    };
    for (index, service) in block.lifecycle.services.iter().enumerate() {
        let at = block.at.field(service.row().list).index(index);
        check(at, "Service", service.selector.as_ref());
    }
    for (index, budget) in block.lifecycle.pdb.iter().enumerate() {
        let at = block.at.field(budget.row().list).index(index);
        check(at, "PodDisruptionBudget", budget.selector.as_ref());
    }
}

fn selects_nothing(selector: &BTreeMap<String, Text>, workloads: &[Workload<'_>]) -> bool {
    // Kubernetes and Orkestra set their own labels on pods.
    if selector.keys().any(|key| key.contains('/')) {
        return false;
    }
    let is_ours = |value: &Text| {
        let value = names::normalised(value);
        value.contains(".metadata.name ") || workloads.iter().any(|workload| workload.name == value)
    };
    let matches = |workload: &Workload<'_>| {
        selector.iter().all(|(key, value)| {
            let value = names::normalised(value);
            let label = workload
                .common
                .meta
                .labels
                .get(key)
                .map(|label| names::normalised(label));
            label
                .is_some_and(|label| label == value || label.contains("{{") || value.contains("{{"))
        })
    };
    selector.values().any(is_ours) && !workloads.iter().any(matches)
}
