//! Why a field is as it is: the expression that renders it, and the values that it depends on.

use std::collections::BTreeMap;

use orkestra_engine::reconcile::{
    preview::Assumptions,
    why::{Effect, Input, Origin, Why, why},
};
use orkestra_object::value::{Node, Path};
use orkestra_plan::{ChildKey, OperatorPlan};
use serde_json::{Value, json};

use super::{
    operator::{NAMESPACE, UID, of_document, operator, operator_with, pond},
    world::key,
};

/// Explains a field of a child of a new pond.
fn explain(plan: &OperatorPlan, spec: &Value, child: &ChildKey, path: &str) -> Why {
    let cr = pond(spec, &json!({}));
    explain_with(plan, &cr, &[], child, path).unwrap_or_else(|| panic!("{child} is not made"))
}

fn explain_with(
    plan: &OperatorPlan,
    cr: &Value,
    children: &[Node],
    child: &ChildKey,
    path: &str,
) -> Option<Why> {
    let assumed = Assumptions {
        cr: Node::from(cr),
        children,
        cross: &[],
        version: None,
        calls: &BTreeMap::new(),
        scopes: &BTreeMap::new(),
        now: "2026-03-04T08:00:00Z".parse().unwrap(),
        seen_as: None,
    };
    why(plan, &assumed, (child, &Path::parse(path).unwrap())).unwrap()
}

/// The texts of the expressions.
fn sources(why: &Why) -> Vec<&str> {
    match &why.origin {
        Origin::Expressions(all) => all.iter().map(|one| &*one.source).collect(),
        _ => Vec::new(),
    }
}

/// The fields of the custom resource that decide the value, and those that decide whether the child exists.
fn inputs(why: &Why, effect: Effect) -> Vec<String> {
    let of_effect = why.inputs.iter().filter(|one| one.effect == effect);
    let names = of_effect.map(|one| match &one.input {
        Input::Resource(path) => path.to_string(),
        Input::Object(key, path) => format!("{key} {path}"),
        Input::Cross(..) | Input::Answer(..) => panic!("{one:?}"),
        Input::Time => "time".to_owned(),
    });
    names.collect()
}

fn config(name: &str) -> ChildKey {
    key("ConfigMap", name)
}

#[test]
fn a_template_names_what_decides_now_and_not_what_it_could_read() {
    let plan = operator(
        r#"
onReconcile:
  configMaps:
    - name: own
      when: [{ field: spec.enabled, equals: "true" }]
      data:
        fixed: "1"
        size: "{{ if eq .spec.tier \"gold\" }}{{ .spec.large }}{{ else }}{{ .spec.small | default \"1\" }}{{ end }}"
"#,
    );
    let spec = json!({ "enabled": true, "tier": "iron", "large": "9", "small": "2", "other": "x" });
    let why = explain(&plan, &spec, &config("own"), "data.size");
    assert_eq!(why.value, Some(Node::from("2")));
    assert!(why.entry.ends_with("configMaps[0]"), "{}", why.entry);
    assert_eq!(sources(&why).len(), 1);
    assert_eq!(inputs(&why, Effect::Value), ["spec.small", "spec.tier"]);
    assert_eq!(inputs(&why, Effect::Existence), ["spec.enabled"]);
    let fixed = explain(&plan, &spec, &config("own"), "data.fixed");
    assert_eq!(inputs(&fixed, Effect::Value), [""; 0]);
    let gold = json!({ "enabled": true, "tier": "gold", "large": "9", "small": "2" });
    let why = explain(&plan, &gold, &config("own"), "data.size");
    assert_eq!(inputs(&why, Effect::Value), ["spec.large", "spec.tier"]);
}

#[test]
fn items_of_lists_lead_to_the_entry_that_renders_them() {
    let plan = operator(
        r#"
onReconcile:
  deployments:
    - name: web
      image: "{{ .spec.image }}"
      env: { A: "{{ .spec.absent }}", B: "{{ .spec.b }}" }
      patch:
        spec:
          template:
            spec:
              containers:
                - name: web
                  workingDir: "{{ .spec.folder }}"
                - { name: side, image: "{{ .spec.side }}" }
"#,
    );
    let spec = json!({ "image": "web:1", "b": "2", "folder": "/srv", "side": "side:1" });
    let web = key("Deployment.apps", "web");
    let of = |path: &str| explain(&plan, &spec, &web, &format!("spec.template.spec.{path}"));
    for (path, source, input) in [
        ("containers[0].image", "{{ .spec.image }}", "spec.image"),
        (
            "containers[0].workingDir",
            "{{ .spec.folder }}",
            "spec.folder",
        ),
        ("containers[1].image", "{{ .spec.side }}", "spec.side"),
    ] {
        let why = of(path);
        assert!(sources(&why).contains(&source), "{path}: {:?}", why.origin);
        assert_eq!(inputs(&why, Effect::Value), [input], "{path}");
    }
}

#[test]
fn an_element_of_for_each_depends_on_its_own_item() {
    let plan = operator(
        r#"
onReconcile:
  configMaps:
    - forEach: { field: spec.regions }
      name: "{{ .item.name }}"
      data: { zone: "{{ .item.zone }}", index: "{{ .index }}" }
"#,
    );
    let spec =
        json!({ "regions": [{ "name": "north", "zone": "a" }, { "name": "south", "zone": "b" }] });
    let why = explain(&plan, &spec, &config("south"), "data.zone");
    assert_eq!(sources(&why), ["{{ .item.zone }}"]);
    assert_eq!(inputs(&why, Effect::Value), ["spec.regions[1].zone"]);
    let name = explain(&plan, &spec, &config("south"), "metadata.name");
    assert_eq!(sources(&name), ["{{ .item.name }}"]);
    assert!(inputs(&name, Effect::Value).contains(&"spec.regions[1].name".to_owned()));
}

#[test]
fn inputs_of_motifs_lead_to_the_custom_resource() {
    let text = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      imports: [{ motif: cache, with: { size: "{{ .spec.size }}" } }]
---
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: cache }
inputs: [{ name: size }, { name: mode, default: lru }]
resources:
  configMaps: [{ name: cache, data: { size: "{{ .inputs.size }}", mode: "{{ .inputs.mode }}" } }]
"#;
    let plan = of_document(text, &orkestra_plan::definitions::Schemas::default());
    let why = explain(
        &plan,
        &json!({ "size": "9" }),
        &config("cache"),
        "data.size",
    );
    assert_eq!(sources(&why), ["{{ .inputs.size }}"]);
    assert_eq!(inputs(&why, Effect::Value), ["spec.size"]);
    assert!(why.entry.contains("cache"), "{}", why.entry);
}

#[test]
fn other_objects_count_and_so_does_a_value_that_is_not_set() {
    let plan = operator(
        r#"
onReconcile:
  configMaps: [{ name: own, data: { ready: "{{ .children.deployment.status.readyReplicas }}", mode: "{{ .spec.mode | default \"slow\" }}" } }]
  deployments: [{ name: web, image: "web:1" }]
"#,
    );
    let cr = pond(&json!({}), &json!({}));
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u2", "ownerReferences": [{ "uid": UID, "controller": true }] },
        "spec": {}, "status": { "readyReplicas": 2 },
    });
    let own = config("own");
    let ready = explain_with(&plan, &cr, &[Node::from(&web)], &own, "data.ready").unwrap();
    assert_eq!(ready.value, Some(Node::from("2")));
    let deployment = key("Deployment.apps", "web");
    assert_eq!(
        inputs(&ready, Effect::Value),
        [format!("{deployment} status.readyReplicas")]
    );
    let mode = explain_with(&plan, &cr, &[], &own, "data.mode").unwrap();
    assert_eq!(inputs(&mode, Effect::Value), ["spec.mode"]);
    assert_eq!(mode.inputs[0].value, None);
}

#[test]
fn a_child_that_was_created_once_is_explained_as_it_would_be_created() {
    let plan =
        operator(r#"onCreate: { configMaps: [{ name: own, data: { a: "{{ .spec.a }}" } }] }"#);
    let cr = pond(&json!({ "a": "1" }), &json!({}));
    let own = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "0" },
        "metadata": { "name": "own", "namespace": NAMESPACE, "uid": "u2", "ownerReferences": [{ "uid": UID, "controller": true }] },
    });
    let why = explain_with(&plan, &cr, &[Node::from(&own)], &config("own"), "data.a").unwrap();
    assert!(why.is_past);
    assert_eq!(why.value, Some(Node::from("1")));
    assert_eq!(
        explain_with(&plan, &cr, &[], &config("none"), "data.a"),
        None
    );
}

#[test]
fn a_change_that_a_rule_refuses_is_no_dependency_and_marks_have_no_expression() {
    let plan = operator_with(
        "validation: { rules: [{ field: spec.size, lessThan: 5, message: less than 5 }] }",
        r#"
onReconcile:
  configMaps: [{ name: own, data: { name: "{{ .metadata.name }}" } }]
"#,
    );
    let why = explain(&plan, &json!({ "size": 3 }), &config("own"), "data.name");
    assert_eq!(inputs(&why, Effect::Value), ["metadata.name"]);
    assert_eq!(inputs(&why, Effect::Existence), [""; 0]);
    let mark = "metadata.annotations[\"orkestra.orkspace.io/applied\"]";
    let why = explain(&plan, &json!({ "size": 3 }), &config("own"), mark);
    assert_eq!(why.origin, Origin::Mark);
}
