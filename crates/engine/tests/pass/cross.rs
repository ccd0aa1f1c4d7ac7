//! Custom resources of other operators: the reads of a pass, and the effects of the results.

use std::sync::Arc;

use orkestra_engine::reconcile::{
    reason::Reason,
    sources::{Answer, CrossBy, CrossRead, Read},
};
use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::{
    operator::{NAMESPACE, cluster_operator, cluster_pond, operator, pond},
    world::{World, key, rendered, words},
};

/// A `ConfigMap` that exists while the spring is found, with the fields that are read from it.
const BOX: &str = r#"
cross:
  - crd: spring
    selector: { name: "{{ .metadata.name }}-spring" }
    as: source
onReconcile:
  configMaps:
    - name: a
      data: { flow: '{{ get .cross.source "status" "flow" }}', found: "{{ .cross.source.found }}" }
      when: [{ field: spec.on, equals: true }]
    - name: b
      onFalse: delete
      when: [{ field: cross.source.found, equals: true }]
"#;

fn world(declared: &str) -> World {
    World::new(
        &operator(declared),
        pond(&json!({ "on": true }), &json!({})),
    )
}

fn named(entry: &str, namespace: Option<&str>, name: &str) -> Read {
    Read::Cross(CrossRead {
        name: entry.into(),
        namespace: namespace.map(Into::into),
        by: CrossBy::Name(name.into()),
    })
}

fn ready(object: &Value) -> Answer {
    Answer::Ready(Arc::new(Node::from(object)))
}

fn data(world: &World, name: &str) -> Value {
    let cycle = world.decide();
    let object = &rendered(&cycle, &key("ConfigMap", name)).object;
    object.get("data").map_or(Value::Null, Node::to_json)
}

#[test]
fn a_resource_that_is_there_is_read_and_one_that_is_not_is_empty() {
    let mut world = world(BOX);
    assert_eq!(data(&world, "a"), json!({ "flow": "", "found": "false" }));
    assert_eq!(words(&world.decide()), ["apply ConfigMap east/a"]);

    let read = named("source", Some(NAMESPACE), "pond-spring");
    let spring = json!({ "status": { "flow": "7 l/s" } });
    world.outside.insert(read, ready(&spring));
    assert_eq!(
        data(&world, "a"),
        json!({ "flow": "7 l/s", "found": "true" })
    );
    assert_eq!(
        words(&world.decide()),
        ["apply ConfigMap east/a", "apply ConfigMap east/b"]
    );
}

#[test]
fn what_cannot_be_read_leaves_its_readers_as_they_are() {
    let mut world = world(BOX);
    let read = named("source", Some(NAMESPACE), "pond-spring");
    let spring = ready(&json!({ "status": { "flow": "7 l/s" } }));
    world.outside.insert(read.clone(), spring);
    world.settle();
    let gone = Answer::Unavailable("no right to list springs".into());
    world.outside.insert(read.clone(), gone);
    let cycle = world.decide();
    assert_eq!(
        words(&cycle),
        ["keep ConfigMap east/a", "keep ConfigMap east/b"]
    );
    for failure in &cycle.failures {
        assert_eq!(failure.reason, Reason::Unavailable);
        assert!(
            failure.message.contains("no right to list springs"),
            "{}",
            failure.message
        );
    }
    // If there is none, `onFalse: delete` applies.
    world.outside.remove(&read);
    assert_eq!(
        words(&world.decide()),
        ["apply ConfigMap east/a", "delete ConfigMap east/b"]
    );
}

#[test]
fn a_gate_that_asks_for_another_resource_keeps_by_default() {
    let declared = BOX.replace("      onFalse: delete\n", "");
    let mut world = world(&declared);
    let read = named("source", Some(NAMESPACE), "pond-spring");
    world.outside.insert(read, ready(&json!({})));
    world.settle();
    world.outside.clear();
    assert_eq!(
        words(&world.decide()),
        ["apply ConfigMap east/a", "keep ConfigMap east/b"]
    );
}

#[test]
fn a_selector_may_read_what_was_read_before_it() {
    let declared = r#"
cross:
  - { crd: spring, selector: { name: s } }
  - { crd: lake, selector: { name: "{{ .cross.spring.spec.lake }}", namespace: west } }
  - { crd: sea, selector: { name: "{{ .cross.lake.spec.sea }}" } }
onReconcile:
  configMaps: [{ name: a, data: { lake: "{{ .cross.lake.found }}", sea: "{{ .cross.sea.found }}" } }]
"#;
    let mut world = world(declared);
    let spring = json!({ "spec": { "lake": "como" } });
    let entries = [
        (named("spring", Some(NAMESPACE), "s"), spring),
        (named("lake", Some("west"), "como"), json!({ "spec": {} })),
    ];
    for (read, object) in entries {
        world.outside.insert(read, ready(&object));
    }
    // The lake has no `sea`, so nothing is read.
    assert_eq!(data(&world, "a"), json!({ "lake": "true", "sea": "false" }));
}

#[test]
fn labels_are_rendered_and_asked_for_with_their_namespace() {
    let declared = r#"
cross:
  - crd: spring
    selector: { matchLabels: { example.org/pond: "{{ .metadata.name }}" } }
    as: any
onReconcile:
  configMaps: [{ name: a, data: { found: "{{ .cross.any.found }}" } }]
"#;
    let mut world = world(declared);
    let labels = [("example.org/pond".into(), "pond".into())];
    let read = Read::Cross(CrossRead {
        name: "any".into(),
        namespace: Some(NAMESPACE.into()),
        by: CrossBy::Labels(labels.into()),
    });
    world.outside.insert(read, ready(&json!({})));
    assert_eq!(data(&world, "a"), json!({ "found": "true" }));
}

#[test]
fn a_namespace_that_the_resource_chooses_is_read_only_where_it_is_permitted() {
    let declared = r#"
cross:
  - crd: spring
    selector: { name: s, namespace: "{{ .spec.from }}" }
    allowedNamespaces: [hills-*]
onReconcile:
  configMaps: [{ name: a, data: { found: "{{ .cross.spring.found }}" } }]
"#;
    let asked = |from: &str| {
        let spec = json!({ "from": from });
        let mut world = World::new(&operator(declared), pond(&spec, &json!({})));
        let namespace = if from.is_empty() { NAMESPACE } else { from };
        let read = named("spring", Some(namespace), "s");
        world.outside.insert(read, ready(&json!({})));
        words(&world.decide())
    };
    for permitted in ["", NAMESPACE, "hills-1"] {
        assert_eq!(asked(permitted), ["apply ConfigMap east/a"], "{permitted}");
    }
    for refused in ["kube-system", "my-hills-1"] {
        let words = asked(refused);
        assert!(
            !words.iter().any(|word| word.starts_with("apply")),
            "{words:?}"
        );
    }
}

#[test]
fn health_and_metrics_are_there_also_where_there_is_no_resource() {
    let declared = r#"
cross: [{ crd: spring, selector: { name: s } }]
onReconcile:
  configMaps:
    - name: a
      data:
        state: "{{ .cross.spring.health.state }}"
        depth: "{{ .cross.spring.metrics.queueDepth }}"
        found: "{{ .cross.spring.found }}"
"#;
    let mut world = world(declared);
    let crd_status = json!({ "health": { "state": "healthy" }, "metrics": { "queueDepth": 4 } });
    world
        .outside
        .insert(Read::Operator("spring".into()), ready(&crd_status));
    assert_eq!(
        data(&world, "a"),
        json!({ "state": "healthy", "depth": "4", "found": "false" })
    );
}

#[test]
fn only_what_templates_read_is_kept_of_a_target() {
    let plan = operator(BOX);
    let reads = |plan: &orkestra_plan::OperatorPlan| -> Vec<String> {
        plan.cross[0]
            .kept_paths()
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(reads(&plan), ["status.flow"]);
    assert!(!plan.cross[0].reads_health && !plan.cross[0].reads_metrics);
    let whole = BOX.replace("{{ .cross.source.found }}", "{{ toJSON .cross }}");
    let plan = operator(&whole);
    assert_eq!(
        reads(&plan),
        ["apiVersion", "kind", "metadata", "spec", "status"]
    );
    assert!(plan.cross[0].reads_health && plan.cross[0].reads_metrics);
}

#[test]
fn a_cluster_scoped_resource_asks_without_a_namespace() {
    let declared = "
cross: [{ crd: spring, selector: { name: s } }]
status: { fields: [{ path: found, value: '{{ .cross.spring.found }}' }] }
";
    let mut world = World::new(&cluster_operator(declared), cluster_pond(&json!({})));
    world
        .outside
        .insert(named("spring", None, "s"), ready(&json!({})));
    let sources = world.decide().sources;
    assert_eq!(
        sources.roots["cross"].to_json(),
        json!({ "spring": { "found": "true" } })
    );
}
