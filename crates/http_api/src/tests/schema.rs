//! Responses are valid by the `OpenAPI` document.

use super::*;

/// Returns a validator for the schema `name` of the committed document.
fn validator(name: &str) -> jsonschema::Validator {
    let mut document: Value = serde_json::from_str(OPENAPI).unwrap();
    document["$ref"] = format!("#/components/schemas/{name}").into();
    jsonschema::draft202012::new(&document).unwrap()
}

pub(crate) fn judge(name: &str, answer: &Value) {
    let validator = validator(name);
    let errors: Vec<String> = (validator.iter_errors(answer))
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{answer}");
}

#[tokio::test]
async fn answers_are_as_the_openapi_document_says() {
    let child = json!({"metadata": {"name": "one", "namespace": "marsh",
        "annotations": {"orkestra.orkspace.io/child": "Deployment/one"}}, "spec": {"replicas": 2}});
    let answers = BTreeMap::from([
        (
            "/apis/water.example/v1/ponds",
            list_of(&[pond("marsh", "one")], ""),
        ),
        (
            "/apis/apps/v1/namespaces/marsh/deployments",
            list_of(&[child], ""),
        ),
    ]);
    let degraded = OperatorStatus {
        problems: vec![OperatorProblem {
            reason: KatalogReason::Forbidden,
            message: "may not list lakes".to_owned(),
        }],
        degraded: Some(orkestra_operator::health::Degraded {
            since: NOW.parse().unwrap(),
            message: "5 passes in a row failed".to_owned(),
        }),
        ..status()
    };
    let idle = OperatorStatus {
        last_error: None,
        last_pass: None,
        started_at: None,
        ..status()
    };
    let operators = vec![("pond", status()), ("lake", degraded), ("river", idle)];
    let pages = pages(
        vec![katalog("marsh", "reeds", operators)],
        &cluster(answers),
    );
    for (name, path) in [
        ("Summary", "/katalog"),
        ("Operator", "/katalog/pond"),
        ("Operator", "/katalog/lake"),
        ("Health", "/katalog/pond/health"),
        ("Health", "/katalog/lake/health"),
        ("Health", "/katalog/river/health"),
        ("Instances", "/katalog/pond/cr"),
        ("Instances", "/katalog/pond/cr?field=spec"),
        ("Instance", "/katalog/pond/cr/one"),
        ("Error", "/katalog/nothing"),
        ("Error", "/nothing"),
    ] {
        judge(name, &get_json(&pages, path).await.1);
    }
    judge("Summary", &get_json(&two_katalogs(), "/katalog").await.1);
    let ambiguous = get_json(&two_katalogs(), "/katalog/pond").await.1;
    judge("Error", &ambiguous);
}

#[test]
fn the_schemas_refuse_what_is_not_an_answer() {
    for (name, answer) in [
        ("Summary", json!({})),
        ("Operator", json!({"name": 7})),
        ("Health", json!([])),
        (
            "Instances",
            json!({"crd": "pond", "items": [{}], "truncated": false}),
        ),
        ("Instance", json!({"name": "one"})),
        ("Error", json!({"hint": "none"})),
    ] {
        assert!(!validator(name).is_valid(&answer), "{name}: {answer}");
    }
}

#[tokio::test]
async fn the_openapi_document_is_served() {
    let (code, document) = get_json(&two_katalogs(), "/openapi/v3").await;
    assert_eq!((code, &document["openapi"]), (200, &json!("3.1.0")));
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/katalog") && paths.contains_key("/livez"));
}
