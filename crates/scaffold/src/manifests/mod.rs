//! Drafts a Katalog for existing objects: each becomes a child, and the values that differ between instances fields of the
//! spec.
//!
//! ```text
//!  objects ── names: one base, references ──► entry: pods, network, others ──► operatorBox
//!                                              └── fields ──► schema of the spec, sample
//! ```
//!
//! An object without a short form, or that the short form cannot represent exactly, is written in full under `custom`.
//! Rendering the sample reproduces the objects, except for labels and selectors that the operator owns.

mod container;
mod names;
mod network;
mod others;
mod pods;
mod selectors;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use self::names::ObjectNames;
use super::{
    CustomKind, Draft,
    definition::{VERSION, definition},
    fields::SpecFields,
    input::{Error, Input, objects},
    is_plain, literal, text,
};

/// The label that distinguishes an object's Pods from those of other custom resources.
const INSTANCE: &str = "app.kubernetes.io/instance";
/// Kinds that do not become children.
const LEFT: [(&str, &str); 4] = [
    (
        "Namespace",
        "children are created in the namespace of their custom resource",
    ),
    ("CustomResourceDefinition", "apply it before the Katalog"),
    ("ReplicaSet", "the controller of its Deployment creates it"),
    ("Event", "it is a report, not declared state"),
];

/// The state of the conversion: all objects, and the resulting spec.
struct Context {
    names: ObjectNames,
    fields: SpecFields,
    /// The path in the spec of each component's values: below its name, or empty if there is only one component.
    parts: BTreeMap<(String, String), Vec<String>>,
    /// Workloads: kind, name, labels of the Pods.
    workloads: Vec<(String, String, Map<String, Value>)>,
    /// Workloads whose Pods are selected by their labels.
    selected: BTreeSet<(String, String)>,
    left: Vec<String>,
    namespace: Option<String>,
}

/// Drafts a Katalog for objects such as a Deployment and its Service. The default name is the common prefix of the names of
/// the objects.
///
/// # Errors
/// [`Error`] if a text is not YAML, or none of the objects can be a child.
pub fn from_manifests(
    inputs: &[Input],
    name: Option<&str>,
    kind: Option<&str>,
    group: &str,
) -> Result<Draft, Error> {
    let mut left = Vec::new();
    let mut children = Vec::new();
    let mut seen = BTreeSet::new();
    for object in objects(inputs)? {
        match refusal(&object, &mut seen) {
            Some(why) => left.push(format!("{}: {why}", title(&object))),
            None => children.push(object),
        }
    }
    if children.is_empty() {
        let why = left.first().map_or(String::new(), |one| format!(": {one}"));
        let message = format!("the input has no object that an operator could create{why}");
        return Err(Error::Nothing(message));
    }
    let mut context = Context::of(&children, left);
    let operator_box = json!({ "onReconcile": context.lists(&children) });
    let name = name.map_or_else(|| context.names.base.clone(), str::to_owned);
    let kind = CustomKind::made_up(&name, kind, group);
    Ok(context.draft(&name, kind, operator_box))
}

/// Returns the reason why an object cannot be a child.
fn refusal(object: &Value, seen: &mut BTreeSet<String>) -> Option<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = text(object, &["metadata", "name"]).unwrap_or_default();
    if kind.is_empty() || object["apiVersion"].as_str().unwrap_or_default().is_empty() {
        return Some("it has no `apiVersion` and `kind`".to_owned());
    }
    if name.is_empty() {
        return Some("it has no `metadata.name`".to_owned());
    }
    if let Some((_, why)) = LEFT.iter().find(|(one, _)| *one == kind) {
        return Some((*why).to_owned());
    }
    let group = object["apiVersion"].as_str().unwrap_or_default();
    if group.starts_with("orkestra.orkspace.io/") {
        return Some("an operator cannot create operators".to_owned());
    }
    // Of two objects with the same name, the API server would keep the last.
    let is_new = seen.insert(format!(
        "{} {}",
        title(object),
        text(object, &["metadata", "namespace"]).unwrap_or_default()
    ));
    (!is_new).then(|| "it is in the input twice".to_owned())
}

/// `Deployment web`, for messages.
fn title(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("an object");
    let name = text(object, &["metadata", "name"]).unwrap_or_default();
    format!("{kind} {name}").trim_end().to_owned()
}

fn key(object: &Value) -> (String, String) {
    let name = text(object, &["metadata", "name"]).unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    (kind.to_owned(), name.to_owned())
}

impl Context {
    fn of(objects: &[Value], left: Vec<String>) -> Self {
        let names = ObjectNames::of(objects);
        let mut workloads = Vec::new();
        for object in objects {
            if let Some(labels) = pods::labels(object) {
                let (kind, name) = key(object);
                workloads.push((kind, name, labels.clone()));
            }
        }
        let parts = parts(objects, &names);
        let mut context = Self {
            names,
            fields: SpecFields::default(),
            parts,
            workloads,
            selected: BTreeSet::new(),
            left,
            namespace: main_namespace(objects),
        };
        for object in objects {
            context.select(object);
        }
        context
    }

    /// Returns the children by the lists of a block.
    fn lists(&mut self, objects: &[Value]) -> Map<String, Value> {
        let mut lists: Map<String, Value> = Map::new();
        // Services refer to ports of pods.
        let has_pods = |object: &&Value| pods::labels(object).is_some();
        let (first, others): (Vec<_>, Vec<_>) = objects.iter().partition(has_pods);
        for object in first.into_iter().chain(others) {
            // The fields that a failed attempt added to the spec are not read.
            let fields = self.fields.clone();
            let (list, mut entry) = self.short(object).unwrap_or_else(|| {
                self.fields = fields;
                ("custom", others::custom(self, object))
            });
            self.place(object, &mut entry);
            let entries = lists.entry(list).or_insert_with(|| json!([]));
            if let Some(entries) = entries.as_array_mut() {
                entries.push(Value::Object(entry));
            }
        }
        lists
    }

    fn short(&mut self, object: &Value) -> Option<(&'static str, Map<String, Value>)> {
        let (kind, version) = (object["kind"].as_str()?, object["apiVersion"].as_str()?);
        let shape = pods::shape(kind).filter(|_| ["apps/v1", "batch/v1"].contains(&version));
        if let Some(shape) = shape {
            return Some((shape.list, pods::entry(self, object, &shape)?));
        }
        match (kind, version) {
            ("Service", "v1") => Some(("services", network::service(self, object)?)),
            ("Ingress", "networking.k8s.io/v1") => {
                Some(("ingresses", network::ingress(self, object)?))
            }
            ("HorizontalPodAutoscaler", "autoscaling/v2") => {
                Some(("hpa", network::autoscaler(self, object)?))
            }
            ("PodDisruptionBudget", "policy/v1") => Some(("pdb", network::budget(self, object)?)),
            _ => others::short(self, object, kind, version),
        }
    }

    /// Sets the namespace of a child that is in another namespace than most.
    fn place(&mut self, object: &Value, entry: &mut Map<String, Value>) {
        if self.names.of_object(object) == text(object, &["metadata", "name"]).unwrap_or_default() {
            self.left.push(format!(
                "{}: it is cluster-scoped and keeps its name, so only one custom resource can create it",
                title(object)
            ));
        }
        let Some(namespace) = text(object, &["metadata", "namespace"]) else {
            return;
        };
        if Some(namespace) == self.namespace.as_deref() {
            return;
        }
        let written = json!(literal(namespace));
        match entry.get_mut("metadata").and_then(Value::as_object_mut) {
            Some(metadata) => metadata.insert("namespace".to_owned(), written),
            None => entry.insert("namespace".to_owned(), written),
        };
        let note = format!(
            "{}: its namespace `{namespace}` differs from that of most objects, and is the same for all custom resources",
            title(object)
        );
        self.left.push(note);
    }

    fn draft(self, name: &str, kind: CustomKind, operator_box: Value) -> Draft {
        let mut metadata = json!({ "name": self.names.base });
        metadata["namespace"] = json!(self.namespace.as_deref().unwrap_or("default"));
        let mut sample = json!({
            "apiVersion": format!("{}/{VERSION}", kind.group),
            "kind": kind.kind,
            "metadata": metadata,
        });
        if !self.fields.is_empty() {
            sample["spec"] = self.fields.values();
        }
        Draft {
            name: name.to_owned(),
            crd: definition(&kind, &self.fields.schema(), &Map::new()),
            operator_box,
            entry: Value::Null,
            sample,
            kind,
            left: self.left,
        }
    }

    /// Returns the name, labels and annotations of an entry.
    fn named(&self, object: &Value) -> Map<String, Value> {
        let mut made = Map::new();
        made.insert("name".to_owned(), json!(self.names.of_object(object)));
        self.described(object, &mut made);
        made
    }

    fn described(&self, object: &Value, made: &mut Map<String, Value>) {
        let labels = self.labels(&object["metadata"]["labels"]);
        if !labels.is_empty() {
            made.insert("labels".to_owned(), Value::Object(labels));
        }
        let annotations = &object["metadata"]["annotations"];
        if annotations.as_object().is_some_and(|all| !all.is_empty()) {
            let annotations = self.names.rewritten(annotations, "annotations");
            made.insert("annotations".to_owned(), annotations);
        }
    }

    /// Returns labels; the value of the instance label is the custom resource's name.
    fn labels(&self, labels: &Value) -> Map<String, Value> {
        let labels = labels.as_object().into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| {
            let text = value.as_str()?;
            let value = if key == INSTANCE && text == self.names.base {
                self.names.template(text)
            } else {
                literal(text)
            };
            Some((key.clone(), json!(value)))
        });
        labels.collect()
    }

    /// Returns the path of an object's fields in the spec.
    fn part(&self, object: &Value) -> Vec<String> {
        self.parts.get(&key(object)).cloned().unwrap_or_default()
    }

    /// Adds a field with that value to the spec; `None` if that is not possible.
    fn field(&mut self, part: &[String], field: &str, value: &Value) -> Option<String> {
        let path = part.iter().map(String::as_str).chain([field]);
        self.fields.add(&path.collect::<Vec<_>>(), value)
    }

    /// Adds the value of a container's variable.
    fn variable(&mut self, part: &[String], name: &str, value: &str) -> Option<String> {
        let path = part.iter().map(String::as_str).chain(["env", name]);
        self.fields.add(&path.collect::<Vec<_>>(), &json!(value))
    }

    /// Moves the remaining fields of an object into the `patch` of its entry.
    fn patch(&self, mut rest: Value, made: &mut Map<String, Value>) {
        for field in ["apiVersion", "kind", "metadata"] {
            take(&mut rest, field);
        }
        if let Some(map) = rest.as_object_mut() {
            map.retain(|_, value| value != &json!({}));
            if !map.is_empty() {
                made.insert("patch".to_owned(), self.names.rewritten(&rest, ""));
            }
        }
    }
}

/// Returns the namespace of most objects.
fn main_namespace(objects: &[Value]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for object in objects {
        if let Some(namespace) = text(object, &["metadata", "namespace"]) {
            *counts.entry(namespace).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(namespace, _)| namespace.to_owned())
}

/// Returns the path in the spec for each object. With several workloads, each has a part with its name.
fn parts(objects: &[Value], names: &ObjectNames) -> BTreeMap<(String, String), Vec<String>> {
    let workloads: Vec<&Value> = objects
        .iter()
        .filter(|one| {
            pods::labels(one).is_some()
                || pods::shape(one["kind"].as_str().unwrap_or_default()).is_some()
        })
        .collect();
    let mut parts = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for object in objects {
        let (kind, name) = key(object);
        let is_workload = workloads.contains(&object);
        let is_claim = kind == "PersistentVolumeClaim";
        if workloads.len() < 2 && (is_workload || !is_claim) {
            continue;
        }
        if !(is_workload || is_claim) {
            continue;
        }
        let rest = names.rest(&name).unwrap_or(&name);
        let mut part = camel(if rest.is_empty() { "main" } else { rest });
        if !taken.insert(part.clone()) {
            part = camel(&format!("{part}-{kind}"));
            taken.insert(part.clone());
        }
        parts.insert((kind, name), vec![part]);
    }
    parts
}

/// Converts `data-store` to `dataStore`, a key that templates can read with dots.
fn camel(name: &str) -> String {
    let mut made = String::new();
    for word in name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        let mut chars = word.chars();
        let first = chars.next().into_iter();
        if made.is_empty() {
            made.extend(first.map(|c| c.to_ascii_lowercase()));
        } else {
            made.extend(first.map(|c| c.to_ascii_uppercase()));
        }
        made.extend(chars);
    }
    if is_plain(&made) {
        made
    } else {
        format!("x{made}")
    }
}

/// Removes a field from a map and returns it.
fn take(node: &mut Value, field: &str) -> Option<Value> {
    node.as_object_mut()?.remove(field)
}

/// Removes a field from nested maps and returns it.
fn take_at(node: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut place = node;
    for key in parents {
        place = place.get_mut(*key)?;
    }
    take(place, last)
}
