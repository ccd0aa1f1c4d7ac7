//! The containers of a Pod: the fields with a short form, and those that become fields of the spec.

use serde_json::{Map, Value, json};

use super::{Context, camel, take};

/// Returns the fields of the container of `image`. Fields without a short form stay in `left`.
pub(crate) fn container(
    context: &mut Context,
    part: &[String],
    left: &mut Value,
    made: &mut Map<String, Value>,
) -> Option<()> {
    let image = take(left, "image").filter(Value::is_string)?;
    let image = context.field(part, "image", &image)?;
    made.insert("image".to_owned(), json!(image));
    for (field, short) in [("command", "command"), ("args", "args")] {
        let all_text = |list: &Value| {
            list.as_array()
                .is_some_and(|all| all.iter().all(Value::is_string))
        };
        if left.get(field).is_some_and(all_text) {
            let list = take(left, field)?;
            made.insert(short.to_owned(), context.names.rewritten(&list, field));
        }
    }
    if let Some(directory) = take(left, "workingDir") {
        made.insert(
            "workingDirectory".to_owned(),
            context.names.rewritten(&directory, ""),
        );
    }
    if let Some(Value::Array(env)) = take(left, "env") {
        let env = env.iter().map(|one| variable(context, part, one));
        made.insert("env".to_owned(), Value::Array(env.collect::<Option<_>>()?));
    }
    for list in ["envFrom", "volumeMounts"] {
        if let Some(Value::Array(items)) = take(left, list).filter(|list| list != &json!([])) {
            let items = context.names.rewritten(&Value::Array(items), list);
            made.insert(list.to_owned(), items);
        }
    }
    let resources = left.get("resources").and_then(Value::as_object);
    if resources.is_some_and(|all| {
        all.keys()
            .all(|key| ["requests", "limits"].contains(&key.as_str()))
    }) {
        let resources = take(left, "resources")?;
        if resources != json!({}) {
            made.insert("resources".to_owned(), resources);
        }
    }
    Some(())
}

/// Returns the port of the container, and replaces references to its number.
pub(crate) fn ports(
    context: &mut Context,
    part: &[String],
    left: &mut Value,
    made: &mut Map<String, Value>,
) {
    let Some(ports) = left.get("ports").and_then(Value::as_array).cloned() else {
        return;
    };
    let Some(number) = ports
        .first()
        .and_then(|first| first["containerPort"].as_i64())
    else {
        return;
    };
    let Some(template) = context.field(part, "port", &json!(number)) else {
        return;
    };
    let is_simple = ports.len() == 1
        && ports[0].as_object().is_some_and(|port| {
            port.keys()
                .all(|key| ["containerPort", "protocol"].contains(&key.as_str()))
        });
    if is_simple {
        take(left, "ports");
        made.insert("port".to_owned(), json!(template));
        if let Some(protocol) = ports[0].get("protocol") {
            made.insert("protocol".to_owned(), protocol.clone());
        }
    } else {
        left["ports"][0]["containerPort"] = json!(template);
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        for way in ["httpGet", "tcpSocket"] {
            let place = left.get_mut(probe).and_then(|probe| probe.get_mut(way));
            if let Some(port) = place.and_then(|place| place.get_mut("port"))
                && port.as_i64() == Some(number)
            {
                *port = json!(template);
            }
        }
    }
}

/// Converts a variable, with a plain value as a field of the spec.
fn variable(context: &mut Context, part: &[String], one: &Value) -> Option<Value> {
    let name = one.get("name")?.as_str()?;
    let mut made = context.names.rewritten(one, "env");
    if let Some(value) = one.get("value").and_then(Value::as_str) {
        // A value that refers to other variables or to hosts is not a user's choice.
        let is_plain = made["value"] == json!(value) && !value.contains("$(") && !value.is_empty();
        if is_plain && let Some(template) = context.variable(part, name, value) {
            made["value"] = json!(template);
        }
    }
    Some(made)
}

/// Converts an additional container.
pub(crate) fn sidecar(context: &mut Context, part: &[String], container: &Value) -> Option<Value> {
    let name = container.get("name")?.as_str()?;
    let mut made = context.names.rewritten(container, "containers");
    if let Some(image) = container.get("image").filter(|image| image.is_string()) {
        let field = format!("{}Image", camel(name));
        if let Some(template) = context.field(part, &field, image) {
            made["image"] = json!(template);
        }
    }
    Some(made)
}
