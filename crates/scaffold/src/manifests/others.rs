//! Configuration, accounts, roles, storage, and objects of any kind.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Context, network::hosted, take, take_at, title};
use crate::text;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

type Entry = Option<(&'static str, Map<String, Value>)>;

/// Converts an object that has a short form.
pub(crate) fn short(context: &mut Context, object: &Value, kind: &str, version: &str) -> Entry {
    let mut rest = object.clone();
    let mut made = context.named(object);
    let list = match (kind, version) {
        ("ConfigMap", "v1") => {
            config(context, &mut rest, &mut made)?;
            "configMaps"
        }
        ("Secret", "v1") => {
            secret(context, object, &mut rest, &mut made)?;
            "secrets"
        }
        ("ServiceAccount", "v1") => "serviceAccounts",
        ("PersistentVolumeClaim", "v1") => {
            claim(context, object, &mut rest, &mut made)?;
            "persistentVolumeClaims"
        }
        ("Role", RBAC) => {
            rules(&mut rest, &mut made)?;
            "roles"
        }
        ("ClusterRole", RBAC) => {
            rules(&mut rest, &mut made)?;
            "clusterRoles"
        }
        ("RoleBinding", RBAC) => {
            binding(context, &mut rest, &mut made)?;
            "roleBindings"
        }
        ("ClusterRoleBinding", RBAC) => {
            binding(context, &mut rest, &mut made)?;
            "clusterRoleBindings"
        }
        _ => return None,
    };
    context.patch(rest, &mut made);
    Some((list, made))
}

/// Converts an object in full.
pub(crate) fn custom(context: &mut Context, object: &Value) -> Map<String, Value> {
    const HANDLING: [&str; 12] = [
        "adopt",
        "anyOf",
        "forEach",
        "forceConflict",
        "hasStatus",
        "namespaced",
        "onFalse",
        "onImmutable",
        "or",
        "reconcile",
        "sleep",
        "when",
    ];
    let mut metadata = context.named(object);
    let mut made = Map::new();
    let mut lost = String::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "metadata" => {}
            "apiVersion" | "kind" => {
                made.insert(key.clone(), value.clone());
            }
            key if HANDLING.contains(&key) => {
                let _ = write!(lost, " `{key}`");
            }
            _ => {
                let wrapped = context.names.rewritten(&json!({ key.as_str(): value }), "");
                let mut value = wrapped[key].clone();
                if object["kind"] == "Ingress" {
                    value = with_hosts(context, &value);
                }
                made.insert(key.clone(), value);
            }
        }
    }
    if !lost.is_empty() {
        let note = format!(
            "{}:{lost}: entries of `custom` have fields of that name",
            title(object)
        );
        context.left.push(note);
    }
    metadata.retain(|_, value| !value.is_null());
    made.insert("metadata".to_owned(), Value::Object(metadata));
    made
}

/// Converts the hosts in the spec of an Ingress to fields.
fn with_hosts(context: &mut Context, spec: &Value) -> Value {
    let mut spec = spec.clone();
    let rules = spec.get_mut("rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let host = rule.get_mut("host");
        if let Some(host) = host.filter(|host| !host.to_string().contains("{{")) {
            *host = hosted(context, host);
        }
    }
    spec
}

fn config(context: &Context, rest: &mut Value, made: &mut Map<String, Value>) -> Option<()> {
    let data = take(rest, "data").unwrap_or_else(|| json!({}));
    let data = data.as_object()?;
    if data.values().any(|text| !text.is_string()) {
        return None;
    }
    let texts = data.iter().map(|(key, value)| {
        let text = value.as_str().unwrap_or_default();
        (key.clone(), json!(context.names.with_hosts(text, key)))
    });
    made.insert("data".to_owned(), Value::Object(texts.collect()));
    Some(())
}

fn secret(
    context: &mut Context,
    object: &Value,
    rest: &mut Value,
    made: &mut Map<String, Value>,
) -> Option<()> {
    let mut texts = Map::new();
    let encoded = take(rest, "data").unwrap_or_else(|| json!({}));
    for (key, value) in encoded.as_object()? {
        let bytes = STANDARD.decode(value.as_str()?.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        texts.insert(key.clone(), json!(context.names.with_hosts(&text, key)));
    }
    let plain = take(rest, "stringData").unwrap_or_else(|| json!({}));
    for (key, value) in plain.as_object()? {
        let text = context.names.with_hosts(value.as_str()?, key);
        texts.insert(key.clone(), json!(text));
    }
    if !texts.is_empty() {
        let note = format!(
            "{}: its values are in the Katalog in plain text, and are the same for all custom resources; generate them (`once: true`) or copy them (`fromSecret`)",
            title(object)
        );
        context.left.push(note);
    }
    made.insert("data".to_owned(), Value::Object(texts));
    if let Some(type_) = take(rest, "type") {
        made.insert("type".to_owned(), type_);
    }
    Some(())
}

fn claim(
    context: &mut Context,
    object: &Value,
    rest: &mut Value,
    made: &mut Map<String, Value>,
) -> Option<()> {
    let storage = take_at(rest, &["spec", "resources", "requests", "storage"])?;
    let part = context.part(object);
    let template = context.field(&part, "storage", &storage);
    made.insert(
        "storage".to_owned(),
        template.map_or(storage, Value::String),
    );
    // The short form has a default.
    let modes = take_at(rest, &["spec", "accessModes"])?;
    modes.as_array().filter(|modes| !modes.is_empty())?;
    made.insert("accessModes".to_owned(), modes);
    for field in ["storageClassName", "volumeMode", "volumeName"] {
        if let Some(value) = take_at(rest, &["spec", field]) {
            // An empty class means none, which the short form cannot express.
            if value == "" {
                return None;
            }
            made.insert(field.to_owned(), value);
        }
    }
    let resources = rest.pointer_mut("/spec/resources")?;
    if resources == &json!({ "requests": {} }) {
        take_at(rest, &["spec", "resources"]);
    }
    Some(())
}

fn rules(rest: &mut Value, made: &mut Map<String, Value>) -> Option<()> {
    const KNOWN: [&str; 4] = ["apiGroups", "resourceNames", "resources", "verbs"];
    let rules = take(rest, "rules")?;
    let full = |rule: &Value| {
        let has = |field: &str| rule[field].as_array().is_some_and(|all| !all.is_empty());
        let known = rule
            .as_object()
            .is_some_and(|rule| rule.keys().all(|key| KNOWN.contains(&key.as_str())));
        known && has("apiGroups") && has("resources") && has("verbs")
    };
    // An aggregated role has no rules of its own.
    if rest.get("aggregationRule").is_some()
        || !rules
            .as_array()
            .is_some_and(|all| !all.is_empty() && all.iter().all(full))
    {
        return None;
    }
    made.insert("rules".to_owned(), rules);
    Some(())
}

fn binding(context: &Context, rest: &mut Value, made: &mut Map<String, Value>) -> Option<()> {
    let mut role = take(rest, "roleRef")?;
    take(&mut role, "apiGroup");
    let subjects = take(rest, "subjects")?;
    let mut subjects = subjects.as_array().filter(|all| !all.is_empty())?.clone();
    for subject in &mut subjects {
        take(subject, "apiGroup");
        let namespace = text(subject, &["namespace"]);
        if namespace.is_some() && namespace == context.namespace.as_deref() {
            take(subject, "namespace");
        }
    }
    made.insert(
        "roleRef".to_owned(),
        context.names.rewritten(&role, "roleRef"),
    );
    let subjects = context.names.rewritten(&json!(subjects), "subjects");
    made.insert("subjects".to_owned(), subjects);
    Some(())
}
