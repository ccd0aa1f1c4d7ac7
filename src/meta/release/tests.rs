use super::*;

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
        assert_eq!(is_operated(&object), operated, "{object:?}");
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
