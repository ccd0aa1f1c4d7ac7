//! `forEach`: one child for each element of a list or map.

use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::reconcile::reason::Reason;
use orkestra_language::{diagnostics::Diagnostics, document::read_stream};
use orkestra_plan::{KatalogRef, definitions::Schemas};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, rendered, words},
};

const REGIONS: &str = "onReconcile:
  configMaps:
    - name: '{{ .metadata.name }}-{{ .region }}'
      forEach: { field: spec.regions, as: region }
      data: { region: '{{ .item }}', at: '{{ .index }}' }";

fn world(declared: &str, spec: &Value) -> World {
    World::new(&operator(declared), pond(spec, &json!({})))
}

#[test]
fn each_element_of_a_list_makes_a_child_that_reads_it() {
    let mut world = world(REGIONS, &json!({ "regions": ["eu", "us"] }));
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    assert_eq!(
        words(&cycle),
        [
            "apply ConfigMap east/pond-eu",
            "apply ConfigMap east/pond-us"
        ]
    );
    let made = rendered(&cycle, &key("ConfigMap", "pond-us"))
        .object
        .to_json();
    assert_eq!(made["data"], json!({ "region": "us", "at": "1" }));
    world.settle();
}

#[test]
fn a_removed_element_prunes_its_child_and_no_other() {
    let mut world = world(REGIONS, &json!({ "regions": ["eu", "us", "asia"] }));
    world.settle();
    world.cr["spec"]["regions"] = json!(["eu", "us"]);
    assert_eq!(world.pass().written, [key("ConfigMap", "pond-asia")]);
    world.cr["spec"] = json!({});
    assert_eq!(
        world.pass().written.len(),
        2,
        "a missing field must give no elements"
    );
    assert!(world.objects.is_empty());
}

#[test]
fn a_reordered_list_writes_nothing() {
    let declared = REGIONS.replace(", at: '{{ .index }}'", "");
    let mut world = world(&declared, &json!({ "regions": ["eu", "us", "asia"] }));
    world.settle();
    world.cr["spec"]["regions"] = json!(["asia", "eu", "us"]);
    assert_eq!(world.pass().written, []);
}

#[test]
fn each_entry_of_a_map_has_a_key_and_a_value() {
    let declared = "onReconcile:
  configMaps:
    - name: '{{ .metadata.name }}-{{ .item.key }}'
      forEach: { field: spec.pumps.all }
      when: [{ field: item.value.on, equals: true }]
      data: { speed: '{{ .item.value.speed }}' }";
    let pumps = json!({ "pumps": { "all": {
        "b": { "on": true, "speed": 4 }, "a": { "on": true, "speed": 7 }, "c": { "on": false },
    } } });
    let mut world = world(declared, &pumps);
    let cycle = world.decide();
    assert_eq!(
        words(&cycle),
        ["apply ConfigMap east/pond-a", "apply ConfigMap east/pond-b"]
    );
    let made = rendered(&cycle, &key("ConfigMap", "pond-b"))
        .object
        .to_json();
    assert_eq!(made["data"]["speed"], "4");
    world.settle();
    // The gate of one element closes because the user changed the spec.
    world.cr["spec"]["pumps"]["all"]["a"]["on"] = json!(false);
    assert_eq!(world.pass().written, [key("ConfigMap", "pond-a")]);
}

#[test]
fn each_entry_of_a_map_is_its_key_with_the_value_beside_it() {
    let declared = "onReconcile:
  configMaps:
    - name: '{{ .metadata.name }}-{{ .item }}'
      forEach: { field: spec.pumps, as: pump }
      when: [{ field: value.on, equals: true }]
      data: { speed: '{{ .value.speed }}', pump: '{{ .pump }}' }";
    let pumps = json!({ "pumps": {
        "b": { "on": true, "speed": 4 }, "a": { "on": true, "speed": 7 }, "c": { "on": false },
    } });
    let mut world = world(declared, &pumps);
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    assert_eq!(
        words(&cycle),
        ["apply ConfigMap east/pond-a", "apply ConfigMap east/pond-b"]
    );
    let made = rendered(&cycle, &key("ConfigMap", "pond-b"))
        .object
        .to_json();
    assert_eq!(made["data"], json!({ "speed": "4", "pump": "b" }));
    world.settle();
}

#[test]
fn elements_of_one_name_are_an_error_and_delete_nothing() {
    let mut world = world(REGIONS, &json!({ "regions": ["eu", "us"] }));
    world.settle();
    world.cr["spec"]["regions"] = json!(["eu", "eu"]);
    let cycle = world.decide();
    assert_eq!(cycle.failures.len(), 1);
    assert_eq!(cycle.failures[0].reason, Reason::DuplicateChild);
    assert!(cycle.failures[0].message.starts_with("spec.regions[1]: "));
    assert_eq!(words(&cycle), ["apply ConfigMap east/pond-eu"]);
}

#[test]
fn an_element_whose_name_is_illegal_fails_alone() {
    let world = world(REGIONS, &json!({ "regions": ["eu", "Not Legal"] }));
    let cycle = world.decide();
    assert_eq!(words(&cycle), ["apply ConfigMap east/pond-eu"]);
    assert_eq!(cycle.failures[0].reason, Reason::InvalidName);
}

#[test]
fn what_is_neither_list_nor_map_makes_nothing_and_deletes_nothing() {
    let mut world = world(REGIONS, &json!({ "regions": ["eu"] }));
    world.settle();
    world.cr["spec"]["regions"] = json!("eu");
    let cycle = world.decide();
    assert_eq!(cycle.failures[0].reason, Reason::WrongType);
    assert_eq!(words(&cycle), Vec::<String>::new());
    world.cr["spec"]["regions"] = json!((0..1001).collect::<Vec<_>>());
    assert_eq!(world.decide().failures[0].reason, Reason::BudgetExhausted);
}

#[test]
fn what_the_live_world_lists_keeps_its_children_unless_the_entry_says_otherwise() {
    for (on_false, left) in [("", 2), ("onFalse: delete", 1)] {
        let declared = format!(
            "onReconcile:
  configMaps:
    - name: '{{{{ .item }}}}'
      forEach: {{ field: status.nodes }}
      {on_false}"
        );
        let plan = operator(&declared);
        let mut world = World::new(&plan, pond(&json!({}), &json!({ "nodes": ["a", "b"] })));
        world.settle();
        world.cr["status"]["nodes"] = json!(["a"]);
        world.settle();
        assert_eq!(world.objects.len(), left, "{on_false}");
    }
}

#[test]
fn a_job_of_an_element_runs_once() {
    let declared = "onCreate:
  custom:
    - apiVersion: batch/v1
      kind: Job
      metadata: { name: 'load-{{ .item }}' }
      forEach: { field: spec.sets }
      spec: { template: {} }";
    let mut world = world(declared, &json!({ "sets": ["a", "b"] }));
    world.settle();
    world.objects.clear();
    world.cr["spec"]["sets"] = json!(["b", "a", "c"]);
    assert_eq!(world.pass().written, [key("Job.batch", "load-c")]);
}

/// Returns the compiler's problems of an `operatorBox`.
fn problems(declared: &str) -> String {
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
      namespaced: true
      operatorBox:
        onReconcile:
          configMaps:
            - {declared}"
    );
    let (documents, _) = read_stream("katalog.yaml", &text).unwrap();
    let katalog = KatalogRef::new("default".into(), "waters".into());
    let spec = &documents.katalogs[0].spec;
    match compile::katalog(&katalog, spec, &Schemas::default(), &Library::default()) {
        Ok((_, warnings)) => Diagnostics(warnings).to_string(),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn a_name_without_the_element_is_an_error() {
    let found =
        problems("{ name: '{{ .metadata.name }}', forEach: { field: spec.a, as: region } }");
    assert!(
        found.contains("each element of `spec.a` creates the same ConfigMap"),
        "{found}"
    );
    assert!(found.contains("{{ .region }}"), "{found}");
    assert_eq!(
        problems("{ name: a, labels: { at: '{{ .item }}' }, forEach: { field: spec.a } }")
            .matches("creates the same")
            .count(),
        1
    );
    let elsewhere = problems("{ name: a, namespace: '{{ .item }}', forEach: { field: spec.a } }");
    assert!(!elsewhere.contains("creates the same"), "{elsewhere}");
    assert_eq!(
        problems("{ name: 'a-{{ .index }}', forEach: { field: spec.a } }"),
        ""
    );
}

#[test]
fn the_element_is_read_nowhere_else() {
    let found = problems("{ name: '{{ .item }}' }");
    assert!(found.contains("there is no `.item` here"), "{found}");
    for (each, wanted) in [
        (
            "{ field: spec.a, as: spec }",
            "`.spec` already has another meaning",
        ),
        ("{ field: spec.a, as: 'my region' }", "letters, digits"),
        ("{ field: '{{ .spec.a }}' }", "takes a path, not a template"),
        ("{ field: spce.a }", "there is no `.spce`"),
    ] {
        let found = problems(&format!("{{ name: '{{{{ .item }}}}', forEach: {each} }}"));
        assert!(found.contains(wanted), "{each}: {found}");
    }
}

#[test]
fn elements_share_the_data_that_one_entry_may_take() {
    let each = "onReconcile:
  configMaps:
    - name: 'pond-{{ .index }}'
      forEach: { field: spec.regions }
      data: { all: '{{ .spec.text }}' }";
    let regions: Vec<u32> = (0..40).collect();
    let spec = json!({ "regions": regions, "text": "x".repeat(600_000) });
    let cycle = world(each, &spec).decide();
    let made = words(&cycle)
        .iter()
        .filter(|word| word.starts_with("apply"))
        .count();
    assert!((1..=8).contains(&made), "{made} of 600 kB each");
    let reasons: Vec<_> = cycle
        .failures
        .iter()
        .map(|failure| failure.reason)
        .collect();
    assert!(reasons.contains(&Reason::BudgetExhausted), "{reasons:?}");
}
