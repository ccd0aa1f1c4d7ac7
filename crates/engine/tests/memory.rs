//! The memory of records, counted at the allocator: `cargo test -p orkestra-engine --test memory -- --nocapture` prints it.
//!
//! A separate binary with a single test, so that no other test allocates memory at the same time.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "a fixture that cannot be read is a fault of the test; no count reaches the sign bit"
)]

use std::{alloc::System, fs, path::Path as File, sync::Arc};

use orkestra_engine::reconcile::record::{ChildRecord, CrRecord};
use orkestra_object::value::Path;
use orkestra_plan::GroupKind;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of custom resources, each with a child of each kind.
const COUNT: usize = 1000;
/// The limit for the bytes of a child's record, with its name and its share of data that siblings share.
const MOST_A_CHILD: usize = 275;
/// The limit for the bytes of a custom resource's record whose spec and status are read as a whole.
const MOST_A_CR: usize = 1300;

fn live() -> isize {
    let stats = ALLOCATOR.stats();
    // Both counts already include the growth and shrinkage of reallocations.
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

fn uid(number: usize) -> String {
    format!("0f6a3c52-8a5e-4a0e-9d6e-{number:012x}")
}

/// Returns the bytes for each created value, while all of them exist.
fn bytes_each<R>(make: impl Fn(usize) -> R) -> usize {
    let mut all: Vec<Arc<R>> = Vec::with_capacity(COUNT);
    // Allocate data that all values share before the measurement.
    let first = make(COUNT);
    let before = live();
    all.extend((0..COUNT).map(|number| Arc::new(make(number))));
    let took = live() - before;
    drop((all, first));
    usize::try_from(took).unwrap() / COUNT
}

/// Returns an object in the form of a genuine API server, owned by the custom resource with this number.
fn child(file: &str, number: usize) -> String {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/pass/genuine");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let case: Value = serde_json::from_str(&text).unwrap();
    let mut object = case["sent"].clone();
    let manager = "orkestra/ponds.water.example";
    object["metadata"]["managedFields"] = json!([
        { "manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": case["applied"] },
        { "manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": { "f:status": { "f:replicas": {} } } },
    ]);
    let ready = json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2 });
    object["status"] = ready;
    object["spec"]["replicas"] = json!(2);
    object["metadata"]["generation"] = json!(1);
    object["metadata"]["uid"] = json!(uid(number + 1_000_000));
    object["metadata"]["resourceVersion"] = json!(number.to_string());
    object["metadata"]["creationTimestamp"] = json!("2026-01-02T03:04:05Z");
    let owner = "0f6a3c52-8a5e-4a0e-9d6e-2b7c1d9e4f10";
    let text = object.to_string().replace(owner, &uid(number));
    text.replace("pond", &format!("pond-{number:04}"))
        .replace(&format!("pond-{number:04}s.water"), "ponds.water")
}

fn cr(number: usize) -> String {
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "ReconcileSucceeded", "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-02T03:04:05Z" });
    json!({
        "apiVersion": "water.example/v1", "kind": "Pond",
        "metadata": {
            "namespace": "east", "name": format!("pond-{number:04}"), "uid": uid(number), "resourceVersion": number.to_string(), "generation": 1,
            "finalizers": ["orkestra.orkspace.io/cleanup"],
            "labels": { "orkestra.orkspace.io/managed": "true" },
            "annotations": { "orkestra.orkspace.io/inventory": "ConfigMap,Deployment.apps,Secret,Service" },
        },
        "spec": { "image": "nginx:1.27", "replicas": 2, "host": format!("pond-{number:04}.water.example"), "depth": { "min": 1, "max": 3 } },
        "status": { "observedGeneration": 1, "phase": "Running", "conditions": [condition("Ready"), condition("Available")] },
    })
    .to_string()
}

#[test]
fn records_are_as_small_as_they_are_said_to_be() {
    let files = [
        ("Deployment.apps", "deployment-pond.json"),
        ("Service", "service-pond.json"),
        ("ConfigMap", "configmap-pond-config.json"),
        ("Secret", "secret-pond-secret.json"),
    ];
    let mut table = Vec::new();
    for (kind, file) in files {
        let group_kind = GroupKind::parse(kind);
        let projection = ChildRecord::projection(&[]);
        let read = |number| {
            let node = projection.read(child(file, number).as_bytes()).unwrap();
            ChildRecord::read(&group_kind, &node, &[]).unwrap()
        };
        assert!(read(1).owner().is_some_and(|owner| *owner == *uid(1)));
        assert!(
            Arc::ptr_eq(&read(1).ownership, &read(2).ownership),
            "{kind}"
        );
        table.push((kind, bytes_each(read), MOST_A_CHILD));
    }
    let paths = ["spec", "status", "metadata.name"].map(|path| Path::parse(path).unwrap());
    let projection = CrRecord::projection(&paths);
    let read = |number| {
        let node = projection.read(cr(number).as_bytes()).unwrap();
        CrRecord::read(&node, &paths).unwrap()
    };
    table.push(("custom resource", bytes_each(read), MOST_A_CR));
    for (kind, bytes, most) in table {
        println!("{kind:>16}: {bytes} bytes, at most {most}");
        assert!(bytes <= most, "{kind}: {bytes} bytes");
    }
}
