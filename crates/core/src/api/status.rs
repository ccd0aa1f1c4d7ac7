//! What Orkestra reports about a Katalog or a Komposer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditions::Condition;

/// What Orkestra reports about a Katalog or a Komposer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KatalogStatus {
    /// The generation of the spec that the rest of the status is about; -1 until one was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` always; `Reconciling` and `Stalled` only while they are true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
    /// Operators that run, of those declared: `2/2`.
    pub ready: String,
    /// Custom resources of all operators.
    pub instances: i64,
    /// The revision that is in force: what it declares runs. The first one is named here as soon as it is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The newest accepted revision, while an operator still runs an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted_revision: Option<String>,
    /// The value of the annotation `orkestra.orkspace.io/reconcile` or `reconcile.fluxcd.io/requestedAt` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// A row for each operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub operators: Vec<OperatorStatus>,
    /// A row for each source, in the order in which they are merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["source"]
    ))]
    pub sources: Vec<SourceStatus>,
    /// Kinds that are operated, or were and are not released yet: finalizers of ours may be on their
    /// resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["group", "kind"]
    ))]
    pub operated: Vec<OperatedKind>,
}

/// What Orkestra reports about one operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    /// The operator's name: its key in `spec.crds`.
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
    /// What the operator is doing: `Running`, `Updating` (an earlier revision runs while the new one waits), `Degraded`,
    /// `Waiting`, `Starting`, `Deleting`, `Suspended`, `Disabled` or `Stopped` (the entry cannot run, as `message` says).
    pub state: String,
    /// The revision that the operator runs; none while it runs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The revision that it is to run, while that is another one; `reason` and `message` say what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_revision: Option<String>,
    /// How many workers it has, without those that come and go with the queue.
    #[serde(default)]
    pub workers: u32,
    /// How many custom resources there are.
    #[serde(default)]
    pub instances: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready: i64,
    /// Why the state is what it is, as one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What Orkestra reports about one source of a composition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// The source's identity, as in `komposer.lock`.
    pub source: String,
    /// Where it was fetched from, without credentials.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The revision in use: a tag, `branch@commit` or a version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The digest of the revision in use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Who signed it, if a signature was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// Why a newer revision is not in use, or why there is none; empty if the newest is in use.
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
    /// Finalizers of others that accepted revisions put on the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Namespaces of the resources, where all accepted revisions fix them. Absent: all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Namespaces of the children by kind, as `kind.group`, where all accepted revisions fix them. Children of a kind that is not
    /// listed may be in all namespaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub child_namespaces: BTreeMap<String, Vec<String>>,
}
