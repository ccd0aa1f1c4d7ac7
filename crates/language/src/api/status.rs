//! The status that Orkestra reports on a Katalog or a Komposer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditions::Condition;

/// The observed state of a Katalog or a Komposer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KatalogStatus {
    /// The most recent generation observed by Orkestra, which the rest of the status refers to. -1 if none was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` always; `Reconciling` and `Stalled` only while they are true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
    /// The number of running operators out of those declared, such as `2/2`.
    pub ready: String,
    /// The number of custom resources of all operators.
    pub instances: i64,
    /// The number of ready custom resources out of all, such as `48/50`.
    pub instances_ready: String,
    /// Name of the revision in force. The first revision is set here as soon as it is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The newest accepted revision, while an operator still runs an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted_revision: Option<String>,
    /// The value of the annotation `orkestra.orkspace.io/reconcile` or `reconcile.fluxcd.io/requestedAt` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The state of each operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub operators: Vec<OperatorStatus>,
    /// The state of each source, in the order in which they are merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["source"]
    ))]
    pub sources: Vec<SourceStatus>,
    /// The kinds that are operated, or were operated and are not released yet. Their custom resources may have Orkestra's
    /// finalizers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["group", "kind"]
    ))]
    pub operated: Vec<OperatedKind>,
}

/// The observed state of an operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    /// Name of the operator: its key in `spec.crds`.
    pub name: String,
    /// API group of its custom resource.
    #[serde(default)]
    pub group: String,
    /// Version of its custom resource.
    #[serde(default)]
    pub version: String,
    /// Kind of its custom resource.
    #[serde(default)]
    pub kind: String,
    /// State of the operator: `Running`, `Updating` (an earlier revision runs while the new one waits, or custom
    /// resources are not reconciled under the new one yet), `Degraded`, `Waiting`,
    /// `Starting`, `Deleting`, `Suspended`, `Disabled` or `Stopped` (the entry cannot run; `message` gives the reason).
    pub state: String,
    /// The revision that the operator runs. Not set while it runs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The desired revision, while it differs from the running one. `reason` and `message` describe what the operator waits
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_revision: Option<String>,
    /// The number of workers, without those that are added temporarily when the queue grows.
    #[serde(default)]
    pub workers: u32,
    /// The number of custom resources.
    #[serde(default)]
    pub instances: i64,
    /// The number of custom resources that are ready.
    #[serde(default)]
    pub ready: i64,
    /// The custom resources that were ready under an earlier revision and fail under the one in force. Not set if there are
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<FailingInstances>,
    /// Where its rules apply when a custom resource is written. Not set without rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulePlaces>,
    /// The reason for the state, in one CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A human-readable message about the state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Where rules apply when a custom resource is written: each is in one list, such as `validation of spec.image`. Reconcile passes apply
/// all of them but those that need data of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RulePlaces {
    /// Those that policies of the API server enforce, also while no controller runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<String>,
    /// Those that the webhook enforces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhook: Vec<String>,
    /// Those that only reconcile passes apply. `ork validate --explain-admission` gives the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<String>,
    /// Those that nothing applies: they need data of the request, and neither a policy nor a webhook enforces them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nowhere: Vec<String>,
}

impl KatalogStatus {
    /// True if policies of the API server enforce rules.
    pub fn had_policies(&self) -> bool {
        let mut rules = self.operators.iter().filter_map(|row| row.rules.as_ref());
        rules.any(|rules| !rules.policy.is_empty())
    }
}

/// Custom resources that were ready under an earlier revision and fail under the one in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingInstances {
    /// The number of them.
    pub count: i64,
    /// The number of custom resources that a revision has made ready.
    #[serde(default)]
    pub of: i64,
    /// The most frequent reason, as in the condition `Ready` of the custom resources.
    #[serde(default)]
    pub reason: String,
    /// The first of them, as `namespace/name`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// The observed state of a source of a composition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// The source's identity, as in `komposer.lock`.
    pub source: String,
    /// The URL that the source was fetched from, without credentials.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The revision in use: a tag, `branch@commit` or a version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The digest of the revision in use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The verified signer, if a signature was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// The reason why a newer revision, or any revision, is not in use. Empty if the newest is in use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A kind that is operated until it is released.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct OperatedKind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural name in paths.
    pub plural: String,
    /// The version that is read and written.
    pub version: String,
    /// Kinds of the children that accepted revisions declared, as `kind.group`. Inventory annotations are checked against
    /// them. Absent if it was written by a release that did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<String>>,
    /// Keys of the labels that accepted revisions put on the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Keys of the annotations that accepted revisions put on the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<String>,
    /// Finalizers of other controllers that accepted revisions put on the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Namespaces of the resources, where all accepted revisions fix them. Absent: all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Namespaces of the children by kind, as `kind.group`, where all accepted revisions fix them. Children of a kind that is not
    /// listed may be in all namespaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub child_namespaces: BTreeMap<String, Vec<String>>,
    // In names, `*` matches any text; `(created)` stands for the namespaces that a resource created. Absent if a release that did
    // not record the field wrote the status.
    /// Namespaces of children outside that of their resource, as patterns by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_targets: Option<BTreeMap<String, Vec<String>>>,
}
