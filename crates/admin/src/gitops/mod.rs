//! Settings of `GitOps` tools: health checks, and fields to ignore, of our own kinds and of the kinds that Katalogs operate.
//!
//! ```text
//!  Plans ──► kinds ──┬─► argocd: a `ConfigMap` `argocd-cm` with health.lua for each kind
//!                    └─► flux: Kustomizations with `healthCheckExprs` for each kind
//! ```
//!
//! Both decide as kstatus does, except that a custom resource without conditions is in progress: kstatus takes it for current, so
//! that a tool would not wait for an operator that has not started yet.

pub mod argocd;
pub mod flux;

use std::collections::BTreeMap;

use orkestra_language::api::names;
use orkestra_plan::{GroupKind, OperatorPlan, Plan, built_in};

/// A kind that a `GitOps` tool applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitOpsKind {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Field managers under which a runtime writes to its objects, apart from their status.
    pub managers: Vec<String>,
}

impl GitOpsKind {
    fn new(group: &str, version: &str, kind: &str, managers: Vec<String>) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            managers,
        }
    }

    fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// The kinds of our own group that have a status.
const WITH_STATUS: [&str; 2] = ["Katalog", "Komposer"];

/// Returns our own kinds, in alphabetical order.
fn own_kinds() -> Vec<GitOpsKind> {
    let [katalog, komposer] = WITH_STATUS;
    let kind = |kind: &str, managers| GitOpsKind::new(names::GROUP, names::VERSION, kind, managers);
    let runtime = || vec![names::MANAGER.to_owned()];
    vec![
        kind(katalog, runtime()),
        kind(komposer, runtime()),
        kind("Motif", Vec::new()),
    ]
}

/// Returns the kinds of the custom resources of these plans, sorted by group and kind. Kinds of Kubernetes itself are left out:
/// the tools know them, and no operator writes their status. Of several versions the last one is named.
fn operated_kinds(plans: &[&Plan]) -> Vec<GitOpsKind> {
    let mut kinds: BTreeMap<GroupKind, GitOpsKind> = BTreeMap::new();
    for operator in plans.iter().flat_map(|plan| &plan.operators) {
        let kind = operator.resource.group_kind();
        if built_in(&kind).is_none() {
            kinds.insert(kind, of_operator(operator));
        }
    }
    kinds.into_values().collect()
}

fn of_operator(operator: &OperatorPlan) -> GitOpsKind {
    let resource = &operator.resource;
    let plural = resource.plural.as_deref().unwrap_or_default();
    let mut managers = vec![operator.metadata_manager()];
    if operator.persisted().next().is_some() {
        managers.push(names::normalize_manager(plural, &resource.group));
    }
    GitOpsKind::new(&resource.group, &resource.version, &resource.kind, managers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_testkit::compiled;

    #[test]
    fn the_kinds_of_katalogs_are_found_once_and_kubernetes_own_are_left_out() {
        let plan = compiled(
            r"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      normalize: { spec: { schedule: '{{ cronFromAny .spec.schedule }}' } }
      operatorBox: { onReconcile: { configMaps: [{}] } }
    map:
      apiTypes: { version: v1, kind: ConfigMap }
      labelSelector: { water: pond }
      operatorBox: { onReconcile: { secrets: [{}] } }
",
        );
        let kinds = operated_kinds(&[&plan, &plan]);
        let expected = GitOpsKind::new(
            "water.example",
            "v1",
            "Pond",
            vec![
                "orkestra-metadata/ponds.water.example".to_owned(),
                "orkestra-normalize/ponds.water.example".to_owned(),
            ],
        );
        assert_eq!(kinds, [expected]);
    }
}
