//! Objects that select Pods or refer to their workload: Services, Ingresses, autoscalers, budgets.

use serde_json::{Map, Value, json};

use super::{Context, INSTANCE, take, take_at};
use crate::{at, text};

/// Suffixes of a Service's name after the name of its workload.
const SERVICE: &[&str] = &["", "-svc", "-lb", "-headless"];
/// Suffixes of a budget's name after the name of its workload.
const BUDGET: &[&str] = &["", "-pdb"];

/// True if the short forms can select the Pods of a kind.
pub(crate) fn is_served(kind: &str) -> bool {
    ["Deployment", "StatefulSet", "DaemonSet"].contains(&kind)
}

/// Returns the labels by which an object selects Pods, and the suffixes of its name after the name of the workload.
pub(crate) fn selector(object: &Value) -> Option<(Map<String, Value>, &'static [&'static str])> {
    let labels = |path: &[&str]| at(object, path).and_then(Value::as_object).cloned();
    match object["kind"].as_str()? {
        "Service" => Some((labels(&["spec", "selector"])?, SERVICE)),
        "PodDisruptionBudget" => Some((labels(&["spec", "selector", "matchLabels"])?, BUDGET)),
        _ => None,
    }
}

/// Adds the selector to an entry, unless the short form finds the Pods itself.
fn put_selector(context: &Context, object: &Value, made: &mut Map<String, Value>) -> Option<()> {
    let (labels, endings) = selector(object)?;
    let name = text(object, &["metadata", "name"])?;
    if context.is_found(name, endings, &labels) {
        return Some(());
    }
    let mut written = context.labels(&Value::Object(labels.clone()));
    if !context.matching(&labels).is_empty() {
        written.insert(INSTANCE.to_owned(), json!("{{ .metadata.name }}"));
    }
    made.insert("selector".to_owned(), Value::Object(written));
    Some(())
}

/// Converts a Service that selects Pods.
pub(crate) fn service(context: &mut Context, object: &Value) -> Option<Map<String, Value>> {
    let mut made = context.named(object);
    put_selector(context, object, &mut made)?;
    let mut rest = object.clone();
    take_at(&mut rest, &["spec", "selector"]);
    let spec = rest.get_mut("spec")?;
    match take(spec, "type") {
        Some(type_) if type_ == "ExternalName" => return None,
        Some(type_) => {
            made.insert("type".to_owned(), type_);
        }
        None => {}
    }
    if spec
        .get("clusterIP")
        .is_some_and(|address| address == "None")
    {
        take(spec, "clusterIP");
        take(spec, "clusterIPs");
        if made
            .remove("type")
            .is_some_and(|type_| type_ != "ClusterIP")
        {
            return None;
        }
        made.insert("headless".to_owned(), json!(true));
    }
    let part = owner(context, object);
    let ports = take(spec, "ports").unwrap_or_else(|| json!([]));
    let ports: Vec<Value> = ports
        .as_array()?
        .iter()
        .map(|port| self::port(context, &part, port))
        .collect::<Option<_>>()?;
    match &ports[..] {
        [] => {}
        [only]
            if only
                .as_object()?
                .keys()
                .all(|key| ["port", "targetPort", "protocol"].contains(&key.as_str())) =>
        {
            made.extend(only.as_object()?.clone());
        }
        _ => {
            made.insert("ports".to_owned(), json!(ports));
        }
    }
    // Without a port, the short form uses that of its workload.
    if ports.is_empty() {
        return None;
    }
    context.patch(rest, &mut made);
    Some(made)
}

/// Returns the path of the fields of the workload that an object selects.
fn owner(context: &Context, object: &Value) -> Vec<String> {
    let found = selector(object)
        .map(|(labels, _)| labels)
        .unwrap_or_default();
    match context.matching(&found)[..] {
        [(kind, name, _)] => context
            .parts
            .get(&(kind.clone(), name.clone()))
            .cloned()
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn port(context: &mut Context, part: &[String], declared: &Value) -> Option<Value> {
    const KNOWN: [&str; 5] = ["name", "nodePort", "port", "protocol", "targetPort"];
    let fields = declared.as_object()?;
    if fields.keys().any(|key| !KNOWN.contains(&key.as_str())) {
        return None;
    }
    let mut made = declared.clone();
    // The port of the Pods is a field already, if it is that of the container.
    let number = declared
        .get("targetPort")
        .or_else(|| declared.get("port"))?;
    let path = part.iter().map(String::as_str).chain(["port"]);
    let known = context.fields.values();
    let field = path.clone().try_fold(&known, |value, key| value.get(key));
    if number.is_i64() && field == Some(number) {
        let template = context.fields.add(&path.collect::<Vec<_>>(), number)?;
        made["targetPort"] = json!(template);
    }
    Some(made)
}

/// Converts an Ingress with one rule and one path.
pub(crate) fn ingress(context: &mut Context, object: &Value) -> Option<Map<String, Value>> {
    let mut made = context.named(object);
    let mut rest = object.clone();
    let class = take_at(&mut rest, &["spec", "ingressClassName"]);
    let rules = take_at(&mut rest, &["spec", "rules"])?;
    let [rule] = rules.as_array()?.as_slice() else {
        return None;
    };
    let mut rule = rule.clone();
    let host = take(&mut rule, "host");
    let paths = take_at(&mut rule, &["http", "paths"])?;
    let [path] = paths.as_array()?.as_slice() else {
        return None;
    };
    let mut path = path.clone();
    let service = text(&path, &["backend", "service", "name"])?.to_owned();
    let port = take_at(&mut path, &["backend", "service", "port"])?;
    let port = port.get("number").or_else(|| port.get("name"))?.clone();
    let named = context
        .names
        .rewritten(&json!({ "service": { "name": service } }), "backend");
    take_at(&mut path, &["backend", "service", "name"]);
    let location = take(&mut path, "path");
    let type_ = take(&mut path, "pathType");
    let is_all = path == json!({ "backend": { "service": {} } }) && rule == json!({ "http": {} });
    // The short form has its own defaults for both.
    if !is_all || location.is_none() || type_.is_none() {
        return None;
    }
    made.insert("serviceName".to_owned(), named["service"]["name"].clone());
    made.insert("servicePort".to_owned(), port);
    let host = host.map(|host| hosted(context, &host));
    for (field, value) in [
        ("host", host),
        ("path", location),
        ("pathType", type_),
        ("className", class),
    ] {
        if let Some(value) = value {
            made.insert(field.to_owned(), value);
        }
    }
    if let Some(tls) = take_at(&mut rest, &["spec", "tls"]) {
        made.insert("tls".to_owned(), encryption(context, &tls)?);
    }
    context.patch(rest, &mut made);
    Some(made)
}

/// Converts a host to a field of the spec, where possible.
pub(crate) fn hosted(context: &mut Context, host: &Value) -> Value {
    for field in ["host", "host2", "host3", "host4"] {
        if let Some(template) = context.field(&[], field, host) {
            return json!(template);
        }
    }
    context.names.rewritten(host, "")
}

fn encryption(context: &mut Context, tls: &Value) -> Option<Value> {
    let [only] = tls.as_array()?.as_slice() else {
        return None;
    };
    let fields = only.as_object()?;
    let hosts = fields.get("hosts")?.as_array()?;
    if fields
        .keys()
        .any(|key| !["hosts", "secretName"].contains(&key.as_str()))
        || hosts.is_empty()
    {
        return None;
    }
    let mut made = context.names.rewritten(only, "tls");
    made["hosts"] = hosts.iter().map(|host| hosted(context, host)).collect();
    Some(made)
}

/// Converts an autoscaler. Metrics other than CPU are patched.
pub(crate) fn autoscaler(context: &mut Context, object: &Value) -> Option<Map<String, Value>> {
    let mut made = context.named(object);
    let mut rest = object.clone();
    let target = take_at(&mut rest, &["spec", "scaleTargetRef"])?;
    let known = |key: &String| ["apiVersion", "kind", "name"].contains(&key.as_str());
    let fields = target.as_object()?;
    if fields.len() != 3 || !fields.keys().all(known) {
        return None;
    }
    let part = {
        let key = (
            fields["kind"].as_str()?.to_owned(),
            fields["name"].as_str()?.to_owned(),
        );
        context.parts.get(&key).cloned().unwrap_or_default()
    };
    made.insert(
        "scaleTargetRef".to_owned(),
        context.names.rewritten(&target, "scaleTargetRef"),
    );
    for field in ["minReplicas", "maxReplicas"] {
        let Some(number) = take_at(&mut rest, &["spec", field]) else {
            continue;
        };
        let template = context.field(&part, field, &number);
        made.insert(field.to_owned(), template.map_or(number, Value::String));
    }
    made.get("maxReplicas")?;
    let metrics = at(&rest, &["spec", "metrics"]);
    let cpu = metrics.and_then(cpu);
    if let Some(cpu) = cpu {
        take_at(&mut rest, &["spec", "metrics"]);
        made.insert("targetCPUUtilizationPercentage".to_owned(), cpu);
    }
    context.patch(rest, &mut made);
    Some(made)
}

/// Returns the utilization of the one metric that the short form supports.
fn cpu(metrics: &Value) -> Option<Value> {
    let share = metrics
        .pointer("/0/resource/target/averageUtilization")?
        .clone();
    let simple = json!([{ "type": "Resource", "resource": {
        "name": "cpu", "target": { "type": "Utilization", "averageUtilization": share },
    } }]);
    (*metrics == simple).then_some(share)
}

/// Converts a budget that selects Pods by their labels.
pub(crate) fn budget(context: &mut Context, object: &Value) -> Option<Map<String, Value>> {
    let mut made = context.named(object);
    let mut rest = object.clone();
    let mut selector = take_at(&mut rest, &["spec", "selector"])?;
    take(&mut selector, "matchLabels");
    if selector != json!({}) {
        return None;
    }
    put_selector(context, object, &mut made)?;
    let bounds = ["minAvailable", "maxUnavailable"];
    let found: Vec<_> = bounds
        .into_iter()
        .filter_map(|field| Some((field, take_at(&mut rest, &["spec", field])?)))
        .collect();
    let [(field, bound)] = found.as_slice() else {
        return None;
    };
    made.insert((*field).to_owned(), bound.clone());
    context.patch(rest, &mut made);
    Some(made)
}
