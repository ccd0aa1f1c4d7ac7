//! `.health`, `.metrics` and `.ork`: the reads of a pass about its own operator, and their use in templates and conditions.

use std::sync::Arc;

use orkestra_engine::reconcile::sources::{Answer, Read};
use orkestra_object::value::Node;
use orkestra_plan::introspection::Introspection;
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, rendered, words},
};

const READ: &str = r#"
onReconcile:
  configMaps:
    - name: a
      data:
        state: "{{ .health.state }}"
        workers: "{{ .metrics.workers }}"
        version: "{{ .ork.version }}"
    - name: b
      onFalse: delete
      when: [{ field: health.healthy, equals: true }]
"#;

fn ready(crd_status: &Value) -> Answer {
    Answer::Ready(Arc::new(Node::from(crd_status)))
}

#[test]
fn templates_and_conditions_see_the_operator_and_its_process() {
    let plan = operator(READ);
    assert_eq!(
        plan.reads.roots.iter().copied().collect::<Vec<_>>(),
        Introspection::ALL.map(Introspection::root)
    );
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    let crd_status = [
        (
            Introspection::Health,
            json!({ "state": "degraded", "healthy": false }),
        ),
        (Introspection::Metrics, json!({ "workers": 4 })),
        (Introspection::Process, json!({ "version": "1.2.3" })),
    ];
    for (read, crd_status) in crd_status {
        let read = Read::Introspection(read);
        assert!(!read.may_change());
        world.outside.insert(read, ready(&crd_status));
    }
    let cycle = world.decide();
    let object = &rendered(&cycle, &key("ConfigMap", "a")).object;
    assert_eq!(
        object.get("data").map_or(Value::Null, Node::to_json),
        json!({ "state": "degraded", "workers": "4", "version": "1.2.3" })
    );
    assert_eq!(words(&cycle), ["apply ConfigMap east/a"]);
    let healthy = ready(&json!({ "state": "healthy", "healthy": true }));
    let health = Read::Introspection(Introspection::Health);
    world.outside.insert(health.clone(), healthy);
    assert_eq!(
        words(&world.decide()),
        ["apply ConfigMap east/a", "apply ConfigMap east/b"]
    );
    // An unknown value decides nothing: the pass neither creates nor deletes.
    let unknown = Answer::Unavailable("the operator does not run".into());
    world.outside.insert(health, unknown);
    assert_eq!(
        words(&world.decide()),
        ["keep ConfigMap east/a", "keep ConfigMap east/b"]
    );
}

#[test]
fn an_operator_that_reads_none_of_it_asks_for_none_of_it() {
    let plan = operator("onReconcile: { configMaps: [{ name: a, data: { a: b } }] }");
    assert!(plan.reads.roots.is_empty());
    // The whole data, as in `{{ toJSON . }}`, does not include it: it would differ in each pass.
    let plan =
        operator("onReconcile: { configMaps: [{ name: a, data: { a: '{{ toJSON . }}' } }] }");
    assert!(plan.reads.roots.is_empty());
}
