//! The custom resource definitions: size, structural schema, nullable types, columns and descriptions.

use super::*;

fn visit(schema: &Value, path: &str, check: &mut impl FnMut(&str, &Map<String, Value>)) {
    let Some(object) = schema.as_object() else {
        return;
    };
    check(path, object);
    for (name, schema) in object
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        visit(schema, &format!("{path}.{name}"), check);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(schema) = object.get(key) {
            visit(schema, &format!("{path}[]"), check);
        }
    }
}

fn schemas() -> [Value; 2] {
    let schema = |crd: &Value| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    [schema(&crds()[0]), schema(&crds()[1])]
}

#[test]
fn the_yaml_is_small_and_always_the_same() {
    assert_eq!(crds_yaml().unwrap(), crds_yaml().unwrap());
    for definition in crds() {
        // `kubectl apply` stores each as compact JSON in an annotation; all annotations of an object together may have 256 KiB.
        let json = serde_json::to_string(&definition).unwrap();
        assert!(json.len() < 245_000, "{} bytes", json.len());
        let yaml = serde_saphyr::to_string(&definition).unwrap();
        let read: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, definition);
        let _: CustomResourceDefinition = serde_json::from_value(read).unwrap();
    }
}

#[test]
fn spec_keeps_what_it_does_not_know_at_every_level() {
    for schema in schemas() {
        assert_eq!(schema[PRESERVE], true);
        let mut levels = 0;
        visit(
            &schema["properties"]["spec"],
            "spec",
            &mut |path, object| {
                levels += 1;
                let either = object.contains_key(INT_OR_STRING);
                assert_eq!(object.contains_key(PRESERVE), !either, "{path}");
                let refuses = ["default", "required", "enum", "format"];
                assert!(
                    refuses.iter().all(|key| !object.contains_key(*key)),
                    "{path}"
                );
                // A schema with a type is nullable, and has exactly one type.
                let kind = object.get("type").and_then(Value::as_str);
                assert!(
                    matches!(kind, None | Some("object" | "array" | "string")),
                    "{path}"
                );
                assert_eq!(
                    object.contains_key("nullable"),
                    either || kind.is_some(),
                    "{path}"
                );
                assert!(!(either && kind.is_some()), "{path}");
                assert_eq!(
                    object.contains_key("items"),
                    kind == Some("array"),
                    "{path}"
                );
                let both = object.contains_key("properties")
                    && object.contains_key("additionalProperties");
                assert!(!both, "{path}");
            },
        );
        assert!(levels > 100, "{levels}");
    }
}

#[test]
fn explain_says_what_a_field_takes() {
    let spec = &schemas()[0]["properties"]["spec"]["properties"];
    let entry = &spec["crds"]["additionalProperties"]["properties"];
    let says = |field: &Value, words: &str| {
        let text = field["description"].as_str().unwrap();
        assert!(text.ends_with(words), "{text}");
    };
    says(&entry["workers"], " Integer, 1 to 1000.");
    says(&entry["enabled"], " Boolean.");
    let reconciler = &entry["operatorBox"]["properties"]["reconciler"]["properties"];
    says(&reconciler["resync"], " Duration.");
    says(&spec["deletionPolicy"], "One of: keep, delete.");
    assert_eq!(spec["deletionPolicy"]["type"], "string");
    assert_eq!(entry["operatorBox"]["type"], "object");
    assert_eq!(entry["crFiles"]["type"], "array");
    assert_eq!(entry["workers"][INT_OR_STRING], true);
}

#[test]
fn status_is_typed_and_starts_as_never_observed() {
    let status = &schemas()[0]["properties"]["status"];
    assert_eq!(status["default"], json!({ "observedGeneration": -1 }));
    visit(status, "status", &mut |path, object| {
        assert!(object.contains_key("type"), "{path}: {object:?}");
        assert!(
            !object.contains_key("$ref") && !object.contains_key("oneOf"),
            "{path}"
        );
        let format = object.get("format").and_then(Value::as_str);
        assert!(
            matches!(format, None | Some("int64" | "int32")),
            "{path}: {format:?}"
        );
    });
    let conditions = &status["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    let condition = &conditions["items"]["properties"]["status"]["enum"];
    assert_eq!(*condition, json!(["True", "False", "Unknown"]));
}

#[test]
fn the_names_are_those_that_users_type() {
    let crd = &crds()[0];
    assert_eq!(crd["metadata"]["name"], "katalogs.orkestra.orkspace.io");
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["kat"]));
    assert_eq!(crd["spec"]["names"]["categories"], json!(["orkestra"]));
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = columns.iter().filter_map(|c| c["name"].as_str()).collect();
    let all = [
        "Ready",
        "Operators",
        "Instances",
        "Reason",
        "Age",
        "Revision",
        "Message",
    ];
    assert_eq!(names, all);
    let wide = columns.iter().filter(|column| column["priority"] == 1);
    assert_eq!(wide.count(), 2, "columns of `kubectl get -o wide`");
}
