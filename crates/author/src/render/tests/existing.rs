//! Rendering of a custom resource that has a status, and with existing objects.

use serde_json::Value;

use super::{
    super::{RenderRequest, render, to_yaml},
    ALL, Desk, KATALOG, find, objects, pond,
};

#[tokio::test]
async fn the_status_to_assume_is_a_whole_object_or_a_status() {
    let desk = Desk::new(&pond(""));
    for text in ["fish: eel\n", "status: { fish: eel }\n"] {
        let mut request = desk.request();
        request.status = Some(desk.write("status.yaml", text));
        let found = objects(&render(&request).await);
        assert_eq!(find(&found, "ConfigMap", "north")["data"]["was"], "eel");
    }
    let two = format!("{}---\n{}", pond(""), pond("-2"));
    desk.write("cr.yaml", &two);
    let mut request = desk.request();
    assert_eq!(render(&request).await.passes.len(), 2);
    request.status = Some(desk.write("status.yaml", "fish: eel\n"));
    let rendered = render(&request).await;
    assert!(rendered.problems.has_errors() && rendered.passes.is_empty());
}

#[tokio::test]
async fn a_certificate_that_kubectl_shows_stays_until_it_is_for_something_else() {
    let desk = Desk::new(&pond(""));
    let secret = "secrets:\n            - name: tls\n              tls: { dnsNames: [HOST] }\n            - name:";
    let katalog = |host: &str| {
        KATALOG.replace(
            "secrets:\n            - name:",
            &secret.replace("HOST", host),
        )
    };
    desk.write("k.yaml", &katalog("north.example"));
    let made = objects(&render(&desk.request()).await);
    let mut made = find(&made, "Secret", "tls").clone();
    made["data"]["tls.crt"] = "YSBjZXJ0aWZpY2F0ZQ==".into();
    let mut request = desk.request();
    request.children = vec![desk.write("tls.json", &made.to_string())];
    let is_there = |rendered: &[Value]| rendered.iter().any(|one| one["metadata"]["name"] == "tls");
    assert!(!is_there(&objects(&render(&request).await)));
    desk.write("k.yaml", &katalog("south.example"));
    assert!(is_there(&objects(&render(&request).await)));
}

#[tokio::test]
async fn live_children_are_seen_and_what_was_made_once_is_not_made_again() {
    let desk = Desk::new(&pond(""));
    let live = "apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: Secret, metadata: { name: north-key, namespace: default } }
  - { apiVersion: v1, kind: ConfigMap, metadata: { name: old, namespace: default, ownerReferences: [{ controller: true, apiVersion: water.example/v1, kind: Pond, name: north, uid: x }] } }
";
    let mut request = desk.request();
    request.children = vec![desk.write("live.yaml", live)];
    let rendered = render(&request).await;
    let yaml = to_yaml(&rendered.passes, ALL).unwrap();
    assert!(
        yaml.contains("it is created once, and already was\n"),
        "{yaml}"
    );
    assert!(
        yaml.contains("# deleted: ConfigMap default/old\n"),
        "{yaml}"
    );
    assert!(
        !objects(&rendered)
            .iter()
            .any(|object| object["kind"] == "Secret")
    );
}

#[tokio::test]
async fn an_object_that_is_not_a_child_is_never_deleted() {
    let desk = Desk::new(&pond(""));
    let deletes = async |cr: &str, metadata: &str| {
        let live = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: old, namespace: default{metadata} }}\n"
        );
        desk.write("cr.yaml", cr);
        let request = RenderRequest {
            children: vec![desk.write("live.yaml", &live)],
            ..desk.request()
        };
        let yaml = to_yaml(&render(&request).await.passes, ALL).unwrap();
        yaml.contains("# deleted: ConfigMap default/old\n")
    };
    let reference = |owner: &str| format!(", ownerReferences: [{{ controller: true, {owner} }}]");
    let north = "apiVersion: water.example/v1, kind: Pond, name: north, uid: mine";
    let annotation = |owner: &str| {
        format!(
            ", annotations: {{ orkestra.orkspace.io/owner: Pond.water.example/default/{owner} }}"
        )
    };
    let mark = ", annotations: { orkestra.orkspace.io/child: ConfigMap/old }";
    let label = |uid: &str| format!(", labels: {{ orkestra.orkspace.io/owner-uid: {uid} }}");
    let (without, with) = (pond(""), pond(", uid: mine"));
    for (cr, metadata, expected) in [
        // An object that templates only read has no mark of a child.
        (&without, String::new(), false),
        (&with, String::new(), false),
        (&without, reference(north), true),
        (&with, reference(north), true),
        (&without, reference(&north.replace("north", "south")), false),
        (&without, reference(&north.replace("Pond", "Lake")), false),
        (&with, reference(&north.replace("mine", "other")), false),
        (&without, annotation("north/x"), true),
        (&without, annotation("south/x"), false),
        (&with, annotation("north/mine"), true),
        (&with, annotation("north/other"), false),
        (&with, label("mine"), true),
        (&with, label("other"), false),
        (&without, mark.to_owned(), true),
    ] {
        assert_eq!(deletes(cr, &metadata).await, expected, "{cr}{metadata}");
    }
}

#[tokio::test]
async fn an_unmarked_child_of_a_declared_name_is_seen_and_deleted_where_its_gate_is_closed() {
    let desk = Desk::new(&pond(""));
    let live =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: north-deep, namespace: default }\n";
    let mut request = desk.request();
    request.children = vec![desk.write("live.yaml", live)];
    let yaml = to_yaml(&render(&request).await.passes, ALL).unwrap();
    assert!(
        yaml.contains("# deleted: ConfigMap default/north-deep\n"),
        "{yaml}"
    );
}
