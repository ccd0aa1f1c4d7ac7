use std::convert::Infallible;

use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use orkestra_plan::MetadataKey;
use serde_json::json;
use tower::service_fn;

use super::*;

/// The requests to a cluster: the path with its query, the `Accept` header of a read, and the body of a write.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// Returns a cluster with these ponds, one on each page of a list, and its requests.
fn cluster(ponds: Vec<Value>) -> (Cluster, Asked) {
    let (asked, ponds) = (Asked::default(), Arc::new(ponds));
    let seen = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Body>| {
        let (seen, ponds) = (Arc::clone(&seen), Arc::clone(&ponds));
        async move {
            let uri = request.uri().to_string();
            let accept = request.headers().get(header::ACCEPT);
            let accept = accept
                .map_or("", |accept| accept.to_str().unwrap())
                .to_owned();
            let is_read = *request.method() == Method::GET;
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            seen.lock().push((uri.clone(), accept, body));
            let at: usize = uri
                .split_once("continue=")
                .map_or(0, |(_, at)| at.parse().unwrap());
            let next = (at + 1 < ponds.len()).then(|| (at + 1).to_string());
            let page = json!({
                "kind": "PartialObjectMetadataList", "metadata": { "resourceVersion": "9", "continue": next },
                "items": [ponds[at]],
            });
            let answer = if is_read { page } else { json!({}) };
            Ok::<_, Infallible>(Response::new(Body::from(answer.to_string().into_bytes())))
        }
    });
    (Cluster::new(kube::Client::new(service, "default")), asked)
}

fn pond(name: &str, labels: &Value, finalizers: &Value) -> Value {
    json!({ "metadata": {
        "name": name, "namespace": "shop", "uid": format!("u-{name}"), "resourceVersion": "3",
        "labels": labels, "finalizers": finalizers,
        "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(1000) },
    } })
}

fn ponds() -> OperatedKind {
    OperatedKind {
        group: "water.example".to_owned(),
        kind: "Pond".to_owned(),
        plural: "ponds".to_owned(),
        version: "v1".to_owned(),
        ..OperatedKind::default()
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_metadata_of_resources_that_are_kept_is_remembered_of_any_number_of_pages() {
    let (label, none) = (json!({ names::LABEL_MANAGED: "true" }), json!([]));
    let (cluster, asked) = cluster(vec![
        pond("one", &json!({}), &none),
        pond("two", &label, &none),
        pond("three", &json!({}), &none),
    ]);
    let declared = DeclaredKinds {
        places: orkestra_plan::ObjectNamespaces::All,
        ..DeclaredKinds::default()
    };
    let is_kept = |meta: &ObjectMeta| is_operated(meta, false);
    let found = list(&cluster, &ponds(), &declared, &is_kept).await.unwrap();
    let (_, found) = found.unwrap();
    let names: Vec<Option<&str>> = found.iter().map(|meta| meta.name.as_deref()).collect();
    assert_eq!(names, [Some("two")]);
    let annotations = found[0].annotations.clone().unwrap_or_default();
    assert!(annotations.is_empty(), "{annotations:?}");
    let asked = asked.lock();
    let form = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for (page, (uri, accept, _)) in asked.iter().enumerate() {
        assert!(uri.contains("limit=500"), "{uri}");
        assert_eq!(uri.contains("continue="), page > 0, "{uri}");
        assert_eq!(accept, form);
    }
    assert_eq!(asked.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn children_of_another_operator_keep_their_label_in_a_release() {
    let own = json!({ names::LABEL_MANAGED: "true" });
    let child = json!({ names::LABEL_MANAGED: "true", names::LABEL_OWNER_UID: "u-lake" });
    let (none, held) = (json!([]), json!([names::FINALIZER]));
    let (cluster, asked) = cluster(vec![
        pond("of-a-lake", &child, &none),
        pond("operated", &child, &held),
        pond("own", &own, &none),
    ]);
    let progress = ReleaseProgress::default();
    let released = release_kind(&cluster, &ponds(), &progress).await.unwrap();
    assert_eq!(released.resources, 2);
    let asked = asked.lock();
    let patch = |name: &str| {
        let mut patches = asked
            .iter()
            .filter(|(uri, _, body)| !body.is_null() && uri.contains(&format!("/ponds/{name}?")));
        patches.next().map(|(_, _, body)| body["metadata"].clone())
    };
    assert_eq!(patch("of-a-lake"), None);
    let operated = patch("operated").unwrap();
    assert_eq!(
        (&operated["finalizers"], operated.get("labels")),
        (&json!([]), None)
    );
    let label = json!({ names::LABEL_MANAGED: null });
    assert_eq!(patch("own").unwrap()["labels"], label);
}

fn meta(value: Value) -> ObjectMeta {
    serde_json::from_value(value).unwrap()
}

#[test]
fn only_our_marks_are_taken_off_a_resource() {
    let declared = DeclaredKinds {
        labels: [
            MetadataKey::Label("example.org/tier".into()),
            MetadataKey::Annotation("example.org/note".into()),
        ]
        .into(),
        finalizers: ["example.org/put".into()].into(),
        ..DeclaredKinds::default()
    };
    let marked = meta(json!({
        "name": "one", "uid": "u1", "resourceVersion": "7",
        "finalizers": ["example.org/other", names::FINALIZER, "example.org/put"],
        "labels": { names::LABEL_MANAGED: "true", "app": "shop", "example.org/tier": "front" },
        "annotations": {
            names::ANNOTATION_INVENTORY: "ConfigMap,@example.org/tier,@app,^example.org/note,^note,+example.org/put,+example.org/other",
            "note": "mine", "example.org/note": "ours",
        },
    }));
    assert_eq!(
        unmark(&marked, &declared, Some(names::LABEL_MANAGED)).unwrap(),
        json!({ "metadata": {
            "uid": "u1", "resourceVersion": "7",
            "finalizers": ["example.org/other"],
            "labels": { names::LABEL_MANAGED: null, "example.org/tier": null },
            "annotations": { names::ANNOTATION_INVENTORY: null, "example.org/note": null },
        }})
    );
}

#[test]
fn a_resource_without_marks_needs_no_write() {
    assert_eq!(
        unmark(
            &meta(json!({ "name": "one", "finalizers": ["example.org/other"] })),
            &DeclaredKinds::default(),
            Some(names::LABEL_MANAGED),
        ),
        None
    );
}

#[test]
fn an_object_of_a_built_in_kind_was_operated_where_two_marks_or_the_finalizer_say_so() {
    let label = json!({ names::LABEL_MANAGED: "true" });
    let child = json!({ names::LABEL_MANAGED: "true", names::LABEL_OWNER_UID: "p1" });
    let list = json!({ names::ANNOTATION_INVENTORY: "ConfigMap" });
    let (held, none) = (json!([names::FINALIZER]), json!([]));
    for (labels, annotations, finalizers, operated) in [
        (&label, &list, &none, true),
        (&child, &list, &held, true),
        (&json!({}), &json!({}), &held, true),
        (&label, &json!({}), &none, false),
        (&json!({}), &list, &none, false),
        (&child, &list, &none, false),
    ] {
        let object = meta(
            json!({ "name": "one", "labels": labels, "annotations": annotations, "finalizers": finalizers }),
        );
        assert_eq!(is_operated(&object, true), operated, "{object:?}");
    }
}

#[test]
fn a_child_with_a_controller_keeps_its_labels() {
    let child = |owners: Value| {
        meta(json!({
            "name": "one", "uid": "u1", "resourceVersion": "7", "ownerReferences": owners,
            "labels": { names::LABEL_MANAGED: "true", names::LABEL_OWNER_UID: "p1" },
            "annotations": { names::ANNOTATION_CHILD: "ConfigMap/one" },
        }))
    };
    let kind = GroupKind::parse("ConfigMap");
    let owner =
        json!([{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "p1", "controller": true }]);
    assert_eq!(disown(&kind, &child(owner)), None);
    let patch = disown(&kind, &child(json!([]))).unwrap();
    assert_eq!(
        patch["metadata"]["labels"],
        json!({ names::LABEL_MANAGED: null, names::LABEL_OWNER_UID: null })
    );
}

#[test]
fn an_object_that_others_copied_our_labels_to_is_left_alone() {
    let copy = meta(json!({
        "name": "two", "labels": { names::LABEL_MANAGED: "true", names::LABEL_OWNER_UID: "p1" },
        "annotations": { names::ANNOTATION_CHILD: "ConfigMap/one" },
    }));
    assert_eq!(disown(&GroupKind::parse("ConfigMap"), &copy), None);
}

/// Returns a cluster that refuses to list ponds; the definition of ponds exists or not, and so does their API.
fn forbidding(is_defined: bool) -> Cluster {
    let service = service_fn(move |request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        let status = |code: u16, reason: &str, message: &str| {
            let body = json!({
                "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
            });
            (code, body)
        };
        let (code, body) = match &*path {
            "/apis/water.example" if is_defined => (
                200,
                json!({ "kind": "APIGroup", "name": "water.example", "versions": [
                    { "groupVersion": "water.example/v1", "version": "v1" },
                ], "preferredVersion": { "groupVersion": "water.example/v1", "version": "v1" } }),
            ),
            "/apis/water.example/v1" if is_defined => (
                200,
                json!({ "kind": "APIResourceList", "groupVersion": "water.example/v1", "resources": [
                    { "name": "ponds", "singularName": "pond", "namespaced": true, "kind": "Pond", "verbs": ["list"] },
                ] }),
            ),
            path if path.ends_with("/ponds") => status(
                403,
                "Forbidden",
                r#"ponds.water.example is forbidden: User "u" cannot list resource "ponds" in API group "water.example""#,
            ),
            path if path.ends_with("/customresourcedefinitions") => {
                let item = json!({ "metadata": { "name": "ponds.water.example", "resourceVersion": "1", "uid": "u" } });
                let items = if is_defined { vec![item] } else { Vec::new() };
                let list = json!({ "kind": "CustomResourceDefinitionList", "metadata": { "resourceVersion": "1" }, "items": items });
                (200, list)
            }
            _ => status(404, "NotFound", "not found"),
        };
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = code.try_into().unwrap();
        Ok::<_, Infallible>(response)
    });
    Cluster::new(kube::Client::new(service, "default"))
}

#[tokio::test]
async fn without_permission_a_kind_is_released_only_if_it_is_known_not_to_exist() {
    let progress = ReleaseProgress::default();
    let released = release_kind(&forbidding(false), &ponds(), &progress).await;
    assert_eq!(released.unwrap(), Released::default());
    let refused = release_kind(&forbidding(true), &ponds(), &progress).await;
    let Err(ReleaseError::Read(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.is_forbidden(), "{error}");
}
