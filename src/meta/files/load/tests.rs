use serde_json::json;

use super::*;

#[test]
fn a_katalog_in_the_cluster_claims_what_it_declares_and_not_what_is_disabled() {
    let object = json!({ "spec": { "crds": {
        "pond": { "apiTypes": { "group": "water.example", "kind": "Pond" } },
        "lake": { "enabled": false, "apiTypes": { "group": "water.example", "kind": "Lake" } },
        "odd": { "apiTypes": 7 },
    }}});
    assert_eq!(
        declared(&object),
        [("water.example".to_owned(), "Pond".to_owned())]
    );
}
