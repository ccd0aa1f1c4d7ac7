//! The operators of a Katalog or Komposer, and their custom resources.

use orkestra_cluster::requests::Served;
use orkestra_engine::reconcile::{kstatus, record::CrRecord};
use orkestra_language::api::{KatalogStatus, OperatorStatus};
use orkestra_object::{
    GroupKind, ObjectKey,
    value::{Node, Path, Projection},
};
use orkestra_plan::kinds::is_built_in_group;

use super::{TreeNode, Walk};
use crate::inspect::{Health, HealthStatus, ObjectRef, Reader, list::declaring, reader::Wanted};

/// The most custom resources of an operator.
const INSTANCES: usize = 200;
/// The most Katalogs or Komposers.
const KATALOGS: usize = 10_000;
/// The kind of a node that stands for an operator: an entry of a Katalog.
pub(crate) const OPERATOR: &str = "Operator";

impl Walk<'_> {
    /// Returns the operators that the status of a Katalog or Komposer reports, with their custom resources.
    pub(super) async fn operators(&mut self, kind: &Served, katalog: &Node) -> Vec<TreeNode> {
        let mut nodes = Vec::new();
        let namespace = katalog.meta_text("namespace");
        for row in status_of(katalog).operators {
            let mut node = TreeNode {
                object: ObjectRef {
                    api_version: kind.api_version(),
                    kind: OPERATOR.to_owned(),
                    namespace: namespace.map(str::to_owned),
                    name: row.name.clone(),
                    uid: None,
                },
                created: None,
                health: health_of(&row),
                children: Vec::new(),
            };
            let of = GroupKind {
                group: row.group.as_str().into(),
                kind: row.kind.as_str().into(),
            };
            if let Some(served) = self.reader.kinds.of(&of) {
                node.children = self.instances(served, namespace).await;
            }
            nodes.push(node);
        }
        nodes
    }

    /// Returns the custom resources of a kind, without anything below them.
    async fn instances(&mut self, kind: &Served, near: Option<&str>) -> Vec<TreeNode> {
        let projection = instance_projection(&[]);
        let wanted = Wanted {
            kind,
            selector: None,
            fields: None,
            projection: &projection,
            keep: &|object| is_instance(kind, object),
            most: INSTANCES,
        };
        let (found, missing) = self.reader.list_widely(wanted, near).await;
        self.missing.extend(missing);
        let mut items = found.items;
        items.sort_by_cached_key(ObjectKey::of);
        let mut nodes = Vec::new();
        for object in &items {
            let node = TreeNode::of(kind, object);
            if self.admits(node.object.uid.as_deref().unwrap_or_default()) {
                nodes.push(node);
            }
        }
        nodes
    }
}

/// Returns the Katalogs and Komposers that operate a kind, as far as the caller may read them, with the row of the operator.
pub(crate) async fn operators_of(
    reader: &Reader,
    kind: &GroupKind,
    near: Option<&str>,
) -> Vec<(ObjectRef, OperatorStatus)> {
    let metadata = ["name", "namespace", "uid"].map(|field| Path::of_fields(["metadata", field]));
    let paths = metadata.into_iter().chain([Path::of_fields(["status"])]);
    let projection = Projection::new(&paths.collect::<Vec<_>>());
    let mut operators = Vec::new();
    for own in declaring() {
        let wanted = Wanted {
            kind: &own,
            selector: None,
            fields: None,
            projection: &projection,
            keep: &|_| true,
            most: KATALOGS,
        };
        let near = near.unwrap_or_else(|| reader.cluster.default_namespace());
        let (found, _) = reader.list_widely(wanted, Some(near)).await;
        for katalog in &found.items {
            let rows = status_of(katalog).operators.into_iter();
            let rows = rows.filter(|row| row.group == *kind.group && row.kind == *kind.kind);
            operators.extend(rows.map(|row| (ObjectRef::of(&own, katalog), row)));
        }
    }
    operators
}

/// Returns the status of a Katalog or Komposer; the default if it has none, or one that cannot be read.
pub(crate) fn status_of(katalog: &Node) -> KatalogStatus {
    let status = katalog.get("status").map(Node::to_json);
    let status = status.map(serde_json::from_value::<KatalogStatus>);
    status.and_then(Result::ok).unwrap_or_default()
}

/// True if the object is a custom resource of an operator. Of a built-in kind, most objects are not.
pub(crate) fn is_instance(kind: &Served, object: &Node) -> bool {
    let built_in = is_built_in_group(&kind.group);
    !built_in
        || CrRecord::read(object, &[]).is_ok_and(|record| record.marks().is_operated(built_in))
}

/// The fields that are read of a custom resource: those of its marks and its health, and `more`.
pub(crate) fn instance_projection(more: &[Path]) -> Projection {
    let mut paths: Vec<Path> = kstatus::read_paths().collect();
    paths.extend_from_slice(more);
    CrRecord::projection(&paths)
}

/// The health of an operator, by the state that the controller reports.
fn health_of(row: &OperatorStatus) -> Health {
    let status = match &*row.state {
        "Running" | "Disabled" => HealthStatus::Current,
        "Degraded" | "Stopped" => HealthStatus::Failed,
        "Deleting" => HealthStatus::Terminating,
        _ => HealthStatus::InProgress,
    };
    let said = [&row.state, &row.reason, &row.message];
    let said = said
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty());
    let message = said.collect::<Vec<_>>().join(": ");
    Health {
        status,
        message: (status != HealthStatus::Current && !message.is_empty()).then_some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_an_operator_is_its_health() {
        let row = |state: &str| OperatorStatus {
            state: state.to_owned(),
            reason: "PassesFail".to_owned(),
            message: "3 of 3".to_owned(),
            ..OperatorStatus::default()
        };
        let health = health_of(&row("Degraded"));
        assert_eq!(health.status, HealthStatus::Failed);
        assert_eq!(
            health.message.as_deref(),
            Some("Degraded: PassesFail: 3 of 3")
        );
        assert_eq!(health_of(&row("Running")).message, None);
        assert_eq!(health_of(&row("Waiting")).status, HealthStatus::InProgress);
    }
}
