//! Trees from a scripted API server.

use orkestra_cluster::{requests::Cluster, watch::testing::Server};
use serde_json::{Value, json};

use super::*;
use crate::{inspect::HealthStatus, operate::ServedKinds};

const MANAGER: &str = "orkestra/ponds.water.example";

fn reader(server: &Server) -> Reader {
    let kinds = [
        Served::namespaced("water.example", "v1", "Pond", "ponds"),
        Served::namespaced("apps", "v1", "Deployment", "deployments"),
        Served::namespaced("apps", "v1", "ReplicaSet", "replicasets"),
        Served::namespaced("", "v1", "ConfigMap", "configmaps"),
        Served::namespaced("", "v1", "Pod", "pods"),
    ];
    let cluster: Cluster = server.cluster();
    Reader {
        cluster,
        kinds: ServedKinds(kinds.to_vec()),
    }
}

fn pond() -> Value {
    json!({
        "apiVersion": "water.example/v1", "kind": "Pond",
        "metadata": { "name": "north", "namespace": "shop", "uid": "pond-1", "resourceVersion": "1",
            "annotations": { "orkestra.orkspace.io/inventory": "ConfigMap,Deployment.apps,Gone.example" } },
        "status": { "conditions": [{ "type": "Ready", "status": "False", "message": "waits" }] }
    })
}

/// A child with the marks of ours; `manager` wrote it.
fn child(kind: &str, name: &str, manager: &str, rest: &Value) -> Value {
    let mut object = json!({
        "metadata": { "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "2", "generation": 1,
            "labels": { "orkestra.orkspace.io/owner-uid": "pond-1" },
            "annotations": { "orkestra.orkspace.io/child": format!("{kind}/{name}") },
            "ownerReferences": [{ "uid": "pond-1", "controller": true }],
            "managedFields": [{ "manager": manager, "operation": "Apply", "fieldsV1": { "f:data": {} } }] }
    });
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn controlled(name: &str, owner: &str, status: &Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "3",
        "ownerReferences": [{ "uid": owner, "controller": true }] }, "status": status })
}

fn list(items: &[Value]) -> String {
    json!({ "metadata": { "resourceVersion": "9" }, "items": items }).to_string()
}

fn refused() -> String {
    json!({ "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "pods is forbidden: User \"clerk\" cannot list resource \"pods\" in API group \"\" in the namespace \"shop\"",
        "details": { "kind": "pods" } })
    .to_string()
}

async fn tree_of(server: &Server) -> Tree {
    let reader = reader(server);
    let (kind, key) = reader
        .kinds
        .find(&"pond/north".parse().unwrap(), "shop")
        .unwrap();
    tree(&reader, &kind, &key).await.unwrap()
}

#[tokio::test]
async fn children_are_proven_and_pods_are_those_of_the_replica_sets() {
    let server = Server::new();
    let deployment = json!({ "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "north" } } },
        "status": { "observedGeneration": 1, "updatedReplicas": 1, "replicas": 1 } });
    let waiting = json!({ "phase": "Pending", "containerStatuses": [{ "name": "db", "state": { "waiting": { "reason": "ErrImagePull" } } }] });
    server.answer_at("/ponds/north", 200, pond().to_string());
    let maps = [
        child("ConfigMap", "north-map", MANAGER, &json!({})),
        // Another client copied every mark.
        child("ConfigMap", "forged", "kubectl", &json!({})),
    ];
    server.answer_at("/configmaps?", 200, list(&maps));
    let deployments = [child("Deployment", "north", MANAGER, &deployment)];
    server.answer_at("/deployments?", 200, list(&deployments));
    let sets = [
        controlled("north-1", "uid-north", &json!({})),
        controlled("other-1", "uid-other", &json!({})),
    ];
    server.answer_at("/replicasets?", 200, list(&sets));
    let pods = [
        controlled("north-1-a", "uid-north-1", &waiting),
        controlled("other-1-a", "uid-other-1", &waiting),
    ];
    server.answer_at("/pods?", 200, list(&pods));
    let tree = tree_of(&server).await;
    let mut seen = Vec::new();
    tree.root.walk(&mut |node, depth| {
        let object = &node.object;
        seen.push(format!(
            "{depth} {} {} {}",
            object.kind,
            object.name,
            node.health.message.as_deref().unwrap_or_default()
        ));
    });
    assert_eq!(
        seen,
        [
            "0 Pond north waits",
            "1 ConfigMap north-map ",
            "1 Deployment north 0 of 1 replicas available",
            "2 Pod north-1-a container db: ErrImagePull",
        ]
    );
    assert_eq!(tree.unavailable, []);
    let requests = server.requests();
    let uris: Vec<&str> = requests.iter().map(|request| &*request.uri).collect();
    assert!(
        uris[1].contains("labelSelector=orkestra.orkspace.io%2Fowner-uid%3Dpond-1"),
        "{uris:?}"
    );
    assert!(
        uris.last()
            .unwrap()
            .starts_with("/api/v1/namespaces/shop/pods?"),
        "{uris:?}"
    );
}

#[tokio::test]
async fn a_refused_list_is_reported_with_the_permission_and_the_rest_is_shown() {
    let server = Server::new();
    server.answer(403, refused());
    server.answer_at("/ponds/north", 200, pond().to_string());
    let deployments = [child("Deployment", "north", MANAGER, &json!({}))];
    server.answer_at("/namespaces/shop/deployments", 200, list(&deployments));
    let tree = tree_of(&server).await;
    let lines: Vec<String> = tree.unavailable.iter().map(ToString::to_string).collect();
    let kinds: Vec<&str> = tree
        .root
        .children
        .iter()
        .map(|child| &*child.object.kind)
        .collect();
    assert_eq!(tree.root.health.status, HealthStatus::InProgress);
    assert_eq!(
        lines,
        [
            "not shown: configmaps: missing permission: list configmaps in namespace shop",
            "not shown: deployments outside namespace shop: missing permission: list deployments.apps in all namespaces",
            "not shown: replicasets: missing permission: list replicasets.apps in namespace shop",
        ]
    );
    assert_eq!(kinds, ["Deployment"]);
}

#[tokio::test]
async fn an_object_that_does_not_exist_is_an_error() {
    let server = Server::new();
    server.answer(
        404,
        json!({ "kind": "Status", "reason": "NotFound", "code": 404, "message": "ponds \"north\" not found",
            "details": { "name": "north", "kind": "ponds" } })
        .to_string(),
    );
    let reader = reader(&server);
    let (kind, key) = reader
        .kinds
        .find(&"pond/north".parse().unwrap(), "shop")
        .unwrap();
    let error = tree(&reader, &kind, &key).await.unwrap_err();
    assert!(!error.is_unreachable());
    assert!(
        error
            .to_string()
            .starts_with("cannot get Pond.water.example shop/north"),
        "{error}"
    );
}
