//! Kinds with Pods: the first container becomes the entry, and fields without a short form its `patch`.

use serde_json::{Map, Value, json};

use super::{
    Context,
    container::{container, ports, sidecar},
    take, take_at,
};
use crate::at;

/// The position of the Pod in a kind, and the defaults of the short form.
pub(crate) struct PodShape {
    /// The list in a block.
    pub(crate) list: &'static str,
    /// The path of the Pod template.
    template: &'static [&'static str],
    /// True if the Pods keep running. Such Pods have ports and are selected.
    serves: bool,
    /// The restart policy that the short form sets.
    restart: Option<&'static str>,
}

/// Returns the shape of a kind.
pub(crate) fn shape(kind: &str) -> Option<PodShape> {
    const TEMPLATE: &[&str] = &["spec", "template"];
    const RUN: &[&str] = &["spec", "jobTemplate", "spec", "template"];
    let (list, template, serves, restart) = match kind {
        "Deployment" => ("deployments", TEMPLATE, true, None),
        "StatefulSet" => ("statefulSets", TEMPLATE, true, None),
        "DaemonSet" => ("daemonSets", TEMPLATE, true, None),
        "Job" => ("jobs", TEMPLATE, false, Some("Never")),
        "CronJob" => ("cronJobs", RUN, false, Some("OnFailure")),
        _ => return None,
    };
    Some(PodShape {
        list,
        template,
        serves,
        restart,
    })
}

/// Returns the labels of an object's Pods.
pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    let shape = shape(object["kind"].as_str()?)?;
    let template = at(object, shape.template)?;
    at(template, &["metadata", "labels"])?.as_object()
}

/// Converts an object with Pods; `None` if the short form cannot represent it.
pub(crate) fn entry(
    context: &mut Context,
    object: &Value,
    shape: &PodShape,
) -> Option<Map<String, Value>> {
    let part = context.part(object);
    let mut rest = object.clone();
    let mut template = take_at(&mut rest, shape.template)?;
    let mut pod = take(&mut template, "spec")?;
    let Some(Value::Array(containers)) = take(&mut pod, "containers") else {
        return None;
    };
    let (first, others) = containers.split_first()?;
    let mut made = context.named(object);
    let name = made.get("name").cloned()?;
    let mut first = first.clone();
    take(&mut first, "name");
    container(context, &part, &mut first, &mut made)?;
    // Templates are inserted after the text is escaped.
    let mut left = context.names.rewritten(&first, "containers");
    if shape.serves {
        ports(context, &part, &mut left, &mut made);
    }
    let others = others.iter().map(|other| sidecar(context, &part, other));
    let others: Vec<Value> = others.collect::<Option<_>>()?;
    if !others.is_empty() {
        made.insert("containers".to_owned(), json!(others));
    }
    lists(context, &mut pod, shape, &mut made);
    let mut spec = take(&mut rest, "spec").unwrap_or_default();
    take(&mut spec, "selector");
    work(context, &part, object, &mut spec, &mut made);

    let mut patched = json!({});
    if left.as_object().is_some_and(|left| !left.is_empty()) {
        left["name"] = name;
        patched["containers"] = json!([left]);
    }
    merge(&mut patched, context.names.rewritten(&pod, "spec"));
    let metadata = template_metadata(context, object, &template);
    let template = json!({ "metadata": metadata, "spec": patched });
    let mut patch = context.names.rewritten(&json!({ "spec": spec }), "");
    put_template(&mut patch, shape, template);
    prune(&mut patch, true);
    if patch.as_object().is_some_and(|patch| !patch.is_empty()) {
        made.insert("patch".to_owned(), patch);
    }
    Some(made)
}

/// Converts the fields of the Pod that have a short form.
fn lists(context: &Context, pod: &mut Value, shape: &PodShape, made: &mut Map<String, Value>) {
    for list in ["initContainers", "volumes", "imagePullSecrets"] {
        if let Some(Value::Array(items)) = take(pod, list) {
            let items = context.names.rewritten(&Value::Array(items), list);
            made.insert(list.to_owned(), items);
        }
    }
    for field in ["nodeSelector", "serviceAccountName"] {
        if let Some(value) = take(pod, field) {
            let wrapped = context.names.rewritten(&json!({ field: value }), "spec");
            made.insert(field.to_owned(), wrapped[field].clone());
        }
    }
    let restart = pod.get("restartPolicy").and_then(Value::as_str);
    if restart == shape.restart || (shape.restart.is_none() && restart == Some("Always")) {
        take(pod, "restartPolicy");
    } else if restart.is_none() {
        pod["restartPolicy"] = Value::Null;
    }
}

fn put_template(patch: &mut Value, shape: &PodShape, template: Value) {
    let mut place = patch;
    for key in shape.template {
        if !place[*key].is_object() {
            place[*key] = json!({});
        }
        place = &mut place[*key];
    }
    *place = template;
}

/// Merges the fields of `more` into `into`.
fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// Removes empty maps on the path to the patched fields; `null`, which removes a field, stays.
fn prune(node: &mut Value, is_way: bool) {
    const WAY: [&str; 5] = ["jobTemplate", "metadata", "spec", "template", "labels"];
    let Some(map) = node.as_object_mut().filter(|_| is_way) else {
        return;
    };
    for (key, below) in map.iter_mut() {
        prune(below, WAY.contains(&key.as_str()));
    }
    map.retain(|key, below| {
        !(WAY.contains(&key.as_str()) && below.as_object().is_some_and(Map::is_empty))
    });
}

/// Converts the fields outside the Pod that have a short form.
fn work(
    context: &mut Context,
    part: &[String],
    object: &Value,
    spec: &mut Value,
    made: &mut Map<String, Value>,
) {
    let kind = object["kind"].as_str().unwrap_or_default();
    if let Some(replicas) = spec
        .get("replicas")
        .filter(|number| number.is_i64())
        .cloned()
        && let Some(template) = context.field(part, "replicas", &replicas)
    {
        take(spec, "replicas");
        made.insert("replicas".to_owned(), json!(template));
    }
    match kind {
        "StatefulSet" => stateful(context, part, spec, made),
        "Job" => backoff(spec, made),
        "CronJob" => {
            if let Some(schedule) = take(spec, "schedule") {
                let template = context.field(part, "schedule", &schedule);
                made.insert(
                    "schedule".to_owned(),
                    template.map_or(schedule, Value::String),
                );
            }
            for field in [
                "suspend",
                "startingDeadlineSeconds",
                "successfulJobsHistoryLimit",
                "failedJobsHistoryLimit",
                "concurrencyPolicy",
            ] {
                if let Some(value) = take(spec, field) {
                    made.insert(field.to_owned(), value);
                }
            }
            if let Some(run) = spec.pointer_mut("/jobTemplate/spec") {
                backoff(run, made);
            }
        }
        _ => {}
    }
}

/// Converts the backoff limit, for which the short form has its own default.
fn backoff(spec: &mut Value, made: &mut Map<String, Value>) {
    match take(spec, "backoffLimit") {
        Some(limit) => {
            made.insert("backoffLimit".to_owned(), limit);
        }
        None => spec["backoffLimit"] = Value::Null,
    }
}

fn stateful(
    context: &mut Context,
    part: &[String],
    spec: &mut Value,
    made: &mut Map<String, Value>,
) {
    match take(spec, "serviceName") {
        Some(name) => {
            let wrapped = context
                .names
                .rewritten(&json!({ "serviceName": name }), "spec");
            made.insert("serviceName".to_owned(), wrapped["serviceName"].clone());
        }
        None => spec["serviceName"] = Value::Null,
    }
    let claims = spec.get("volumeClaimTemplates").and_then(Value::as_array);
    let Some(simple) = claims.and_then(|all| all.iter().map(claim).collect::<Option<Vec<_>>>())
    else {
        return;
    };
    take(spec, "volumeClaimTemplates");
    let alone = simple.len() == 1;
    let entries = simple.into_iter().map(|mut claim| {
        let field = if alone {
            "storage".to_owned()
        } else {
            format!(
                "{}Storage",
                super::camel(claim["name"].as_str().unwrap_or_default())
            )
        };
        if let Some(template) = context.field(part, &field, &claim["storageSize"]) {
            claim["storageSize"] = json!(template);
        }
        claim
    });
    let entries: Vec<Value> = entries.collect();
    if !entries.is_empty() {
        made.insert("volumeClaimTemplates".to_owned(), json!(entries));
    }
}

/// Converts a claim with one writer and a requested size to the short form.
fn claim(template: &Value) -> Option<Value> {
    let mut rest = template.clone();
    take(&mut rest, "apiVersion");
    take(&mut rest, "kind");
    let name = take_at(&mut rest, &["metadata", "name"])?;
    let size = take_at(&mut rest, &["spec", "resources", "requests", "storage"])?;
    let class = take_at(&mut rest, &["spec", "storageClassName"]);
    let modes = take_at(&mut rest, &["spec", "accessModes"])?;
    let empty = json!({ "metadata": {}, "spec": { "resources": { "requests": {} } } });
    if modes != json!(["ReadWriteOnce"]) || rest != empty || !size.is_string() {
        return None;
    }
    let mut claim = json!({ "name": name, "storageSize": size });
    if let Some(class) = class {
        claim["storageClass"] = class;
    }
    Some(claim)
}

/// Returns the difference between the metadata of the Pods and the labels of the object itself, which its Pods get too.
fn template_metadata(context: &Context, object: &Value, template: &Value) -> Value {
    let mut metadata = template
        .get("metadata")
        .cloned()
        .unwrap_or_else(|| json!({}));
    for field in ["name", "namespace", "creationTimestamp"] {
        take(&mut metadata, field);
    }
    let own = at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let labels = take(&mut metadata, "labels").unwrap_or_else(|| json!({}));
    let mut made = context.labels(&labels);
    for (label, value) in own.into_iter().flatten() {
        match labels.get(label) {
            Some(same) if same == value => {
                made.remove(label);
            }
            Some(_) => {}
            None => {
                made.insert(label.clone(), Value::Null);
            }
        }
    }
    if context.is_selected_by_labels(object) {
        made.insert(super::INSTANCE.to_owned(), json!("{{ .metadata.name }}"));
    }
    let annotations = take(&mut metadata, "annotations");
    let mut metadata = json!({ "labels": made });
    if let Some(annotations) = annotations {
        metadata["annotations"] = context.names.rewritten(&annotations, "annotations");
    }
    metadata
}
