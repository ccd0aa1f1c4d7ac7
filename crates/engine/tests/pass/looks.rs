//! Projections: a record of the projected fields equals the record of the whole object.

use orkestra_engine::reconcile::{
    crd::CrdRecord,
    field_holders,
    observe::ObservedRecord,
    record::{ChildRecord, CrRecord, Identity, Malformed},
    related::Related,
};
use orkestra_object::value::{Node, Path, Projection, set};
use orkestra_plan::GroupKind;
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

/// Fields that records read, neighbouring fields, and fields that no record reads.
const FIELDS: [&str; 47] = [
    "metadata.namespace",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.finalizers",
    "metadata.labels",
    r#"metadata.labels["orkestra.orkspace.io/managed"]"#,
    r#"metadata.labels["orkestra.orkspace.io/owner-uid"]"#,
    r#"metadata.labels["app.kubernetes.io/instance"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/applied"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/child"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/owner"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/adopted"]"#,
    r#"metadata.annotations["argocd.argoproj.io/tracking-id"]"#,
    r#"metadata.labels["kustomize.toolkit.fluxcd.io/name"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/inventory"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/reconcile"]"#,
    r#"metadata.annotations["orkestra.orkspace.io/skip-on-delete"]"#,
    r#"metadata.annotations["argocd.argoproj.io/x"]"#,
    "metadata.annotations.other",
    "metadata.ownerReferences",
    "metadata.managedFields",
    "metadata.managedFields[1]",
    "spec",
    "spec.replicas",
    "spec.type",
    "spec.a",
    "spec.a.b",
    "spec.a[1].b",
    "spec.group",
    "spec.scope",
    "spec.names.kind",
    "spec.names.plural",
    "spec.versions",
    "status.observedGeneration",
    "status.replicas",
    "status.updatedReplicas",
    "status.readyReplicas",
    "status.availableReplicas",
    "status.desiredNumberScheduled",
    "status.updatedNumberScheduled",
    "status.numberAvailable",
    "status.phase",
    "status.conditions",
    "status.loadBalancer.ingress",
    "data.secret",
    "kind",
];

const READ: [&str; 8] = [
    "spec.a",
    "spec.a.b",
    "spec.a[1].b",
    "spec.a.1",
    "status",
    "status.conditions[0].type",
    "metadata.labels",
    "metadata.managedFields",
];

const KINDS: [&str; 10] = [
    "Deployment.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "Job.batch",
    "Pod",
    "PersistentVolumeClaim",
    "Service",
    "ConfigMap",
    "Event",
    "Pond.example.org",
];

fn values() -> Vec<Value> {
    let entry = json!({
        "manager": "orkestra/ponds.example.org", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": { "f:data": { "f:a": {} }, "f:metadata": { "f:ownerReferences": { "k:{\"uid\":\"0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4d\"}": {} } } },
    });
    let argo = json!({
        "manager": "argocd-controller", "operation": "Update", "subresource": "status",
        "fieldsV1": { "f:metadata": { "f:labels": { "f:app.kubernetes.io/instance": {} } }, "f:spec": { "f:a": {} } },
    });
    let applier = json!({ "manager": "kubectl", "operation": "Apply", "fieldsV1": { "f:spec": { "f:a": { "f:b": {} } } } });
    let schema = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": { "spec": { "type": "object" }, "status": { "type": "object", "description": "d", "properties": { "a": { "type": "string" } } } },
    });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "deprecated": true, "subresources": { "status": {}, "scale": {} },
        "schema": { "openAPIV3Schema": schema },
    });
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(3),
        json!("text"),
        json!("true"),
        json!("east"),
        json!("Namespaced"),
        json!("Bound"),
        json!("LoadBalancer"),
        json!("2026-01-02T03:04:05Z"),
        json!("00112233445566778899aabbccddeeff"),
        json!("ConfigMap/pond"),
        json!("0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4d"),
        json!("ConfigMap,!Secret=east/a"),
        json!([]),
        json!({}),
        json!({ "a": { "b": 1 }, "managed": "true" }),
        json!(["orkestra.orkspace.io/cleanup", "orphan", 1]),
        json!([{ "uid": "u-1", "controller": true, "kind": "Pond", "name": "p", "apiVersion": "v1" }, { "uid": "u-2" }]),
        json!([{ "type": "Ready", "status": "False", "message": "why", "reason": "R" }]),
        json!([{ "type": "Established", "status": "True" }, { "type": "NamesAccepted", "status": "True" }]),
        json!([entry, argo, applier]),
        json!([applier, 1, entry]),
        json!([version, { "name": "v2" }, { "name": "v3", "schema": { "openAPIV3Schema": { "x-kubernetes-preserve-unknown-fields": true } } }]),
    ]
}

/// Generates an object with some of the fields. Rarely, a field that every object has is missing.
fn object() -> impl Strategy<Value = Node> {
    let field = (select(FIELDS.to_vec()), select(values()));
    let more = prop::collection::vec(field, 0..24);
    (more, prop::bool::weighted(0.95)).prop_map(|(more, is_whole)| {
        let mut object = Node::from(&json!({ "apiVersion": "v1" }));
        for (path, value) in more {
            set(&mut object, &Path::parse(path).unwrap(), Node::from(&value));
        }
        if is_whole {
            for (path, value) in [("name", "pond"), ("uid", "u-9"), ("resourceVersion", "7")] {
                let path = Path::parse(&format!("metadata.{path}")).unwrap();
                set(&mut object, &path, Node::from(value));
            }
        }
        object
    })
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    let path = (select(READ.to_vec()), any::<bool>()).prop_map(|(text, is_asked)| {
        let path = Path::parse(text).unwrap();
        if is_asked {
            field_holders::request_path(&path)
        } else {
            path
        }
    });
    prop::collection::vec(path, 0..4)
}

fn same<R: std::fmt::Debug + PartialEq>(
    object: &Node,
    projection: &Projection,
    read: impl Fn(&Node) -> Result<R, Malformed>,
) -> Result<(), TestCaseError> {
    let text = serde_json::to_vec(object).unwrap();
    let sieved = projection.read(&text).unwrap();
    prop_assert_eq!(read(&sieved), read(object));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_record_of_what_is_looked_at_is_that_of_the_whole(object in object(), paths in paths(), kind in select(KINDS.to_vec())) {
        let kind = GroupKind::parse(kind);
        same(&object, &CrRecord::projection(&paths), |node| CrRecord::read(node, &paths))?;
        same(&object, &ChildRecord::projection(&paths), |node| ChildRecord::read(&kind, node, &paths))?;
        same(&object, &Related::projection(), |node| Related::read(&kind, node))?;
        same(&object, &ObservedRecord::projection(), |node| ObservedRecord::read(node, &paths))?;
        same(&object, &CrdRecord::projection(), CrdRecord::read)?;
        same(&object, &Identity::projection(), Identity::read)?;
    }
}

#[test]
fn nothing_of_a_secret_is_looked_at_unless_it_is_read() {
    let secret = json!({
        "metadata": { "name": "s", "uid": "u", "resourceVersion": "1" },
        "data": { "password": "aHVudGVyMg==", "user": "YQ==" },
    });
    let look = |paths: &[Path]| {
        let sieved = ChildRecord::projection(paths).read(secret.to_string().as_bytes());
        sieved.unwrap().to_json()
    };
    assert_eq!(look(&[]).get("data"), None);
    assert_eq!(
        look(&[Path::parse("data.user").unwrap()])["data"],
        json!({ "user": "YQ==" })
    );
}
