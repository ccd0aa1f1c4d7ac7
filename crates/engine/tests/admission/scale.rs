//! Rules on the number of replicas hold for writes of the subresource `scale` too.

use orkestra_engine::admission::{Operation, PolicyOptions, explain, policies};
use orkestra_object::value::Node;
use orkestra_plan::Plan;
use serde_json::{Value, json};

use super::{cel::Request, denials, generate, judged, plan, policies::refused, review};

/// Rules that read the number of replicas and nothing else, more than that, and nothing of it.
const RULES: &str = "
          - { field: spec.replicas, min: 1, max: 5, message: 'not {{ .spec.replicas }} of {{ .metadata.name }}' }
          - { name: one, field: spec.replicas, notEquals: '4' }
          - { name: growth, field: spec.replicas, min: '{{ .old.spec.replicas }}', message: 'no fewer than {{ .old.spec.replicas }}' }
          - { name: depth, field: spec.replicas, max: '{{ .spec.depth }}' }
          - { field: spec.image, prefix: 'myorg/' }
          - { name: many, field: spec.replicas, max: 2, action: warn, message: 'this is expensive' }";

fn scaled(box_of: &str, rules: &str) -> Plan {
    let mut definition = generate::definition();
    definition["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    });
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
{box_of}
      validation:
        rules:{rules}
"
    );
    plan(&text, &[definition])
}

/// Returns what a write of the subresource contains: 0 is left out.
fn scale(count: i64) -> Value {
    let spec = if count == 0 {
        json!({})
    } else {
        json!({ "replicas": count })
    };
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "a", "namespace": "x" }, "spec": spec })
}

#[test]
fn a_policy_for_scale_says_what_the_evaluator_says_of_the_scaled_object() {
    let plan = scaled("", RULES);
    let nodes = policies(&plan, &PolicyOptions::default());
    let object = |count: i64| {
        json!({
            "metadata": { "name": "a", "namespace": "x" },
            "spec": { "replicas": count, "image": "other", "depth": 3 },
        })
    };
    let is_read = |line: &String| !line.starts_with("depth: ") && !line.starts_with("spec.image: ");
    for (before, after) in [(1, 9), (1, 4), (3, 2), (2, 3), (1, 0), (0, 0), (5, 6)] {
        let request = Request {
            operation: "UPDATE",
            object: &scale(after),
            old: &scale(before),
            user: "somebody",
            options: &Value::Null,
        };
        let verdict = judged(
            &plan.operators[0],
            &review(Operation::Update, &object(after), &object(before)),
        );
        let expected: Vec<String> = denials(&verdict).into_iter().filter(is_read).collect();
        let expected: Vec<String> = (!expected.is_empty())
            .then(|| expected.join("; "))
            .into_iter()
            .collect();
        let found = refused(&nodes, "deny-scale.", &request);
        assert_eq!(found, expected, "{before} to {after}");
        let warned = refused(&nodes, "warn-scale.", &request);
        assert_eq!(warned, verdict.warnings, "{before} to {after}");
    }
}

#[test]
fn it_matches_the_subresource_of_each_version_in_the_operated_namespaces() {
    let plan = scaled("      allowedNamespaces: [x]", RULES);
    let nodes = policies(&plan, &PolicyOptions::default());
    let of_scale = nodes.iter().map(Node::to_json).filter(|node| {
        let name = node["metadata"]["name"].as_str();
        node["kind"] == "ValidatingAdmissionPolicy"
            && name.is_some_and(|name| name.contains("-scale."))
    });
    let of_scale: Vec<Value> = of_scale.collect();
    assert_eq!(of_scale.len(), 2);
    for policy in of_scale {
        let rule = &policy["spec"]["matchConstraints"]["resourceRules"][0];
        assert_eq!(rule["resources"], json!(["ponds/scale"]));
        assert_eq!(rule["apiVersions"], json!(["*"]));
        assert_eq!(rule["operations"], json!(["UPDATE"]));
        let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 1, "{conditions:?}");
        assert_eq!(conditions[0]["name"], "operated-namespaces");
    }
}

#[test]
fn what_a_policy_cannot_see_of_a_scale_is_said() {
    let why = |box_of: &str| -> Vec<(String, bool)> {
        let rows = explain(&scaled(box_of, RULES)).into_iter();
        rows.map(|row| (row.rule, row.why.contains("kubectl scale")))
            .collect()
    };
    let said = |rules: &[(String, bool)]| -> Vec<String> {
        let said = rules.iter().filter(|(_, is_said)| *is_said);
        said.map(|(rule, _)| rule.clone()).collect()
    };
    assert_eq!(said(&why("")), ["depth"]);
    // A `Scale` has no labels.
    let selected = "      labelSelector: { team: a }";
    assert_eq!(
        said(&why(selected)),
        ["spec.replicas", "one", "growth", "depth", "many"]
    );
    let nodes = policies(&scaled(selected, RULES), &PolicyOptions::default());
    let names = nodes.iter().filter_map(|node| node.meta_text("name"));
    assert!(names.into_iter().all(|name| !name.contains("-scale.")));
}
