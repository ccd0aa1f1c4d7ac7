//! Requests and answers against the JSON Schemas of the contract.

use jsonschema::Validator;
use orkestra_language::api::hook_contract::{hook_answer_schema, hook_request_schema};
use serde_json::{Value, json};

use super::{answered, config, shop};

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap()
}

#[test]
fn a_request_is_as_its_schema_says() {
    let mut world = shop();
    let answer = json!({ "children": [config("first", "a")] });
    let (cycle, first) = answered(&world, &answer);
    world.execute(cycle, usize::MAX);
    let (_, second) = answered(&world, &answer);
    let schema = validator(hook_request_schema().as_value());
    for request in first.iter().chain(&second) {
        let problems: Vec<String> = schema
            .iter_errors(request)
            .map(|one| one.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?}: {request}");
    }
    let mut wrong = first[0].clone();
    wrong["apiVersion"] = json!("v2");
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn an_answer_is_valid_where_its_schema_says_so() {
    let schema = validator(hook_answer_schema().as_value());
    let object = config("first", "a");
    let valid: [Value; 6] = [
        json!({}),
        json!({ "children": null, "data": [1, { "a": null }], "finalized": false }),
        json!({ "children": [object], "status": { "phase": null }, "requeueAfter": "30s" }),
        json!({ "children": { "configMaps": [{ "name": "a", "data": { "b": 1 } }] } }),
        json!({
            "conditions": [{ "type": "On", "status": "True" }],
            "events": [{ "type": "Warning", "reason": "Slow", "message": "it is" }],
        }),
        json!({ "error": { "message": "no quota", "permanent": true } }),
    ];
    let invalid: [Value; 6] = [
        json!([]),
        json!({ "childern": [] }),
        json!({ "children": [{ "kind": "ConfigMap" }] }),
        json!({ "conditions": [{ "type": "On", "status": "Yes" }] }),
        json!({ "events": [{ "reason": "Slow" }] }),
        json!({ "finalized": "yes" }),
    ];
    let world = shop();
    let is_used = |answer: &Value| {
        let (cycle, _) = answered(&world, answer);
        cycle.failures.is_empty() || answer.get("error").is_some()
    };
    for answer in valid {
        assert!(schema.is_valid(&answer) && is_used(&answer), "{answer}");
    }
    for answer in invalid {
        assert!(!schema.is_valid(&answer) && !is_used(&answer), "{answer}");
    }
}
