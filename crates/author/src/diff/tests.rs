//! The output of differences.

use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::{Change, merged, print, unified};

fn change(before: Option<Value>, after: Option<Value>) -> Change {
    Change {
        object: "ConfigMap shop/web".to_owned(),
        before,
        after,
        conflict: None,
    }
}

#[test]
fn a_change_is_a_unified_diff_with_the_object_in_its_head() {
    let map = |size: u8| json!({ "kind": "ConfigMap", "data": { "size": size } });
    let text = unified(&[
        change(Some(map(1)), Some(map(2))),
        change(None, Some(map(1))),
        change(Some(map(1)), None),
    ])
    .unwrap();
    for part in [
        "--- ConfigMap shop/web\n+++ ConfigMap shop/web\n@@ ",
        "-  size: 1\n+  size: 2\n",
        "--- /dev/null\n+++ ConfigMap shop/web\n",
        "--- ConfigMap shop/web\n+++ /dev/null\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn fields_that_the_server_sets_are_not_compared() {
    let object = json!({
        "metadata": {
            "name": "web", "uid": "u", "resourceVersion": "7", "managedFields": [],
            "annotations": { "orkestra.orkspace.io/applied": "h" },
        },
        "status": { "ready": 1 },
    });
    assert_eq!(
        print::cleaned(&object),
        json!({ "metadata": { "name": "web" } })
    );
}

#[test]
fn values_of_secrets_are_hidden_on_both_sides() {
    let mut before = json!({ "data": { "same": "YQ==", "other": "YQ==", "gone": "YQ==" } });
    let mut after = json!({ "data": { "same": "YQ==", "other": "Yg==", "new": "Yg==" } });
    print::mask_secret(Some(&mut before), Some(&mut after));
    assert_eq!(
        before["data"],
        json!({ "same": "***", "other": "*** (before)", "gone": "***" })
    );
    assert_eq!(
        after["data"],
        json!({ "same": "***", "other": "*** (after)", "new": "***" })
    );
    let hidden = json!({ "data": { "url": "***", "list": ["a", "***"] }, "kind": "ConfigMap" });
    let mut before = json!({ "data": { "url": "one", "list": ["a", "s"] }, "kind": "ConfigMap" });
    let mut after = json!({ "data": { "url": "two", "list": ["a", "s"] }, "kind": "ConfigMap" });
    print::mask(
        &Node::from(&hidden),
        "***",
        Some(&mut before),
        Some(&mut after),
    );
    assert_eq!(
        before["data"],
        json!({ "url": "*** (before)", "list": ["a", "***"] })
    );
    assert_eq!(
        after["data"],
        json!({ "url": "*** (after)", "list": ["a", "***"] })
    );
}

#[test]
fn a_file_replaces_the_live_spec_and_adds_to_the_live_metadata() {
    let live = json!({
        "metadata": { "name": "web", "uid": "u", "annotations": { "inventory": "i", "note": "old" } },
        "spec": { "size": 1, "gone": true },
        "status": { "ready": 1 },
    });
    let file = json!({
        "metadata": { "name": "web", "annotations": { "note": "new" } },
        "spec": { "size": 2 },
    });
    let merged = merged(&Node::from(&live), &Node::from(&file)).to_json();
    assert_eq!(merged["metadata"]["uid"], "u");
    assert_eq!(
        merged["metadata"]["annotations"],
        json!({ "inventory": "i", "note": "new" })
    );
    assert_eq!(merged["spec"], json!({ "size": 2 }));
    assert_eq!(merged["status"]["ready"], 1);
}

#[test]
fn the_namespace_of_the_katalog_is_that_of_the_cluster() {
    let object = |katalog: &str| json!({ "metadata": { "labels": { "orkestra.orkspace.io/katalog": katalog } } });
    for (live, file, kept) in [
        ("shop.web", "default.web", "shop.web"),
        ("shop.other", "default.web", "default.web"),
        ("odd", "default.odd", "default.odd"),
    ] {
        let mut after = object(file);
        print::keep_katalog(&object(live), &mut after);
        assert_eq!(after, object(kept));
    }
    let mut after = json!({ "metadata": {} });
    print::keep_katalog(&json!({}), &mut after);
    assert_eq!(after, json!({ "metadata": {} }));
}
