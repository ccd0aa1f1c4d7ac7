//! Rules: a custom resource is normalized, mutated and validated, in this order, before other decisions.

mod normalize;
mod validate;

use orkestra_engine::reconcile::{
    reason::Reason,
    status::status,
    step::{Cycle, Failure},
    verdict::Executed,
};
use orkestra_object::value::Node;
use orkestra_plan::definitions::{CrdShape, Schemas};
use serde_json::{Value, json};

use super::{
    operator::{of_document, open_crd_status, pond},
    report::at,
    world::{World, key, rendered},
};

/// Returns the schema of a Pond's spec.
fn spec_schema() -> Value {
    json!({ "type": "object", "properties": {
        "replicas": { "type": "integer" }, "port": { "type": "integer" }, "image": { "type": "string" },
        "tier": { "type": "string" }, "open": { "type": "boolean" }, "schedule": { "type": "string" },
        "more": { "type": "object", "properties": { "depth": { "type": "number" } } },
        "gates": { "type": "array", "items": { "type": "object", "properties": { "side": { "type": "string" } } } },
        "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } })
}

/// Returns a world with a Pond with `spec`, whose operator writes the whole spec to a `ConfigMap`. `entry` is added to the entry.
fn world_with(entry: &str, motifs: &str, spec: &Value) -> World {
    let lines = entry.lines().map(|line| format!("      {line}"));
    let entry = lines.collect::<Vec<_>>().join("\n");
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
      operatorBox:
        onReconcile:
          configMaps: [{{ name: seen, data: {{ spec: '{{{{ toJSON .spec }}}}', labels: '{{{{ toJSON .metadata.labels }}}}' }} }}]
        status:
          fields:
            - {{ path: image, value: '{{{{ .spec.image }}}}' }}
            - {{ path: reported, value: 'yes', when: [{{ field: spec.image, exists: true }}] }}
{entry}
---
{motifs}"
    );
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {
            "group": "water.example", "scope": "Namespaced", "names": { "kind": "Pond", "plural": "ponds" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": spec_schema(),
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    });
    let mut schemas = Schemas::default();
    schemas.insert(CrdShape::from_crd(&Node::from(&crd)).unwrap());
    World::new(&of_document(&text, &schemas), pond(spec, &json!({})))
}

fn world(entry: &str, spec: &Value) -> World {
    world_with(entry, "", spec)
}

/// Returns the spec as templates see it.
fn seen(cycle: &Cycle) -> Value {
    let map = rendered(cycle, &key("ConfigMap", "seen")).object.to_json();
    serde_json::from_str(map["data"]["spec"].as_str().unwrap()).unwrap()
}

/// Returns the spec that templates see after these rules of `mutation`.
fn completed(rules: &str, spec: &Value) -> Value {
    let entry = format!("mutation:\n  rules:\n{rules}");
    seen(&world(&entry, spec).decide())
}

fn reported(failures: &[Failure]) -> Vec<String> {
    let line = |failure: &Failure| {
        format!(
            "{}: {}: {}",
            failure.reason.as_str(),
            failure.at,
            failure.message
        )
    };
    failures.iter().map(line).collect()
}

/// Returns the conditions except `Ready` and those that follow from it, as `type/reason: message`, and the patched status.
fn conditions(world: &World, cycle: &Cycle) -> (Vec<String>, Value) {
    let mut executed = Executed {
        failures: cycle.failures.clone(),
        ..Executed::default()
    };
    let observed = world.observe();
    let patch = status(
        &world.plan,
        &open_crd_status(),
        &observed,
        &cycle.sources,
        &mut executed,
        at(0),
    );
    let status = patch.unwrap().body.to_json()["status"].clone();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    let all = status["conditions"].as_array().unwrap().iter();
    let line = |one: &Value| {
        assert_eq!(one["observedGeneration"], 4);
        format!(
            "{}/{}: {}",
            text(one, "type"),
            text(one, "reason"),
            text(one, "message")
        )
    };
    (all.map(line).collect(), status)
}

#[test]
fn defaults_are_what_the_definition_takes() {
    let rules = "
    - { field: spec.replicas, default: '2' }
    - { field: spec.port, default: 8080 }
    - { field: spec.tier, default: 7 }
    - { field: spec.open, default: 'true' }
    - { field: spec.more.depth, default: '2.5' }
    - { field: spec.any.text, default: '2' }
    - { field: spec.any.number, default: 2 }
    - { field: spec.any.forced, default: '2', valueType: int }
    - { field: spec.any.of, default: '{{ .metadata.name }}' }";
    let expected = json!({
        "replicas": 2, "port": 8080, "tier": "7", "open": true, "more": { "depth": 2.5 },
        "any": { "text": "2", "number": 2, "forced": 2, "of": "pond" },
    });
    assert_eq!(completed(rules, &json!({})), expected);
}

#[test]
fn a_default_counts_where_nothing_is_and_an_override_always() {
    let rules = "
    - { field: spec.replicas, default: 2 }
    - { field: spec.open, default: true }
    - { field: spec.image, default: nginx }
    - { field: spec.tier, default: silver }
    - { field: spec.port, override: 1 }";
    let spec = json!({ "replicas": 0, "open": false, "image": "", "tier": null, "port": 9 });
    let expected =
        json!({ "replicas": 0, "open": false, "image": "nginx", "tier": "silver", "port": 1 });
    assert_eq!(completed(rules, &spec), expected);
}

#[test]
fn later_rules_see_what_earlier_ones_did() {
    let rules = "
    - { field: spec.tier, default: gold }
    - field: spec.replicas
      default: 5
      when: [{ field: spec.tier, equals: gold }]
    - field: spec.replicas
      override: '{{ add .spec.replicas 1 }}'
      or: [{ field: spec.tier, equals: silver }, { field: spec.tier, equals: gold }]
    - field: spec.port
      override: 1
      when: [{ field: spec.tier, equals: silver }]";
    assert_eq!(
        completed(rules, &json!({})),
        json!({ "tier": "gold", "replicas": 6 })
    );
}

#[test]
fn a_field_may_be_named_by_a_template_and_must_be_one_that_rules_set() {
    let rule = "    - { field: 'spec.any.{{ .spec.tier }}', default: x }";
    assert_eq!(
        completed(rule, &json!({ "tier": "gold" })),
        json!({ "tier": "gold", "any": { "gold": "x" } })
    );
    for (field, message) in [
        (
            "status.x",
            "rules cannot set `status.x`: they set fields of `spec`, labels and annotations",
        ),
        (
            "a..b",
            "`a..b` is not a valid path: a name is missing at byte 1",
        ),
    ] {
        let entry = "mutation: { rules: [{ field: '{{ .spec.tier }}', default: x }] }";
        let cycle = world(entry, &json!({ "tier": field })).decide();
        let [failure] = &cycle.failures[..] else {
            panic!("{:?}", cycle.failures)
        };
        assert_eq!(
            (failure.reason, &*failure.message),
            (Reason::TemplateFailed, message)
        );
        assert_eq!(failure.at, "spec.crds.pond.mutation.rules[0].field");
        assert!(cycle.intents.is_empty());
    }
}

#[test]
fn items_of_lists_are_set_where_they_are() {
    let rules = "
    - { field: 'spec.gates[0].side', default: north }
    - { field: spec.gates.1.side, default: south }
    - { field: 'spec.gates[2].side', default: west }";
    let spec = json!({ "gates": [{ "side": "east" }, {}] });
    assert_eq!(
        completed(rules, &spec),
        json!({ "gates": [{ "side": "east" }, { "side": "south" }] })
    );
    assert_eq!(completed(rules, &json!({})), json!({}));
}

#[test]
fn labels_and_annotations_are_set_for_templates() {
    let entry = "mutation:
  rules:
    - { field: 'metadata.labels[\"a.example/team\"]', default: reeds }
    - { field: metadata.labels.stage, override: test }";
    let world = world(entry, &json!({}));
    let map = rendered(&world.decide(), &key("ConfigMap", "seen"))
        .object
        .to_json();
    let labels: Value = serde_json::from_str(map["data"]["labels"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&labels["a.example/team"], &labels["stage"]),
        (&json!("reeds"), &json!("test"))
    );
}

#[test]
fn what_is_completed_is_reported_and_not_written() {
    let entry = "mutation:
  rules:
    - { field: spec.replicas, default: 2 }
    - { field: spec.image, default: nginx }
    - { field: spec.port, override: 80 }";
    let world = world(entry, &json!({ "image": "own", "port": 80 }));
    let cycle = world.decide();
    assert_eq!(cycle.sources.prepared.normalization, None);
    let (conditions, status) = conditions(&world, &cycle);
    assert_eq!(
        conditions[1..],
        ["Mutated/InMemory: spec.replicas in memory: rules complete it"]
    );
    assert_eq!(status["image"], "own");
    // If no rule changes the resource, nothing is reported.
    let entry = "mutation: { rules: [{ field: spec.replicas, default: 2 }] }";
    let cycle = self::world(entry, &json!({ "replicas": 0 })).decide();
    assert!(cycle.sources.prepared.completed.is_empty());
    assert_eq!(cycle.sources.cr, None);
}

#[test]
fn rules_of_motifs_follow_and_read_their_inputs() {
    let motif = "apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: reeds }
inputs: [{ name: most, type: int, default: 3 }]
admission:
  mutation:
    rules: [{ field: spec.replicas, default: '{{ .inputs.most }}' }]
  validation:
    rules:
      - { field: spec.replicas, equals: '{{ .inputs.most }}', message: 'reeds need {{ .inputs.most }}' }";
    let entry = "imports: [{ motif: reeds, with: { most: 4 } }]
mutation: { rules: [{ field: spec.tier, default: gold }] }
validation: { rules: [{ field: spec.image, exists: true, message: an image }] }";
    let cycle = world_with(entry, motif, &json!({ "image": "x" })).decide();
    assert_eq!(
        seen(&cycle),
        json!({ "image": "x", "tier": "gold", "replicas": 4 })
    );
    let cycle = world_with(entry, motif, &json!({ "replicas": 5 })).decide();
    assert_eq!(
        reported(&cycle.failures),
        [
            "ValidationFailed: spec.image: an image",
            "ValidationFailed: spec.replicas: reeds need 4",
        ]
    );
}
