//! Settings of Flux: Kustomizations that wait, with `healthCheckExprs` for our own kinds and those of Katalogs.

use orkestra_plan::Plan;
use serde_json::{Value, json};

use super::{GitOpsKind, WITH_STATUS, operated_kinds, own_kinds};

/// The conditions of an object, also of one without a status.
const CONDITIONS: &str = "status.?conditions.orValue([])";

/// Returns two Kustomizations of that namespace, to apply in order: the Katalogs in `katalogs/`, and the custom resources in
/// `resources/`, which depend on them. Both wait until their objects are ready.
pub fn kustomizations(plans: &[&Plan], namespace: &str) -> [Value; 2] {
    let own = own_kinds();
    let own = own.iter().filter(|kind| WITH_STATUS.contains(&&*kind.kind));
    let katalogs = kustomization("katalogs", namespace, &own.map(checks).collect::<Vec<_>>());
    let operated = operated_kinds(plans);
    let operated: Vec<Value> = operated.iter().map(checks).collect();
    let mut resources = kustomization("resources", namespace, &operated);
    resources["spec"]["dependsOn"] = json!([{ "name": "katalogs" }]);
    [katalogs, resources]
}

fn kustomization(name: &str, namespace: &str, checks: &[Value]) -> Value {
    let mut spec = json!({
        "interval": "10m",
        // A Katalog may wait for permissions, which are granted at most 30 seconds before it notices.
        "timeout": "5m",
        "retryInterval": "1m",
        "path": format!("./{name}"),
        "prune": true,
        "wait": true,
        "sourceRef": { "kind": "GitRepository", "name": "flux-system" },
    });
    if !checks.is_empty() {
        spec["healthCheckExprs"] = checks.into();
    }
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": { "name": name, "namespace": namespace },
        "spec": spec,
    })
}

/// The expressions for one kind. Flux compares `status.observedGeneration` before it evaluates them; a condition's own
/// generation counts where the CRD does not keep the former.
fn checks(kind: &GitOpsKind) -> Value {
    let is =
        |name: &str| format!("{CONDITIONS}.exists(c, c.type == '{name}' && c.status == 'True')");
    let is_stale = format!(
        "{CONDITIONS}.exists(c, c.type == 'Ready' && c.?observedGeneration.orValue(metadata.generation) != metadata.generation)"
    );
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "inProgress": format!("{is_stale} || {}", is("Reconciling")),
        "failed": is("Stalled"),
        "current": is("Ready"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_wait_for_katalogs_and_katalogs_for_nobody() {
        let [katalogs, resources] = kustomizations(&[], "flux-system");
        assert_eq!(katalogs["spec"].get("dependsOn"), None);
        assert_eq!(resources["spec"]["dependsOn"][0]["name"], "katalogs");
        let kinds: Vec<&Value> = katalogs["spec"]["healthCheckExprs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| &check["kind"])
            .collect();
        assert_eq!(kinds, ["Katalog", "Komposer"]);
        assert_eq!(resources["spec"].get("healthCheckExprs"), None);
    }
}
