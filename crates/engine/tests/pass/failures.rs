//! Failures of single children: a child that cannot be rendered fails alone, with a stable reason.

use orkestra_engine::reconcile::reason::Reason;
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, words},
};

/// Returns the failures and intents of a first pass.
fn pass(declared: &str, spec: &Value) -> (Vec<(Reason, String)>, Vec<String>) {
    let cycle = World::new(&operator(declared), pond(spec, &json!({}))).decide();
    let failures = cycle
        .failures
        .iter()
        .map(|failure| (failure.reason, failure.message.clone()));
    (failures.collect(), words(&cycle))
}

/// Returns the only failure of a pass in which the `ConfigMap` z is valid.
fn failure(entries: &str, spec: &Value) -> (Reason, String) {
    let declared = format!("onReconcile:\n  configMaps: [{{ name: z }}]\n{entries}");
    let (failures, words) = pass(&declared, spec);
    assert!(
        words.contains(&"apply ConfigMap east/z".to_owned()),
        "{words:?}"
    );
    let [failure] = &failures[..] else {
        panic!("{failures:?}")
    };
    assert!(failure.0.is_permanent() || failure.0 == Reason::KindNotServed);
    failure.clone()
}

#[test]
fn a_name_that_is_illegal_for_its_kind_fails_alone() {
    let service = "  services: [{ name: '{{ .spec.name }}', port: 80, selector: { a: b } }]";
    for (name, reported) in [
        ("x".repeat(64), "64 characters"),
        ("0pond".to_owned(), "starting with a letter"),
        ("a.b".to_owned(), "is not a valid name"),
        ("Pond".to_owned(), "is not a valid name"),
        (String::new(), "empty"),
    ] {
        let (reason, message) = failure(service, &json!({ "name": name }));
        assert_eq!(reason, Reason::InvalidName, "{name}");
        assert!(message.contains(reported), "{name}: {message}");
    }
    assert_eq!(
        pass(
            &format!("onReconcile:\n{service}"),
            &json!({ "name": "x".repeat(63) })
        )
        .0,
        []
    );
}

#[test]
fn a_config_map_may_have_a_longer_name_than_a_service() {
    let entry = "onReconcile: { configMaps: [{ name: '{{ .spec.name }}' }] }";
    assert_eq!(pass(entry, &json!({ "name": "x".repeat(253) })).0, []);
    assert_eq!(pass(entry, &json!({ "name": "a.b" })).0, []);
    assert_eq!(
        pass(entry, &json!({ "name": "x".repeat(254) })).0[0].0,
        Reason::InvalidName
    );
}

#[test]
fn a_role_may_have_a_colon_in_its_name_but_no_slash() {
    let role = "onReconcile: { custom: [{ apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: { name: '{{ .spec.name }}' }, rules: [] }] }";
    assert_eq!(pass(role, &json!({ "name": "pond:Reader" })).0, []);
    for bad in ["a/b", "..", "a%2fb"] {
        assert_eq!(
            pass(role, &json!({ "name": bad })).0[0].0,
            Reason::InvalidName,
            "{bad}"
        );
    }
}

#[test]
fn a_namespace_that_is_no_legal_name_fails_alone() {
    let entry = "  secrets: [{ name: s, namespace: '{{ .spec.where }}' }]";
    for bad in ["../kube-system", "West", "a.b", "a b"] {
        let (reason, _) = failure(entry, &json!({ "where": bad }));
        assert_eq!(reason, Reason::InvalidName, "{bad}");
    }
}

#[test]
fn a_child_without_a_namespace_of_a_resource_without_one_fails() {
    let plan = super::operator::cluster_operator(
        "onReconcile: { configMaps: [{ name: '{{ .metadata.name }}' }] }",
    );
    let cycle = World::new(&plan, super::operator::cluster_pond(&json!({}))).decide();
    assert_eq!(cycle.failures[0].reason, Reason::InvalidName);
    assert!(
        cycle.failures[0].message.contains("set `namespace`"),
        "{}",
        cycle.failures[0].message
    );
}

#[test]
fn a_value_of_the_wrong_type_fails_alone_and_is_not_quoted() {
    let entry = "  deployments: [{ name: d, image: pump, replicas: '{{ .spec.many }}' }]";
    for bad in [
        json!("swordfish"),
        json!(2.5),
        json!([1]),
        json!({ "a": 1 }),
        json!(true),
    ] {
        let (reason, message) = failure(entry, &json!({ "many": bad }));
        assert_eq!(reason, Reason::WrongType, "{bad}");
        assert!(
            message.contains("an integer") && !message.contains("swordfish"),
            "{message}"
        );
    }
}

#[test]
fn integers_are_integers_however_they_are_written() {
    let plan = operator(
        "onReconcile: { deployments: [{ name: d, image: pump, replicas: '{{ .spec.many }}' }] }",
    );
    for (given, wanted) in [
        (json!(3), json!(3)),
        (json!("3"), json!(3)),
        (json!(" 3\n"), json!(3)),
        (json!(3.0), json!(3)),
        (json!("3.0"), json!(3)),
        (json!(1_000_000), json!(1_000_000)),
        (json!(null), Value::Null),
        (json!(""), Value::Null),
    ] {
        let cycle = World::new(&plan, pond(&json!({ "many": given }), &json!({}))).decide();
        assert_eq!(cycle.failures, [], "{given}");
        let object = super::world::rendered(&cycle, &key("Deployment.apps", "d"))
            .object
            .to_json();
        assert_eq!(object["spec"]["replicas"], wanted, "{given}");
    }
}

#[test]
fn a_port_that_is_none_fails_alone() {
    let entry = "  deployments: [{ name: d, image: pump, port: '{{ .spec.port }}' }]";
    for bad in [json!(65_536), json!(-1), json!("http")] {
        assert_eq!(
            failure(entry, &json!({ "port": bad })).0,
            Reason::WrongType,
            "{bad}"
        );
    }
}

#[test]
fn a_port_of_zero_or_nothing_takes_its_probe_and_its_list_along() {
    let plan = operator(
        "onReconcile: { deployments: [{ name: d, image: pump, port: '{{ .spec.port }}', probes: { liveness: { path: /x, periodSeconds: 3 } } }] }",
    );
    for none in [json!(0), json!("0"), json!(""), json!(null)] {
        let cycle = World::new(&plan, pond(&json!({ "port": none }), &json!({}))).decide();
        let object = super::world::rendered(&cycle, &key("Deployment.apps", "d"))
            .object
            .to_json();
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(
            (container.get("ports"), container.get("livenessProbe")),
            (None, None),
            "{none}"
        );
    }
}

/// A template over a list of 1000 items that takes longer than any budget allows.
const ENDLESS: &str = "{{ range .spec.list }}{{ range $.spec.list }}{{ range $.spec.list }}x{{ end }}{{ end }}{{ end }}";

#[test]
fn a_template_that_takes_too_long_is_a_permanent_failure_of_its_child_alone() {
    let list = json!({ "list": vec![1; 1000] });
    let entry = format!("  secrets: [{{ name: s, data: {{ a: '{ENDLESS}' }} }}]");
    let (reason, message) = failure(&entry, &list);
    assert_eq!(reason, Reason::BudgetExhausted);
    assert!(reason.is_permanent());
    assert!(!message.is_empty());
    let gate = format!(
        "  services: [{{ name: s, port: 80, selector: {{ a: b }}, when: [{{ field: '{ENDLESS}', exists: true }}] }}]"
    );
    assert_eq!(failure(&gate, &list).0, Reason::BudgetExhausted);
    let name = format!("  services: [{{ name: '{ENDLESS}', port: 80, selector: {{ a: b }} }}]");
    assert_eq!(failure(&name, &list).0, Reason::BudgetExhausted);
}

#[test]
fn a_template_that_makes_too_much_fails_alone_and_its_child_stays() {
    let declared = "onReconcile:\n  configMaps: [{ name: a, data: { a: '{{ range .spec.list }}{{ $.spec.text }}{{ end }}' } }, { name: b }]";
    let mut world = World::new(
        &operator(declared),
        pond(&json!({ "list": [1], "text": "x" }), &json!({})),
    );
    world.settle();
    world.cr["spec"] = json!({ "list": vec![1; 1000], "text": "x".repeat(10_000) });
    let cycle = world.decide();
    assert_eq!(cycle.failures[0].reason, Reason::BudgetExhausted);
    assert_eq!(
        words(&cycle),
        ["keep ConfigMap east/a", "apply ConfigMap east/b"]
    );
}

#[test]
fn a_failing_template_fails_alone_and_its_child_stays() {
    let declared = "onReconcile:\n  configMaps: [{ name: a, data: { a: '{{ toInt .spec.by }}' } }, { name: b }]";
    let mut world = World::new(&operator(declared), pond(&json!({ "by": "1" }), &json!({})));
    world.settle();
    world.cr["spec"]["by"] = json!("one");
    let cycle = world.decide();
    let [failure] = &cycle.failures[..] else {
        panic!("{:?}", cycle.failures)
    };
    assert_eq!(
        (failure.reason, failure.reason.is_permanent()),
        (Reason::TemplateFailed, true)
    );
    assert!(
        failure.at.ends_with("onReconcile.configMaps[0].data.a"),
        "{}",
        failure.at
    );
    assert_eq!(
        words(&cycle),
        ["keep ConfigMap east/a", "apply ConfigMap east/b"]
    );
}

#[test]
fn a_kind_that_is_not_served_fails_alone_and_is_tried_again() {
    let plan = operator(
        "onReconcile: { configMaps: [{ name: a }], custom: [{ apiVersion: water.example/v2, kind: Fish, metadata: { name: f }, spec: { x: 1 } }] }",
    );
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.scopes.retain(|kind, _| &*kind.kind != "Fish");
    let cycle = world.decide();
    let [failure] = &cycle.failures[..] else {
        panic!("{:?}", cycle.failures)
    };
    assert_eq!(
        (failure.reason, failure.reason.is_permanent()),
        (Reason::KindNotServed, false)
    );
    assert!(
        failure.message.contains("Fish.water.example") && failure.message.contains("v2"),
        "{}",
        failure.message
    );
    assert_eq!(words(&cycle), ["apply ConfigMap east/a"]);
}

#[test]
fn a_kind_that_is_not_served_and_not_wanted_is_no_failure() {
    let plan = operator(
        "onReconcile: { custom: [{ apiVersion: water.example/v2, kind: Fish, metadata: { name: f }, spec: { x: 1 }, when: [{ field: spec.fish, equals: true }] }] }",
    );
    let mut world = World::new(&plan, pond(&json!({ "fish": false }), &json!({})));
    world.scopes.clear();
    assert_eq!(world.decide().failures, []);
    world.cr["spec"]["fish"] = json!(true);
    assert_eq!(world.decide().failures[0].reason, Reason::KindNotServed);
}

#[test]
fn every_failure_of_a_pass_is_reported() {
    let declared = "onReconcile:
  configMaps: [{ name: '{{ .spec.bad }}' }, { name: a, data: { a: '{{ toInt .spec.bad }}' } }]
  services: [{ name: s, port: '{{ .spec.bad }}', selector: { a: b } }]";
    let (failures, words) = pass(declared, &json!({ "bad": "NOT LEGAL" }));
    let reasons: Vec<Reason> = failures.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(
        reasons,
        [
            Reason::InvalidName,
            Reason::TemplateFailed,
            Reason::WrongType
        ]
    );
    assert_eq!(words, ["keep ConfigMap east/a", "keep Service east/s"]);
}
