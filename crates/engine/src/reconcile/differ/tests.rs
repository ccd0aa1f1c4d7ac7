use super::*;
use orkestra_plan::GroupKind;

const MANAGER: &str = "orkestra/websites.demo.orkestra.io";
const HASH: &str = "00112233445566778899aabbccddeeff";

fn node(text: &str) -> Node {
    serde_json::from_str(text).unwrap()
}

fn live(applied: &str, entries: &str) -> ChildRecord {
    let object = format!(
        r#"{{"metadata":{{"name":"web","namespace":"shop","uid":"c-1","resourceVersion":"7","annotations":{{"orkestra.orkspace.io/applied":"{applied}","orkestra.orkspace.io/child":"ConfigMap/web"}},"ownerReferences":[{{"controller":true,"uid":"u-1"}}],"managedFields":[{entries}]}}}}"#
    );
    ChildRecord::read(&GroupKind::parse("ConfigMap"), &node(&object), &[]).unwrap()
}

fn entry(manager: &str, operation: &str, fields: &str) -> String {
    format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{fields}}}"#)
}

const RENDERED: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":"1","b":"2"}}"#;

fn wanted(object: &Node) -> DesiredObject<'_> {
    DesiredObject {
        object,
        hash: HASH,
        take_held: false,
        whole_lists: &[],
    }
}

/// Compares [`RENDERED`] with a record; the API server refused no field.
fn compared(record: &ChildRecord, take_held: bool) -> Difference {
    let rendered = node(RENDERED);
    let wanted = DesiredObject {
        take_held,
        ..wanted(&rendered)
    };
    difference(&wanted, record, MANAGER, &[])
}

#[test]
fn an_object_whose_hash_and_fields_are_ours_needs_no_write() {
    let record = live(
        HASH,
        &entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{},"f:b":{}}}"#),
    );
    let found = compared(&record, false);
    assert!(!found.needs_write());
    assert!(record.is_ours(&"u-1".into(), MANAGER));
}

#[test]
fn a_field_that_somebody_updated_or_removed_is_drift() {
    let record = live(HASH, &entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{}}}"#));
    let found = compared(&record, false);
    assert!(!found.changed);
    assert_eq!(found.drift, [Path::parse("data.b").unwrap()]);
}

#[test]
fn a_field_that_another_manager_applied_is_held_and_not_drift() {
    let entries = [
        entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{}}}"#),
        entry("argocd", "Apply", r#"{"f:data":{"f:b":{}}}"#),
    ];
    let record = live(HASH, &entries.join(","));
    let found = compared(&record, false);
    assert!(!found.needs_write());
    assert_eq!(
        found.held,
        [HeldField {
            path: Path::parse("data.b").unwrap(),
            manager: "argocd".to_owned()
        }]
    );
    let taken = compared(&record, true);
    assert_eq!(taken.drift, [Path::parse("data.b").unwrap()]);
}

/// Compares `RENDERED` after the API server refused `fields`; `ours` are the fields of our manager, `theirs` those of Argo CD.
fn refused(fields: &[&str], ours: &str, theirs: &str, take_held: bool) -> Difference {
    let entries = [
        entry(MANAGER, "Apply", ours),
        entry("argocd", "Apply", theirs),
        entry("kubectl-edit", "Update", ours),
    ];
    let record = live("old", &entries.join(","));
    let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
    let rendered = node(RENDERED);
    let wanted = DesiredObject {
        take_held,
        ..wanted(&rendered)
    };
    difference(&wanted, &record, MANAGER, &fields)
}

#[test]
fn of_the_fields_that_another_applies_too_those_that_were_refused_are_held() {
    let both = r#"{"f:data":{"f:a":{},"f:b":{}}}"#;
    let found = refused(&[".data.b"], both, both, false);
    let held = HeldField {
        path: Path::parse("data.b").unwrap(),
        manager: "argocd".to_owned(),
    };
    assert_eq!(found.held, [held]);
    assert!(found.changed);
    let taken = refused(&[".data.b"], both, both, true);
    assert_eq!((taken.changed, &taken.held[..]), (true, &[][..]));
}

#[test]
fn a_refused_field_that_others_only_updated_is_not_held() {
    let (both, one) = (
        r#"{"f:data":{"f:a":{},"f:b":{}}}"#,
        r#"{"f:data":{"f:a":{}}}"#,
    );
    assert_eq!(refused(&[".data.b"], both, one, false).held, []);
}

#[test]
fn an_empty_list_is_another_s_where_they_apply_it_and_drift_only_where_it_is_owned_whole() {
    let rendered = node(r#"{"spec":{"rules":[{"args":[]}]}}"#);
    let found_of = |whole_lists: &[Path], operation: &str, theirs: &str, take_held: bool| {
        let record = live(HASH, &entry("other", operation, theirs));
        let wanted = DesiredObject {
            take_held,
            whole_lists,
            ..wanted(&rendered)
        };
        let found = difference(&wanted, &record, MANAGER, &[]);
        (found.held.len(), found.drift.len())
    };
    let found = |operation: &str, theirs: &str, take_held: bool| {
        found_of(&[], operation, theirs, take_held)
    };
    let atomic = r#"{"f:spec":{"f:rules":{"i:0":{"f:args":{}}}}}"#;
    // An apply does not own the path of the list itself; an update does.
    let keyed = |itself: &str| {
        let below = r#""k:{\"name\":\"a\"}":{".":{},"f:name":{}}"#;
        format!(r#"{{"f:spec":{{"f:rules":{{"i:0":{{"f:args":{{{itself}{below}}}}}}}}}}}"#)
    };
    let (applied, updated) = (keyed(""), keyed(r#"".":{},"#));
    let elsewhere = r#"{"f:spec":{"f:rules":{"i:1":{"f:args":{}}}}}"#;
    assert_eq!(found("Apply", atomic, false), (1, 0));
    assert_eq!(found("Apply", atomic, true), (0, 1));
    for (operation, fields) in [
        ("Apply", &*applied),
        ("Update", &*updated),
        ("Update", elsewhere),
    ] {
        assert_eq!(
            found(operation, fields, false),
            (0, 0),
            "{operation} {fields}"
        );
    }
    for (list, drifts) in [
        ("spec.rules.args", 1),
        ("spec.rules", 1),
        ("spec.args", 0),
        ("spec.rules.args.deeper", 0),
    ] {
        let whole = [Path::parse(list).unwrap()];
        assert_eq!(
            found_of(&whole, "Update", atomic, false),
            (0, drifts),
            "{list}"
        );
        assert_eq!(found_of(&whole, "Apply", atomic, false), (1, 0), "{list}");
    }
    let paths = [Path::parse("spec.rules[0].args").unwrap()];
    assert_eq!(without(&rendered, &paths), Node::Null);
}

#[test]
fn marks_of_ours_are_not_held_by_who_applies_them_too() {
    let marks =
        r#"{"f:metadata":{"f:annotations":{"f:orkestra.orkspace.io/applied":{},"f:n":{}}}}"#;
    let rendered =
        node(r#"{"metadata":{"annotations":{"orkestra.orkspace.io/applied":"new","n":"2"}}}"#);
    let entries = [
        entry(MANAGER, "Apply", marks),
        entry("argocd", "Apply", marks),
    ];
    let record = live("old", &entries.join(","));
    let fields = [
        ".metadata.annotations.orkestra.orkspace.io/applied".to_owned(),
        ".metadata.annotations.n".to_owned(),
    ];
    let found = difference(&wanted(&rendered), &record, MANAGER, &fields);
    let held: Vec<String> = found
        .held
        .iter()
        .map(|held| held.path.to_string())
        .collect();
    assert_eq!(held, ["metadata.annotations.n"]);
}

#[test]
fn what_is_rendered_from_other_input_is_changed() {
    let record = live(
        "old",
        &entry(MANAGER, "Apply", r#"{"f:data":{"f:a":{},"f:b":{}}}"#),
    );
    assert!(compared(&record, false).changed);
}

#[test]
fn a_leaf_is_taken_out_with_the_maps_that_it_leaves_empty() {
    let rendered = node(r#"{"data":{"a":"1"},"spec":{"x":{"y":1},"z":[{"n":1},{"n":2}]}}"#);
    let paths: Vec<Path> = ["data.a", "spec.x.y", "spec.z[1].n"]
        .iter()
        .map(|text| Path::parse(text).unwrap())
        .collect();
    assert_eq!(
        without(&rendered, &paths),
        node(r#"{"spec":{"z":[{"n":1}]}}"#)
    );
}
