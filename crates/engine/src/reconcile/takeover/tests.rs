use serde_json::{Value, json};

use super::*;

const OURS: &str = "orkestra/websites.demo.orkestra.io";

#[expect(
    clippy::needless_pass_by_value,
    reason = "`json!` makes them where they are used"
)]
fn entry(manager: &str, operation: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`json!` makes them where they are used"
)]
fn object(spec: Value, managed: Value) -> Node {
    Node::from(&json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "managedFields": managed }, "spec": spec,
    }))
}

fn invalid(path: &str) -> RefusedField<'_> {
    RefusedField {
        path,
        may_exclude: true,
    }
}

/// Returns the paths that are taken over because of these refused fields.
fn taken(live: &Node, spec: Value, refused: &[&str]) -> Vec<String> {
    let rendered = object(spec, Value::Null);
    let refused: Vec<_> = refused.iter().map(|path| invalid(path)).collect();
    let found = takeover(live, &rendered, OURS, &refused);
    found
        .into_iter()
        .flat_map(|found| found.fields)
        .map(|field| field.path)
        .collect()
}

const PORT_81: &str = r#"k:{"port":81,"protocol":"TCP"}"#;

fn edited_service(another: &str, operation: &str) -> Node {
    object(
        json!({ "ports": [{ "port": 81, "protocol": "TCP", "targetPort": 8080 }], "type": "ClusterIP" }),
        json!([
            entry(OURS, "Apply", json!({ "f:spec": { "f:selector": {} } })),
            entry(
                another,
                operation,
                json!({ "f:spec": { "f:ports": { PORT_81: { ".": {}, "f:port": {} } } } })
            ),
        ]),
    )
}

#[test]
fn an_item_that_took_the_place_of_ours_by_an_update_is_taken_over() {
    let live = edited_service("kubectl-edit", "Update");
    let rendered = object(json!({ "ports": [{ "port": 80 }] }), Value::Null);
    let refused = [invalid("spec.ports[0].name"), invalid("spec.ports[1].name")];
    let found = takeover(&live, &rendered, OURS, &refused).unwrap();
    assert_eq!(
        found.fields,
        [TakenField {
            path: "spec.ports[port=81,protocol=TCP]".to_owned(),
            managers: vec!["kubectl-edit".to_owned()],
        }]
    );
    // The entry of the update has no fields left, and ours has the item.
    let expected = json!([entry(
        OURS,
        "Apply",
        json!({ "f:spec": {
        "f:selector": {}, "f:ports": { PORT_81: { ".": {}, "f:port": {} } },
    } })
    )]);
    assert_eq!(found.managed_fields, Node::from(&expected));
}

#[test]
fn an_item_that_another_manager_applies_stays() {
    let live = edited_service("helm", "Apply");
    let ports = json!({ "ports": [{ "port": 80 }] });
    assert!(taken(&live, ports, &["spec.ports[1].name"]).is_empty());
}

#[test]
fn a_field_that_the_api_server_does_not_name_stays() {
    let live = edited_service("kubectl-edit", "Update");
    let ports = || json!({ "ports": [{ "port": 80 }] });
    for other in ["spec.clusterIP", "spec.portsOther[0]", "metadata.labels"] {
        assert!(taken(&live, ports(), &[other]).is_empty(), "{other}");
    }
    // The item is declared: the default of a key that is not rendered counts.
    let declared = json!({ "ports": [{ "port": 81, "targetPort": 8080 }] });
    assert!(taken(&live, declared, &["spec.ports[0].port"]).is_empty());
}

#[test]
fn an_object_without_an_entry_of_ours_gets_one() {
    let mut live = edited_service("kubectl-edit", "Update");
    let update = live.meta("managedFields").unwrap().as_list().unwrap()[1].clone();
    let path = orkestra_object::value::Path::of_fields(["metadata", "managedFields"]);
    orkestra_object::value::set(&mut live, &path, Node::List(Box::new([update])));
    let rendered = object(json!({ "ports": [{ "port": 80 }] }), Value::Null);
    let found = takeover(&live, &rendered, OURS, &[invalid("spec.ports[1].name")]).unwrap();
    let fields = json!({ "f:spec": { "f:ports": { PORT_81: { ".": {}, "f:port": {} } } } });
    let expected = json!([entry(OURS, "Apply", fields)]);
    assert_eq!(found.managed_fields, Node::from(&expected));
}

/// A container whose probe another client changed from an HTTP request to a TCP connection, beside a container that it added.
fn edited_probe() -> Node {
    let web = r#"k:{"name":"web"}"#;
    let other = r#"k:{"name":"other"}"#;
    object(
        json!({ "containers": [
            { "name": "web", "livenessProbe": { "tcpSocket": { "port": 1 }, "periodSeconds": 10 } },
            { "name": "other", "livenessProbe": { "tcpSocket": { "port": 1 } } },
        ], "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } }),
        json!([
            entry(
                OURS,
                "Apply",
                json!({ "f:spec": { "f:containers": { web: { ".": {}, "f:name": {} } } } })
            ),
            entry(
                "kubectl-edit",
                "Update",
                json!({ "f:spec": { "f:containers": {
                web: { "f:livenessProbe": { "f:tcpSocket": { ".": {}, "f:port": {} } } },
                other: { ".": {}, "f:name": {}, "f:livenessProbe": { ".": {}, "f:tcpSocket": { ".": {}, "f:port": {} } } },
            } } })
            ),
        ]),
    )
}

#[test]
fn of_two_fields_that_exclude_each_other_the_declared_one_stays() {
    let declared = || json!({ "containers": [{ "name": "web", "livenessProbe": { "httpGet": { "port": 1 } } }] });
    let socket = "spec.containers[name=web].livenessProbe.tcpSocket";
    for refused in [
        "spec.containers[0].livenessProbe.tcpSocket",
        // The declared one is named.
        "spec.containers[0].livenessProbe.httpGet",
    ] {
        // The closest field only: the other container stays.
        let found = taken(&edited_probe(), declared(), &[refused]);
        assert_eq!(found, [socket], "{refused}");
    }
}

#[test]
fn a_default_is_taken_over_only_if_it_is_named() {
    let declared = || json!({ "containers": [{ "name": "web" }, { "name": "other" }], "strategy": { "type": "Recreate" } });
    let named = taken(
        &edited_probe(),
        declared(),
        &["spec.strategy.rollingUpdate"],
    );
    assert_eq!(named, ["spec.strategy.rollingUpdate"]);
    assert!(taken(&edited_probe(), declared(), &["spec.strategy.type"]).is_empty());
}

#[test]
fn a_missing_value_is_no_reason_to_take_what_is_beside_it() {
    let rendered = object(
        json!({ "containers": [{ "name": "web", "livenessProbe": { "httpGet": {} } }] }),
        Value::Null,
    );
    let missing = RefusedField {
        path: "spec.containers[0].livenessProbe.httpGet",
        may_exclude: false,
    };
    assert_eq!(takeover(&edited_probe(), &rendered, OURS, &[missing]), None);
}

#[test]
fn a_value_of_a_set_is_taken_over() {
    let live = object(
        json!({ "tags": ["a", "b"], "whole": [1] }),
        json!([entry(
            "patcher",
            "Update",
            json!({ "f:spec": { "f:tags": { "v:\"a\"": {}, "v:\"b\"": {} }, "f:whole": {} } })
        )]),
    );
    let declared = json!({ "tags": ["a"], "whole": [2] });
    let refused = ["spec.tags", "spec.whole[0]"];
    assert_eq!(taken(&live, declared, &refused), ["spec.tags[=\"b\"]"]);
}

#[test]
fn fields_of_a_subresource_and_of_another_version_stay() {
    for (field, value) in [("subresource", "status"), ("apiVersion", "v2")] {
        let mut update = entry("other", "Update", json!({ "f:spec": { "f:extra": {} } }));
        update[field] = json!(value);
        let live = object(json!({ "extra": 1 }), json!([update]));
        assert!(
            taken(&live, json!({}), &["spec.extra"]).is_empty(),
            "{field}"
        );
    }
}
