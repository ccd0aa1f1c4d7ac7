//! The samples of the language, as they were published.

use orkestra_engine::admission::{Enforcement, PolicyOptions, explain, policies, protection};
use serde_json::json;

use super::{compiled, convert, created, denials, generate, patched, plan};

const RULES: &str = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata:
  name: sample
security:
  webhooks:
    admission:
      enabled: true
spec:
  crds:
    demo:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      validation:
        rules:
          - field: spec.image
            prefix: "myorg/"
            message: "images must come from the internal registry"
            action: deny

      mutation:
        mutateFirst: true
        rules:
          - field: spec.replicas
            default: "2"
          - field: spec.port
            default: "8080"
"#;

#[test]
fn validation_and_mutation_act_when_a_resource_is_applied() {
    let mut definition = generate::definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["port"] = json!({ "type": "integer" });
    let plan = plan(RULES, &[definition]);
    let pond = |image: &str| json!({ "metadata": { "name": "a", "namespace": "b" }, "spec": { "image": image } });
    let refused = created(&plan.operators[0], &pond("docker.io/nginx"));
    assert_eq!(
        denials(&refused),
        ["spec.image: images must come from the internal registry"]
    );
    let accepted = created(&plan.operators[0], &pond("myorg/nginx"));
    assert!(accepted.is_allowed());
    assert_eq!(
        patched(&pond("myorg/nginx"), &accepted)["spec"],
        json!({ "image": "myorg/nginx", "replicas": 2, "port": 8080 })
    );
    let places: Vec<Enforcement> = explain(&plan).iter().map(|row| row.place).collect();
    assert_eq!(
        places,
        [
            Enforcement::Webhook,
            Enforcement::Webhook,
            Enforcement::Policy
        ]
    );
    assert_eq!(policies(&plan, &PolicyOptions::default()).len(), 2);
}

#[test]
fn conversion_leads_there_and_back() {
    let text = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata:
  name: sample
spec:
  crds:
    demo:
      apiTypes: { group: demo.example.org, version: v1, kind: Demo, plural: demos }
      conversion:
        storageVersion: v2
        paths:
          - from: v1
            to: v2
            spec:
              schedule: "{{ cronToMap .spec.schedule }}"

          - from: v2
            to: v1
            spec:
              schedule: "{{ cronFromMap .spec.schedule }}"
"#;
    let plan = plan(text, &[]);
    let object = json!({
        "apiVersion": "demo.example.org/v1", "kind": "Demo", "metadata": { "name": "a", "labels": { "x": "y" } },
        "spec": { "schedule": "30 3 * * *", "image": "nginx" }, "status": { "phase": "Ready" },
    });
    let there = convert::converted(&plan.conversions[0], &object, "demo.example.org/v2").unwrap();
    assert_eq!(
        there,
        json!({
            "apiVersion": "demo.example.org/v2", "kind": "Demo", "metadata": { "name": "a", "labels": { "x": "y" } },
            "spec": { "schedule": { "minute": "30", "hour": "3", "dayOfMonth": "*", "month": "*", "dayOfWeek": "*" }, "image": "nginx" },
            "status": { "phase": "Ready" },
        })
    );
    let back = convert::converted(&plan.conversions[0], &there, "demo.example.org/v1").unwrap();
    assert_eq!(back, object);
    assert!(
        plan.conversions[0].update_crd
            && plan.conversions[0].definition() == "demos.demo.example.org"
    );
}

#[test]
fn the_sample_of_security_compiles_as_it_is_printed() {
    let text = include_str!("../../../compiler/tests/inputs/document/seed-security.yaml");
    let (plan, warnings) = compiled(text, &[]).unwrap();
    assert_eq!(
        warnings
            .iter()
            .filter(|warning| warning.contains("security"))
            .count(),
        0,
        "{warnings:?}"
    );
    let security = &plan.security;
    let deletion = security.deletion.unwrap();
    assert!(deletion.cleanup && !deletion.strict);
    assert_eq!(
        (
            security.admission,
            security.conversion,
            security.conversion_window
        ),
        (Some(true), Some(true), 100)
    );
    assert!(security.namespaces.is_some());
    let names: Vec<String> = protection(&plan, &PolicyOptions::default())
        .iter()
        .map(|node| node.to_json()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names.len(),
        4,
        "the definition and the resources: {names:?}"
    );
}
