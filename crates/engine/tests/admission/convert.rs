//! Conversion between versions.

use orkestra_engine::conversion::{ConversionError, convert, convert_json};
use orkestra_object::value::{Node, nesting};
use orkestra_plan::{ConversionPlan, Plan};
use serde_json::{Value, json};

use super::{compiled, generate::Random, plan};

pub(crate) fn converted(
    plan: &ConversionPlan,
    object: &Value,
    desired: &str,
) -> Result<Value, ConversionError> {
    convert(plan, Node::from(object), desired).map(|node| node.to_json())
}

/// Returns a definition with three versions.
fn definition() -> Value {
    let version = |name: &str, storage: bool, required: Value, spec: Value| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "required": required, "properties": spec } } } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {
            "group": "water.example", "scope": "Namespaced", "names": { "kind": "Pond", "plural": "ponds" },
            "versions": [
                version("v1", false, json!([]), json!({ "depth": { "type": "integer" }, "schedule": { "type": "string" }, "fish": { "type": "string" }, "same": { "type": "string" } })),
                version("v2", true, json!([]), json!({
                    "size": { "type": "object", "properties": { "depth": { "type": "integer" } } },
                    "schedule": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "same": { "type": "string" },
                })),
                version("v3", false, json!([]), json!({ "deep": { "type": "string" }, "schedule": { "type": "object", "x-kubernetes-preserve-unknown-fields": true }, "same": { "type": "string" } })),
            ],
        },
    })
}

fn katalog(more: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v2, kind: Pond, plural: ponds }}
      conversion:
        storageVersion: v2
        {more}
        paths:
          - {{ from: v1, to: v2, spec: {{ size.depth: '{{{{ .spec.depth }}}}', schedule: '{{{{ cronToMap .spec.schedule }}}}' }} }}
          - {{ from: v2, to: v1, spec: {{ depth: '{{{{ .spec.size.depth }}}}', schedule: '{{{{ cronFromMap .spec.schedule }}}}' }} }}
          - {{ from: v2, to: v3, spec: {{ deep: '{{{{ .spec.size.depth }}}}' }} }}
          - {{ from: v3, to: v2, spec: {{ size.depth: '{{{{ .spec.deep }}}}' }} }}
"
    )
}

fn preserving() -> Plan {
    plan(&katalog("preserve: true"), &[definition()])
}

#[test]
fn versions_without_a_path_are_converted_through_the_stored_one() {
    let plan = preserving();
    let object = json!({
        "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "a" },
        "spec": { "depth": 3, "schedule": "5 4 * * *", "fish": "pike", "same": "s" },
    });
    let there = converted(&plan.conversions[0], &object, "water.example/v3").unwrap();
    assert_eq!(there["spec"]["deep"], "3");
    assert_eq!(there["spec"].get("fish"), None);
    assert_eq!(there["spec"].get("size"), None);
    let back = converted(&plan.conversions[0], &there, "water.example/v1").unwrap();
    assert_eq!(back, object);
}

#[test]
fn random_objects_are_equal_after_the_way_back() {
    let plan = preserving();
    let conversion = &plan.conversions[0];
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let mut object = json!({ "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "a" }, "spec": {} });
        for (field, values) in [
            ("depth", [json!(0), json!(-7), json!(i64::MAX)]),
            (
                "schedule",
                [
                    json!("30 3 * * *"),
                    json!("*/5 1-3 * 2 MON"),
                    json!("0 0 1 1 0"),
                ],
            ),
            ("fish", [json!(""), json!("größe \"x\""), json!("日本")]),
            ("same", [json!("a"), json!(" "), json!("\n")]),
        ] {
            // The path sets a schedule for every object in which the field is absent.
            if field == "schedule" || !random.once_in(3) {
                object["spec"][field] = random.one(&values).clone();
            }
        }
        for via in ["v2", "v3"] {
            let there = converted(conversion, &object, &format!("water.example/{via}")).unwrap();
            let back = converted(conversion, &there, "water.example/v1").unwrap();
            assert_eq!(back, object, "through {via}: {there:#}");
        }
    }
}

#[test]
fn fields_that_are_lost_are_reported_when_the_katalog_is_compiled() {
    let (_, warnings) = compiled(&katalog("preserve: false"), &[definition()]).unwrap();
    let lost: Vec<&String> = warnings
        .iter()
        .filter(|warning| warning.contains("ORK0422"))
        .collect();
    assert!(
        lost.len() == 1 && lost[0].contains("`spec.fish` of v1 is lost"),
        "{warnings:?}"
    );
    let (_, warnings) = compiled(&katalog("preserve: true"), &[definition()]).unwrap();
    assert!(
        !warnings.iter().any(|warning| warning.contains("ORK0422")),
        "{warnings:?}"
    );
    let mut required = definition();
    required["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] =
        json!(["fish"]);
    let problems = compiled(&katalog(""), &[required]).unwrap_err().to_string();
    assert!(
        problems.contains("it is required in v1")
            && problems.contains("`spec.fish` is required in v1, and nothing sets it"),
        "{problems}"
    );
}

#[test]
fn wrong_declarations_are_refused() {
    for (from, to, expected) in [
        (
            "storageVersion: v2",
            "storageVersion: v9",
            "no version `v9`",
        ),
        ("from: v2, to: v3", "from: v2, to: v1", "declared twice"),
        (
            "from: v3, to: v2",
            "from: v3, to: v3",
            "are the same version",
        ),
        (
            "size.depth: '{{ .spec.depth }}'",
            "sice.depth: '{{ .spec.depth }}'",
            "did you mean `size.depth`",
        ),
        (
            "'{{ .spec.deep }}'",
            "'{{ .children.x }}'",
            "there is no `.children` here",
        ),
        (
            "'{{ .spec.deep }}'",
            "'{{ timeSince .metadata.creationTimestamp }}'",
            "the same result each time",
        ),
        ("from: v2, to: v3", "from: v2, to: v4", "no version `v4`"),
    ] {
        let text = katalog("").replacen(from, to, 1);
        assert_ne!(text, katalog(""), "{from}");
        let problems = compiled(&text, &[definition()]).unwrap_err().to_string();
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
}

#[test]
fn hostile_objects_are_errors_or_results_and_nothing_else() {
    let plan = preserving();
    let conversion = &plan.conversions[0];
    let convert = |object: Value, desired: &str| converted(conversion, &object, desired);
    let other = json!({ "apiVersion": "air.example/v1", "kind": "Pond" });
    assert!(matches!(
        convert(other, "water.example/v2"),
        Err(ConversionError::WrongKind { .. })
    ));
    let unknown = json!({ "apiVersion": "water.example/v7", "kind": "Pond" });
    assert!(matches!(
        convert(unknown, "water.example/v2"),
        Err(ConversionError::NoPath { .. })
    ));
    for spec in [
        json!(null),
        json!([1]),
        json!("text"),
        json!({ "depth": "deep" }),
        json!({ "schedule": { "minute": [] } }),
    ] {
        let object = json!({ "apiVersion": "water.example/v1", "kind": "Pond", "metadata": null, "spec": spec });
        let _ = convert(object, "water.example/v2");
    }
    // A value in the annotation that a user has set applies to fields of the spec only.
    let forged = json!({ "v1": { "metadata.name": "x", "spec.fish": "pike", "spec": 1, "": 2 } })
        .to_string();
    let object = json!({
        "apiVersion": "water.example/v2", "kind": "Pond", "spec": {},
        "metadata": { "name": "a", "annotations": { "orkestra.orkspace.io/conversion": forged } },
    });
    let back = convert(object, "water.example/v1").unwrap();
    assert_eq!(back["metadata"], json!({ "name": "a" }));
    assert_eq!(back["spec"]["fish"], "pike");
    let large = json!({ "apiVersion": "water.example/v1", "kind": "Pond", "metadata": {}, "spec": { "fish": "x".repeat(200_000) } });
    assert!(matches!(
        convert(large, "water.example/v2"),
        Err(ConversionError::TooLarge { .. })
    ));
}

/// Returns the text of an object of this version with this spec.
fn pond(version: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"water.example/{version}","kind":"Pond","metadata":{{"name":"a"}},"spec":{{{spec}}}}}"#
    )
}

/// Returns a list with this number of levels.
fn deep(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn an_object_of_every_legal_depth_is_converted() {
    let plan = preserving();
    let schedule = format!(r#""schedule":{}"#, deep(nesting::MOST_LEVELS - 2));
    // No template of the path from v2 to v3 reads the schedule.
    let stored = pond("v2", &schedule);
    let there = convert_json(&plan.conversions[0], &stored, "water.example/v3").unwrap();
    assert!(there.contains("water.example/v3") && there.contains(&schedule));
    let back = convert_json(&plan.conversions[0], &there, "water.example/v2").unwrap();
    assert!(back.contains("water.example/v2") && back.contains(&schedule));
}

#[test]
fn fields_of_every_legal_depth_are_kept_for_the_way_back() {
    let plan = preserving();
    let deep = deep(9_000);
    // v1 has no `size.fish`, and the path to v1 reads `size.depth` only.
    let object = pond("v2", &format!(r#""size":{{"depth":3,"fish":{deep}}}"#));
    let there = convert_json(&plan.conversions[0], &object, "water.example/v1").unwrap();
    assert!(
        there.contains("orkestra.orkspace.io/conversion\""),
        "{there:.300}"
    );
    let back = convert_json(&plan.conversions[0], &there, "water.example/v2").unwrap();
    assert!(back.contains(&deep), "{back:.300}");
    // A key that occurs twice in the text does not hide the depth of a field.
    let twice = there.replacen(
        r#""metadata":"#,
        r#""metadata":{"name":"a"},"metadata":"#,
        1,
    );
    let back = convert_json(&plan.conversions[0], &twice, "water.example/v2").unwrap();
    assert!(back.contains(&deep), "{back:.300}");
}

#[test]
fn a_stored_object_that_cannot_be_converted_is_marked_and_not_converted_back() {
    let plan = preserving();
    let conversion = &plan.conversions[0];
    let large = format!(r#""size":{{"depth":3,"fish":"{}"}}"#, "x".repeat(200_000));
    let deep = format!(r#""schedule":{}"#, deep(500));
    for (spec, why) in [
        (r#""size":{"depth":"abc"}"#, "depth"),
        (&deep, "nested"),
        (&large, "200"),
    ] {
        let stored = pond("v2", &format!(r#""same":"s",{spec}"#));
        let read = convert_json(conversion, &stored, "water.example/v1").unwrap();
        let read: Value = serde_json::from_str(&read).unwrap();
        assert_eq!(read["apiVersion"], "water.example/v1");
        assert_eq!(
            read["spec"],
            json!({ "same": "s" }),
            "only fields outside the path may be set"
        );
        let mark = &read["metadata"]["annotations"]["orkestra.orkspace.io/conversion-failed"];
        assert!(mark.as_str().unwrap().contains(why), "{mark}");

        let back = convert_json(conversion, &read.to_string(), "water.example/v2").unwrap_err();
        assert!(matches!(back, ConversionError::Incomplete { .. }), "{back}");
        for part in ["v1", "v2", why, "conversion-failed"] {
            assert!(back.to_string().contains(part), "{part}: {back}");
        }
        // The same holds for a conversion through the stored version.
        convert_json(conversion, &read.to_string(), "water.example/v3").unwrap_err();
    }
    // A write is refused, so that no object is stored without its content.
    let written = pond("v1", &deep);
    let refused = convert_json(conversion, &written, "water.example/v2").unwrap_err();
    assert!(
        matches!(refused, ConversionError::ReadsUnreadable { .. }),
        "{refused}"
    );
    // In the stored version the annotation has no effect, even if a user has set it.
    let forged = json!({
        "apiVersion": "water.example/v2", "kind": "Pond",
        "metadata": { "name": "a", "annotations": { "orkestra.orkspace.io/conversion-failed": "no" } },
        "spec": { "size": { "depth": 3 } },
    });
    let read = convert_json(conversion, &forged.to_string(), "water.example/v1").unwrap();
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(read["spec"]["depth"], 3);
    assert_eq!(read["metadata"].get("annotations"), None);
}
