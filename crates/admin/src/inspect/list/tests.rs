//! Lists from a scripted API server.

use orkestra_cluster::watch::testing::Server;
use serde_json::{Value, json};

use super::*;
use crate::{inspect::HealthStatus, operate::ServedKinds};

fn reader(server: &Server) -> Reader {
    let kinds = [
        own_kind("Katalog", "katalogs"),
        Served::namespaced("water.example", "v1", "Pond", "ponds"),
    ];
    Reader {
        cluster: server.cluster(),
        kinds: ServedKinds(kinds.to_vec()),
    }
}

fn request(subject: Subject) -> ListRequest {
    ListRequest {
        subject,
        namespace: Some("shop".to_owned()),
        names: Vec::new(),
        selector: None,
        fields: None,
        whole: false,
    }
}

fn items(items: &[Value]) -> String {
    json!({ "metadata": { "resourceVersion": "9" }, "items": items }).to_string()
}

fn katalog() -> Value {
    json!({
        "metadata": { "name": "waters", "namespace": "shop", "uid": "k1", "resourceVersion": "5",
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{ "manager": "kubectl" }] },
        "spec": { "crds": {} },
        "status": { "ready": "1/2", "instancesReady": "3/4",
            "conditions": [{ "type": "Ready", "status": "False", "reason": "Degraded", "message": "pond fails" }],
            "operators": [
                { "name": "pond", "group": "water.example", "version": "v1", "kind": "Pond", "state": "Degraded", "workers": 2,
                    "instances": 4, "ready": 3, "reason": "PassesFail" },
                { "name": "lake", "group": "water.example", "version": "v1", "kind": "Lake", "state": "Running" }
            ] }
    })
}

fn pond(name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": "6" },
        "spec": { "depth": 3 }, "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Reconciled" }] } })
}

/// Returns the cells of the columns that are not wide.
fn cells(subject: &Subject, document: &Value) -> Vec<String> {
    let shown = columns(subject).iter().filter(|column| !column.is_wide);
    let text = |content: Content| match content {
        Content::Text(text) | Content::State(text, _) => text,
        Content::Since(moment) => moment.to_string(),
    };
    shown
        .map(|column| text((column.content)(document)))
        .collect()
}

#[tokio::test]
async fn operators_are_the_rows_of_their_katalogs() {
    let server = Server::new();
    server.answer_at("/katalogs?", 200, items(&[katalog()]));
    server.answer_at("/komposers?", 200, items(&[]));
    let listing = list(&reader(&server), &request(Subject::Operators)).await;
    let rows: Vec<Vec<String>> = listing
        .items
        .iter()
        .map(|item| cells(&Subject::Operators, item))
        .collect();
    assert_eq!(
        rows,
        [
            [
                "shop",
                "katalog/waters",
                "lake",
                "Lake.water.example",
                "Running",
                "0",
                "0/0",
                ""
            ],
            [
                "shop",
                "katalog/waters",
                "pond",
                "Pond.water.example",
                "Degraded",
                "2",
                "3/4",
                "PassesFail"
            ],
        ]
    );
    let named = ListRequest {
        names: vec!["lake".to_owned()],
        ..request(Subject::Operators)
    };
    assert_eq!(list(&reader(&server), &named).await.items.len(), 1);
}

#[tokio::test]
async fn only_shown_fields_are_kept_unless_documents_are_whole() {
    let server = Server::new();
    server.answer_at("/katalogs?", 200, items(&[katalog()]));
    let listing = list(&reader(&server), &request(Subject::Katalogs)).await;
    assert_eq!(listing.items[0].get("spec"), None);
    let row = cells(&Subject::Katalogs, &listing.items[0]);
    assert_eq!(
        row,
        [
            "shop",
            "waters",
            "False",
            "Degraded",
            "1/2",
            "3/4",
            "2026-01-01T00:00:00Z"
        ]
    );
    let whole = ListRequest {
        whole: true,
        ..request(Subject::Katalogs)
    };
    let listing = list(&reader(&server), &whole).await;
    let item = &listing.items[0];
    assert_eq!(
        (&item["kind"], &item["spec"]),
        (&json!("Katalog"), &json!({ "crds": {} }))
    );
    assert_eq!(item["metadata"].get("managedFields"), None);
    // The row of a whole document is the same.
    assert_eq!(cells(&Subject::Katalogs, item), row);
}

#[tokio::test]
async fn instances_are_of_the_kinds_of_all_katalogs_and_a_refusal_is_reported() {
    let server = Server::new();
    server.answer_at("/katalogs?", 200, items(&[katalog()]));
    let refused = json!({ "kind": "Status", "reason": "Forbidden", "code": 403, "details": { "kind": "komposers" },
        "message": "komposers is forbidden: User \"clerk\" cannot list resource \"komposers\"" });
    server.answer_at("/komposers?", 403, refused.to_string());
    server.answer_at("/ponds?", 200, items(&[pond("north"), pond("east")]));
    let listing = list(&reader(&server), &request(Subject::Instances)).await;
    let rows: Vec<Vec<String>> = listing
        .items
        .iter()
        .map(|item| cells(&Subject::Instances, item))
        .collect();
    assert_eq!(
        rows,
        [
            ["shop", "Pond", "east", "Current", "Reconciled", "", ""],
            ["shop", "Pond", "north", "Current", "Reconciled", "", ""],
        ]
    );
    let lines: Vec<String> = listing
        .unavailable
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "not shown: komposers: missing permission: list komposers.orkestra.orkspace.io in namespace shop"
        ]
    );
    let requests = server.requests();
    let ponds = requests.iter().find(|one| one.uri.contains("/ponds?"));
    assert!(ponds.unwrap().uri.contains("/namespaces/shop/"));
}

#[tokio::test(start_paused = true)]
async fn a_followed_list_reports_what_exists_and_then_each_change() {
    let server = Server::new();
    server.answer_at("/ponds?", 200, items(&[pond("north")]));
    let feed = server.watch();
    let reader = reader(&server);
    let kind = Served::namespaced("water.example", "v1", "Pond", "ponds");
    let (mut follower, _) = Follower::start(&reader, request(Subject::Kind(Box::new(kind)))).await;
    follower.looked_at().await;
    let seen = |changes: Vec<Followed>| -> Vec<(ListChange, Value)> {
        let name = |one: Followed| (one.change, one.object["metadata"]["name"].clone());
        changes.into_iter().map(name).collect()
    };
    assert_eq!(
        seen(follower.drain()),
        [(ListChange::Added, json!("north"))]
    );
    let mut changed = pond("north");
    changed["metadata"]["resourceVersion"] = json!("10");
    changed["status"]["conditions"][0]["status"] = json!("False");
    feed.send("MODIFIED", &changed.to_string());
    assert_eq!(
        seen(follower.next().await),
        [(ListChange::Modified, json!("north"))]
    );
    feed.send("DELETED", &changed.to_string());
    assert_eq!(
        seen(follower.next().await),
        [(ListChange::Deleted, json!("north"))]
    );
    assert!(follower.problems().is_empty());
    // A state is printed with how it is to be taken.
    let health = columns(&Subject::Instances)[3];
    let content = (health.content)(&changed);
    assert_eq!(
        content,
        Content::State("InProgress".to_owned(), HealthStatus::InProgress)
    );
}
