//! Children of Motifs, with the inputs of each import.

use orkestra_engine::reconcile::{
    reason::Reason,
    status::status,
    step::{Cycle, Intent},
    template_data::TemplateData,
    verdict::Executed,
};
use orkestra_plan::definitions::Schemas;
use serde_json::{Value, json};

use super::{
    operator::{of_document, open_crd_status, pond},
    report::at,
    world::{World, key, rendered, words},
};

const MOTIFS: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: reeds }
inputs:
  - { name: height, type: int, default: 7 }
  - { name: name, required: true }
imports:
  - motif: mud
    with: { of: '{{ .inputs.name }}-{{ .inputs.height }}' }
resources:
  configMaps:
    - name: '{{ .inputs.name }}'
      data: { height: '{{ .inputs.height }}', pond: '{{ .metadata.name }}' }
status:
  fields:
    - { path: reeds.height, value: '{{ .inputs.height }}' }
---
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: mud }
inputs: [{ name: of }, { name: deep, default: '{{ .spec.depth }}' }]
notes: [{ name: label, expression: '{{ .inputs.of }} {{ .inputs.deep }}' }]
resources:
  configMaps:
    - name: 'mud-{{ .inputs.of }}'
      when: [{ field: inputs.deep, exists: true }]
      data: { label: '{{ label }}' }
";

/// Returns a world whose operator has these imports.
fn world(imports: &str, spec: &Value) -> World {
    let imports: Vec<String> = imports
        .lines()
        .map(|line| format!("        {line}"))
        .collect();
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
      imports:
{}
      operatorBox: {{ onReconcile: {{ configMaps: [{{ name: own }}] }} }}
---{}",
        imports.join("\n"),
        MOTIFS
    );
    World::new(
        &of_document(&text, &Schemas::default()),
        pond(spec, &json!({})),
    )
}

fn data(cycle: &Cycle, name: &str) -> Value {
    rendered(cycle, &key("ConfigMap", name)).object.to_json()["data"].clone()
}

fn names(cycle: &Cycle) -> Vec<String> {
    let made = cycle.intents.iter().filter_map(|intent| match intent {
        Intent::Apply(rendered) => Some(rendered.key.object.name.to_string()),
        _ => None,
    });
    made.collect()
}

#[test]
fn each_import_has_inputs_of_its_own_evaluated_on_the_custom_resource() {
    let world = world(
        "- { motif: reeds, with: { name: '{{ .spec.side }}', height: '{{ .spec.height }}' } }",
        &json!({ "side": "left", "height": "4", "depth": "9" }),
    );
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    assert_eq!(names(&cycle), ["mud-left-4", "left", "own"]);
    assert_eq!(
        data(&cycle, "left"),
        json!({ "height": "4", "pond": "pond" })
    );
    assert_eq!(data(&cycle, "mud-left-4"), json!({ "label": "left-4 9" }));
}

#[test]
fn what_is_given_and_turns_out_to_be_nothing_leaves_the_default() {
    let world = world(
        "- { motif: reeds, with: { name: left, height: '{{ .spec.height }}' } }",
        &json!({}),
    );
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    // The inner Motif's own default reads a field that does not exist either.
    assert_eq!(names(&cycle), ["left", "own"]);
    assert_eq!(data(&cycle, "left")["height"], "7");
}

#[test]
fn an_input_of_a_wrong_type_fails_once_and_keeps_what_its_import_made() {
    let imports = "- { motif: reeds, with: { name: left, height: '{{ .spec.height }}' } }";
    let mut world = world(imports, &json!({ "height": 4, "depth": 1 }));
    world.settle();
    world.cr["spec"]["height"] = json!("tall");
    let cycle = world.decide();
    let [failure] = &cycle.failures[..] else {
        panic!("{:?}", cycle.failures)
    };
    assert_eq!(failure.reason, Reason::WrongType);
    assert_eq!(failure.at, "spec.crds.pond.imports[0].with.height");
    assert!(failure.message.contains("`height`"), "{}", failure.message);
    // The Katalog's own child is still reconciled, and nothing is deleted.
    assert_eq!(words(&cycle), ["apply ConfigMap east/own"]);
}

#[test]
fn the_status_of_a_motif_has_its_inputs() {
    let world = world(
        "- { motif: reeds, with: { name: left, height: '{{ .spec.height }}' } }",
        &json!({ "height": 5 }),
    );
    let mut executed = Executed::default();
    let patch = status(
        &world.plan,
        &open_crd_status(),
        &world.observe(),
        &TemplateData::default(),
        &mut executed,
        at(1),
    )
    .unwrap();
    assert_eq!(executed.failures, []);
    assert_eq!(patch.body.to_json()["status"]["reeds"]["height"], 5);
}

#[test]
fn a_change_of_what_is_given_or_of_a_note_gives_another_plan() {
    let hash = |imports: &str| world(imports, &json!({})).plan.hash.clone();
    let one = hash("- { motif: reeds, with: { name: left } }");
    assert_eq!(one, hash("- { motif: reeds, with: { name: left } }"));
    assert_ne!(one, hash("- { motif: reeds, with: { name: right } }"));
    assert_ne!(
        one,
        hash("- { motif: reeds, with: { name: left, height: 8 } }")
    );
}

#[test]
fn what_inputs_read_is_kept_of_the_custom_resource() {
    let world = world(
        "- { motif: reeds, with: { name: '{{ .spec.side }}' } }",
        &json!({}),
    );
    let reads: Vec<String> = world
        .plan
        .reads
        .cr
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(reads, ["metadata.name", "spec.depth", "spec.side"]);
}
