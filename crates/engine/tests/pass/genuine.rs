//! The simulated API server agrees with a genuine one.
//!
//! Each file holds the object that was `sent` by server-side apply to a genuine API server (1.34), the fields that another client
//! then `patched`, and the operator's entry of `managedFields` after each write (`applied`, `kept`). `drift` is what the operator
//! must restore.

use std::{fs, path::Path};

use orkestra_engine::reconcile::{
    differ::{DesiredObject, difference},
    record::ChildRecord,
};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::GroupKind;
use serde_json::{Value, json};

use super::{
    leaves::{fields_v1, leaves},
    operator::MANAGER,
};

fn cases() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/pass/genuine");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
        .iter()
        .map(|file| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap())
        .collect()
}

#[test]
fn the_stand_in_owns_what_a_genuine_server_says_we_own() {
    for case in cases() {
        let sent = &case["sent"];
        assert_eq!(
            fields_v1(leaves(sent).keys()),
            case["applied"],
            "{} {}",
            sent["kind"],
            sent["metadata"]["name"]
        );
    }
}

/// Returns the drift that is found if the operator's entry is `fields`.
fn drift(sent: &Value, fields: &Value) -> Vec<String> {
    let mut live = sent.clone();
    live["metadata"]["uid"] = json!("c-1");
    live["metadata"]["resourceVersion"] = json!("7");
    live["metadata"]["managedFields"] =
        json!([{ "manager": MANAGER, "operation": "Apply", "fieldsV1": fields }]);
    let kind = sent["kind"].as_str().unwrap();
    let record = ChildRecord::read(&GroupKind::parse(kind), &Node::from(&live), &[]).unwrap();
    let hash = sent["metadata"]["annotations"][names::ANNOTATION_APPLIED]
        .as_str()
        .unwrap();
    assert!(record.has_applied(hash));
    let wanted = DesiredObject {
        object: &Node::from(sent),
        hash,
        take_held: false,
        whole_lists: &[],
    };
    let found = difference(&wanted, &record, MANAGER, &[]);
    assert!(!found.changed && found.held.is_empty());
    found.drift.iter().map(ToString::to_string).collect()
}

#[test]
fn what_a_genuine_server_applied_needs_no_write_and_what_it_took_away_does() {
    for case in cases() {
        let sent = &case["sent"];
        assert_eq!(
            drift(sent, &case["applied"]),
            Vec::<String>::new(),
            "{} {}",
            sent["kind"],
            sent["metadata"]["name"]
        );
        let mut found: Vec<Value> = drift(sent, &case["kept"])
            .into_iter()
            .map(Value::from)
            .collect();
        found.sort_by_key(Value::to_string);
        assert_eq!(
            json!(found),
            case["drift"],
            "{} {}",
            sent["kind"],
            sent["metadata"]["name"]
        );
    }
}
