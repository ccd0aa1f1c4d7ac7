//! Declared status fields, and the effect of the definition's schema.

use orkestra_engine::reconcile::{
    crd_status::{CrdStatus, StatusShape},
    reason::Reason,
    status::unwritable,
    verdict::Executed,
};
use serde_json::{Value, json};

use super::{
    operator::{crd_status, open_crd_status, operator, operator_with_schema, pond},
    report::{apply, failed, patch, report},
    world::World,
};

fn fields(declared: &str) -> String {
    format!("status:\n  fields: [{declared}]")
}

/// Returns a world with a Pond whose operator writes these fields.
pub(crate) fn world(declared: &str, spec: &Value, status: &Value) -> World {
    World::new(&operator(&fields(declared)), pond(spec, status))
}

/// Returns the declared fields after a pass without failures.
fn reported(declared: &str, spec: &Value, crd_status: &CrdStatus) -> Value {
    let mut executed = Executed::default();
    let mut status = report(
        &mut world(declared, spec, &json!({})),
        crd_status,
        &mut executed,
        0,
    );
    assert_eq!(executed.failures, []);
    status
        .as_object_mut()
        .unwrap()
        .retain(|name, _| name != "conditions" && name != "observedGeneration");
    status
}

fn typed(name: &str, schema: &Value) -> Value {
    json!({ "type": "object", "properties": { name: schema } })
}

#[test]
fn a_field_has_the_type_of_its_schema() {
    for (schema, given, wanted) in [
        (json!({ "type": "integer" }), json!("3"), json!(3)),
        (json!({ "type": "integer" }), json!(3.0), json!(3)),
        (json!({ "type": "number" }), json!("2.5"), json!(2.5)),
        (json!({ "type": "number" }), json!(3), json!(3)),
        (json!({ "type": "boolean" }), json!("true"), json!(true)),
        (json!({ "type": "string" }), json!(3), json!("3")),
        (json!({ "type": "string" }), json!(true), json!("true")),
        (
            json!({ "type": "array", "items": { "type": "integer" } }),
            json!([1, 2]),
            json!([1, 2]),
        ),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!("80"),
            json!("80"),
        ),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(80),
            json!(80),
        ),
        (
            json!({ "x-kubernetes-preserve-unknown-fields": true }),
            json!({ "a": [1] }),
            json!({ "a": [1] }),
        ),
    ] {
        let found = reported(
            "{ path: x, value: '{{ .spec.x }}' }",
            &json!({ "x": given }),
            &crd_status(&typed("x", &schema)),
        );
        assert_eq!(found, json!({ "x": wanted }), "{schema} {given}");
    }
}

#[test]
fn a_declared_type_beats_the_schema() {
    let number = crd_status(&typed("x", &json!({ "type": "integer" })));
    for (kind, wanted) in [
        ("string", json!("3")),
        ("int", json!(3)),
        ("float", json!(3)),
        ("auto", json!(3)),
    ] {
        let declared = format!("{{ path: x, value: '{{{{ .spec.x }}}}', type: {kind} }}");
        assert_eq!(
            reported(&declared, &json!({ "x": "3" }), &number),
            json!({ "x": wanted }),
            "{kind}"
        );
    }
}

#[test]
fn the_same_schema_gives_the_same_value_when_the_plan_knows_it() {
    for kind in ["integer", "number", "boolean", "string"] {
        let schema = typed("x", &json!({ "type": kind }));
        for given in [
            json!("1"),
            json!(1),
            json!(1.0),
            json!("true"),
            json!(true),
            json!("x"),
            json!(2.5),
            json!([1]),
        ] {
            let declared = "{ path: x, value: '{{ .spec.x }}' }";
            let spec = json!({ "x": given });
            let outcome = |mut world: World| {
                let mut executed = Executed::default();
                if let Some(first) = patch(&world, &crd_status(&schema), &mut executed, 0) {
                    apply(&mut world, &first);
                }
                (
                    executed.failures.len(),
                    world.cr["status"].get("x").cloned(),
                )
            };
            let unknown = outcome(world(declared, &spec, &json!({})));
            let plan = operator_with_schema(&fields(declared), &schema);
            assert_eq!(
                outcome(World::new(&plan, pond(&spec, &json!({})))),
                unknown,
                "{kind} {given}"
            );
        }
    }
}

#[test]
fn a_value_that_does_not_fit_fails_the_pass_and_leaves_the_old_value() {
    let schema = crd_status(&json!({ "type": "object", "properties": {
        "count": { "type": "integer" }, "m": { "type": "string" },
        "conditions": { "type": "array", "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } }));
    let declared = "{ path: count, value: '{{ .spec.count }}' }, { path: m, value: new }";
    let mut world = world(
        declared,
        &json!({ "count": "swordfish" }),
        &json!({ "count": 7, "m": "old" }),
    );
    let mut executed = Executed::default();
    let found = report(&mut world, &schema, &mut executed, 0);
    assert_eq!((&found["count"], &found["m"]), (&json!(7), &json!("new")));
    assert_eq!(executed.failures[0].reason, Reason::WrongType);
    let ready = &found["conditions"][0];
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("WrongType"))
    );
    assert!(!ready.to_string().contains("swordfish"), "{ready}");
}

#[test]
fn a_field_that_takes_too_long_leaves_the_others_alone() {
    let endless =
        "{{ range .spec.l }}{{ range $.spec.l }}{{ range $.spec.l }}x{{ end }}{{ end }}{{ end }}";
    let declared =
        format!("{{ path: a, value: '{endless}' }}, {{ path: b, value: '{{{{ .spec.b }}}}' }}");
    let mut world = world(
        &declared,
        &json!({ "l": vec![1; 1000], "b": 5 }),
        &json!({}),
    );
    let mut executed = Executed::default();
    let first = patch(&world, &open_crd_status(), &mut executed, 0).unwrap();
    apply(&mut world, &first);
    assert_eq!(executed.failures[0].reason, Reason::BudgetExhausted);
    assert_eq!(
        (world.cr["status"].get("a"), &world.cr["status"]["b"]),
        (None, &json!(5))
    );
}

#[test]
fn a_missing_child_leaves_its_field_out_and_takes_an_old_value_away() {
    let plan = operator(
        "onReconcile: { deployments: [{ name: d, image: pump }] }
status: { fields: [{ path: ready, value: '{{ .children.deployment.status.readyReplicas }}' }, { path: deep.er, value: '{{ get .children.deployment \"status\" \"observedGeneration\" }}' }] }",
    );
    let schema = crd_status(&json!({ "type": "object", "properties": {
        "ready": { "type": "integer" }, "deep": { "type": "object", "properties": { "er": { "type": "string" } } } } }));
    for old in [json!({}), json!({ "ready": 2, "deep": { "er": "x" } })] {
        let mut world = World::new(&plan, pond(&json!({}), &old));
        let mut executed = Executed::default();
        let found = report(&mut world, &schema, &mut executed, 0);
        assert_eq!(executed.failures, []);
        assert_eq!(
            (found.get("ready"), found["deep"].get("er")),
            (None, None),
            "{old}"
        );
    }
}

#[test]
fn a_conditional_field_keeps_its_value_while_the_gate_is_closed() {
    let declared = "{ path: phase, value: Up, when: [{ field: spec.up, equals: true }] }";
    let mut world = world(
        declared,
        &json!({ "up": false }),
        &json!({ "phase": "before" }),
    );
    assert_eq!(
        report(&mut world, &open_crd_status(), &mut Executed::default(), 0)["phase"],
        "before"
    );
    world.cr["spec"]["up"] = json!(true);
    assert_eq!(
        report(&mut world, &open_crd_status(), &mut Executed::default(), 1)["phase"],
        "Up"
    );
}

#[test]
fn of_two_fields_of_one_path_the_later_open_one_wins() {
    let declared = "{ path: a, value: one }, { path: a, value: two, when: [{ field: spec.two, equals: true }] }";
    for (two, wanted) in [(true, "two"), (false, "one")] {
        assert_eq!(
            reported(declared, &json!({ "two": two }), &open_crd_status()),
            json!({ "a": wanted })
        );
    }
}

#[test]
fn a_failed_pass_writes_conditional_fields_only() {
    let declared = "{ path: always, value: new }, { path: sometimes, value: new, when: [{ field: spec.up, exists: true }] }";
    let mut world = world(
        declared,
        &json!({ "up": 1 }),
        &json!({ "always": "old", "sometimes": "old" }),
    );
    let found = report(
        &mut world,
        &open_crd_status(),
        &mut failed(Reason::Denied),
        0,
    );
    assert_eq!(
        (&found["always"], &found["sometimes"]),
        (&json!("old"), &json!("new"))
    );
}

#[test]
fn a_state_machine_moves_one_step_a_pass() {
    let declared = "{ path: phase, value: a, when: [{ field: status.phase, notExists: true }] },
    { path: phase, value: b, when: [{ field: status.phase, equals: a }] },
    { path: phase, value: c, when: [{ field: status.phase, equals: b }] }";
    let mut world = world(declared, &json!({}), &json!({}));
    for wanted in ["a", "b", "c", "c"] {
        if let Some(patch) = patch(&world, &open_crd_status(), &mut Executed::default(), 0) {
            apply(&mut world, &patch);
        }
        assert_eq!(world.cr["status"]["phase"], wanted);
    }
}

#[test]
fn fields_of_others_stay_list_items_too() {
    let declared = "{ path: 'hosts[1].name', value: '{{ .spec.name }}' }, { path: own, value: 1 }";
    let theirs = json!({ "hosts": [{ "name": "x" }, { "name": "y", "port": 5 }, { "name": "z" }], "phase": "theirs" });
    let mut world = world(declared, &json!({ "name": "new" }), &theirs);
    let found = report(&mut world, &open_crd_status(), &mut Executed::default(), 0);
    assert_eq!(
        found["hosts"],
        json!([{ "name": "x" }, { "name": "new", "port": 5 }, { "name": "z" }])
    );
    assert_eq!(found["phase"], "theirs");
}

#[test]
fn a_status_that_is_no_map_is_replaced() {
    let mut world = world(
        "{ path: a.b, value: 1 }",
        &json!({}),
        &json!({ "a": "text" }),
    );
    assert_eq!(
        report(&mut world, &open_crd_status(), &mut Executed::default(), 0)["a"],
        json!({ "b": 1 })
    );
}

fn lost(declared: &str, crd_status: &CrdStatus) -> Vec<String> {
    unwritable(&operator(&fields(declared)), crd_status)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn what_the_schema_drops_is_not_written_and_is_named() {
    let declared =
        "{ path: kept, value: 1 }, { path: dropped, value: 2 }, { path: deep.dropped, value: 3 }";
    let schema = crd_status(&json!({ "type": "object", "properties": {
        "kept": { "type": "integer" }, "deep": { "type": "object", "properties": { "other": { "type": "string" } } } } }));
    assert_eq!(
        reported(declared, &json!({}), &schema),
        json!({ "kept": 1 })
    );
    assert_eq!(
        lost(declared, &schema),
        [
            "status.conditions",
            "status.observedGeneration",
            "status.dropped",
            "status.deep.dropped"
        ]
    );
    assert_eq!(lost(declared, &open_crd_status()), Vec::<String>::new());
}

#[test]
fn a_definition_that_drops_the_status_gets_none() {
    let crd_status = CrdStatus {
        status: StatusShape::new(None),
        ..open_crd_status()
    };
    let declared = "{ path: a, value: 1 }";
    assert_eq!(
        patch(
            &world(declared, &json!({}), &json!({})),
            &crd_status,
            &mut Executed::default(),
            0
        ),
        None
    );
    assert_eq!(
        lost(declared, &crd_status),
        ["status.conditions", "status.observedGeneration", "status.a"]
    );
}

#[test]
fn conditions_are_written_as_far_as_the_schema_holds_them() {
    let schema = |names: &[&str]| {
        let properties = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })));
        let item = json!({ "type": "object", "properties": properties.collect::<serde_json::Map<_, _>>() });
        crd_status(&typed(
            "conditions",
            &json!({ "type": "array", "items": item }),
        ))
    };
    let declared = "{ path: a, value: 1 }";
    let conditions = |crd_status: &CrdStatus| {
        let mut world = world(declared, &json!({}), &json!({}));
        report(&mut world, crd_status, &mut Executed::default(), 0)
            .get("conditions")
            .cloned()
    };
    let few = schema(&["type", "status"]);
    assert_eq!(
        conditions(&few),
        Some(json!([{ "type": "Ready", "status": "True" }]))
    );
    assert!(!lost(declared, &few).contains(&"status.conditions".to_owned()));
    let bare = schema(&["type", "reason"]);
    let mut world = world(declared, &json!({}), &json!({}));
    assert_eq!(patch(&world, &bare, &mut Executed::default(), 0), None);
    world.cr["status"] = json!({ "conditions": [{ "type": "Theirs" }] });
    assert_eq!(patch(&world, &bare, &mut Executed::default(), 0), None);
    assert!(lost(declared, &bare).contains(&"status.conditions".to_owned()));
}
