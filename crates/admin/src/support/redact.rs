//! Takes values that may be secret out of objects and logs.

use serde_json::{Map, Value, json};

/// What stands for a value that was taken out.
const HIDDEN: &str = "***";

/// Parts of the names of fields whose literal values are taken out, in lower case and without `-` and `_`.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "credential",
    "authorization",
    "bearer",
];

/// Fields of a shorthand Secret that hold values.
const SECRET_DATA: [&str; 2] = ["data", "stringData"];

/// An object as it is kept: without managed fields and copies of itself, and without literal values that may be secret.
pub(crate) fn object(mut object: Value) -> Value {
    strip_metadata(&mut object);
    hide(&mut object);
    object
}

/// Removes what repeats the object: managed fields, and kubectl's annotation.
fn strip_metadata(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => hide_fields(fields),
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

fn hide_fields(fields: &mut Map<String, Value>) {
    // An environment variable, a header or a parameter has its name in a field.
    let named = fields.get("name").and_then(Value::as_str);
    if named.is_some_and(is_secret)
        && let Some(value) = fields.get_mut("value")
    {
        hide_literals(value);
    }
    if fields.get("kind").is_some_and(|kind| kind == "Secret") {
        hide_data(fields);
    }
    for (name, value) in fields {
        if name == "secrets" {
            for item in value.as_array_mut().into_iter().flatten() {
                if let Some(item) = item.as_object_mut() {
                    hide_data(item);
                }
            }
        }
        if is_secret(name) && !value.is_object() && !value.is_array() {
            hide_literals(value);
        } else {
            hide(value);
        }
    }
}

fn hide_data(fields: &mut Map<String, Value>) {
    for name in SECRET_DATA {
        if let Some(data) = fields.get_mut(name) {
            hide_literals(data);
        }
    }
}

/// Takes out every scalar, except texts that are one template: these say where a value comes from.
fn hide_literals(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide_literals),
        Value::Array(items) => items.iter_mut().for_each(hide_literals),
        Value::String(text) if is_reference(text) => {}
        Value::Null | Value::Bool(_) => {}
        _ => *value = HIDDEN.into(),
    }
}

/// A template without quoted text: `{{ .spec.x }}`.
fn is_reference(text: &str) -> bool {
    let text = text.trim();
    let inner = text
        .strip_prefix("{{")
        .and_then(|text| text.strip_suffix("}}"));
    inner.is_some_and(|inner| !inner.contains(['{', '}', '"', '`', '\'']))
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_lowercase();
    SECRET_NAMES.iter().any(|part| plain.contains(part))
        // The name of a Secret is no secret.
        && !["secretname", "secretref", "secretkeyref", "secretnames"].contains(&&*plain)
        && !plain.ends_with("secretname")
}

/// A custom resource as it is kept: whose it is, how far it is, and nothing that a user wrote into it.
pub(crate) fn instance(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let kept = [
        "name",
        "namespace",
        "uid",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
    ];
    let kept = kept
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), metadata.get(*field)?.clone())));
    let status = &object["status"];
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": kept.collect::<Map<_, _>>(),
        "status": {
            "observedGeneration": status["observedGeneration"],
            "conditions": status["conditions"],
        },
    })
}

/// A CRD as it is kept: without its schemas, which may be a megabyte.
pub(crate) fn definition(mut crd: Value) -> Value {
    strip_metadata(&mut crd);
    let versions = crd["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        if let Some(version) = version.as_object_mut() {
            version.remove("schema");
        }
    }
    crd
}

/// A log without tokens, and without credentials in URLs.
pub(crate) fn log(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for line in text.lines() {
        let mut after_scheme = false;
        for word in line.split_inclusive(char::is_whitespace) {
            let bare = word.trim_end();
            let end = &word[bare.len()..];
            if after_scheme || is_token(bare) {
                lines.push_str(HIDDEN);
            } else {
                lines.push_str(&without_userinfo(bare));
            }
            lines.push_str(end);
            let scheme = bare.rsplit(['"', '=', ':']).next().unwrap_or_default();
            after_scheme = !after_scheme && ["bearer", "basic"].contains(&&*scheme.to_lowercase());
        }
        lines.push('\n');
    }
    lines
}

/// A JSON Web Token, anywhere in a word.
fn is_token(word: &str) -> bool {
    word.find("eyJ").is_some_and(|at| {
        let dots = word[at..].split('.').take(2);
        dots.clone().count() == 2 && dots.map(str::len).all(|bytes| bytes > 8)
    })
}

fn without_userinfo(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let host_end = rest.find(['/', '?', '"']).unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_secrets_go_and_templates_stay() {
        let katalog = json!({
            "kind": "Katalog",
            "metadata": {
                "name": "a",
                "managedFields": [{}],
                "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "hunter2", "kept": "yes" },
            },
            "spec": { "crds": { "pond": { "operatorBox": { "onReconcile": {
                "secrets": [{ "name": "db", "stringData": { "user": "hunter2", "key": "{{ .spec.key }}", "mixed": "{{ \"hunter2\" }}" } }],
                "custom": [{ "kind": "Secret", "data": { "x": "aHVudGVyMg==" } }],
                "deployments": [{ "env": [
                    { "name": "DB_PASSWORD", "value": "hunter2" },
                    { "name": "LEVEL", "value": "info" },
                    { "name": "FROM", "valueFrom": { "secretKeyRef": { "name": "db", "key": "x" } } },
                ], "imagePullSecret": "hunter2", "secretName": "db" }],
            } } } } },
        });
        let kept = object(katalog);
        let text = kept.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
            "{text}"
        );
        for part in [
            "{{ .spec.key }}",
            "\"info\"",
            "\"secretName\":\"db\"",
            "\"kept\":\"yes\"",
            "secretKeyRef",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(kept["metadata"].get("managedFields").is_none());
    }

    #[test]
    fn of_a_custom_resource_only_metadata_and_conditions_are_kept() {
        let pond = json!({
            "apiVersion": "a/v1", "kind": "Pond",
            "metadata": { "name": "a", "labels": { "secret": "hunter2" }, "finalizers": ["x"] },
            "spec": { "anything": "hunter2" },
            "status": { "endpoint": "hunter2", "conditions": [{ "type": "Ready" }] },
        });
        let kept = instance(&pond);
        assert!(!kept.to_string().contains("hunter2"), "{kept}");
        assert_eq!(kept["status"]["conditions"][0]["type"], "Ready");
        assert_eq!(kept["metadata"]["finalizers"][0], "x");
    }

    #[test]
    fn logs_lose_tokens_and_credentials() {
        let text = "level=info url=https://user:hunter2@host/a sent Authorization: Bearer hunter2 done\n\
                    {\"token\":\"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.c2ln\"} after\n";
        let kept = log(text);
        assert!(!kept.contains("hunter2") && !kept.contains("eyJ"), "{kept}");
        assert!(
            kept.contains("https://***@host/a") && kept.ends_with(" after\n"),
            "{kept}"
        );
        assert!(kept.contains("done"), "{kept}");
    }
}
