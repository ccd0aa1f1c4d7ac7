//! Drafts a Katalog for a definition of kro: its schema becomes a `CustomResourceDefinition`, its paths become templates.
//!
//! Source: kro's documentation of `ResourceGraphDefinition`s (`kro.run/v1alpha1`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    CustomKind, Draft,
    definition::{definition, simple_schema},
    input::{Error, Input, objects, wrong},
    is_plain, literal, sample, text,
};
use orkestra_plan::guess_plural;

/// The default API group of kinds. Source: kro's documentation.
const GROUP: &str = "kro.run";

/// The nesting of names that are composed of other names.
const NAME_DEPTH: usize = 2;
/// The maximum length of a name that is part of others.
const NAME_BYTES: usize = 253;

/// Drafts a Katalog for the one `ResourceGraphDefinition` in `inputs`.
///
/// Expressions that are plain paths are converted. The others are reported, and the fields with them omitted.
///
/// # Errors
/// [`Error`] if there is none, several, or one without a kind.
pub fn from_kro(inputs: &[Input], name: Option<&str>) -> Result<Draft, Error> {
    let mut found = objects(inputs)?;
    found.retain(|object| object["kind"] == "ResourceGraphDefinition");
    let [graph] = found.as_slice() else {
        let message = format!(
            "the input has {} ResourceGraphDefinitions: expected exactly one",
            found.len()
        );
        return Err(Error::Nothing(message));
    };
    let declared = &graph["spec"]["schema"];
    let kind = kind(graph, declared)?;
    let mut graph = Graph::of(&graph["spec"]["resources"]);
    let spec = simple_schema(&declared["spec"], &declared["types"], &mut graph.left);
    let mut fields = Vec::new();
    let mut status = Map::new();
    graph.status(&declared["status"], "", &mut fields, &mut status);
    let children = graph.children();
    let mut operator_box = json!({ "onReconcile": { "custom": children } });
    if !fields.is_empty() {
        operator_box["status"] = json!({ "fields": fields });
    }
    let mut left = graph.left;
    let mut open = Vec::new();
    let mut values = sample::value(&spec, "spec", &mut open);
    sample::complete(&mut values, &spec, &operator_box, &mut open);
    left.extend(open.into_iter().map(|why| format!("the sample: {why}")));
    Ok(Draft {
        name: name.map_or_else(|| kind.singular.clone(), str::to_owned),
        crd: definition(&kind, &spec, &status),
        operator_box,
        entry: Value::Null,
        sample: json!({
            "apiVersion": format!("{}/{}", kind.group, kind.version),
            "kind": kind.kind,
            "metadata": { "name": format!("my-{}", kind.singular), "namespace": "default" },
            "spec": values,
        }),
        kind,
        left,
    })
}

fn kind(graph: &Value, declared: &Value) -> Result<CustomKind, Error> {
    let name = text(graph, &["metadata", "name"]).unwrap_or_default();
    let object = format!("ResourceGraphDefinition {name}");
    let kind = text(declared, &["kind"]).filter(|kind| is_plain(kind));
    let kind = kind.ok_or_else(|| wrong(&object, "spec.schema.kind", "is missing"))?;
    let version = text(declared, &["apiVersion"]).unwrap_or("v1alpha1");
    let singular = kind.to_lowercase();
    Ok(CustomKind {
        group: text(declared, &["group"]).unwrap_or(GROUP).to_owned(),
        version: version.rsplit('/').next().unwrap_or(version).to_owned(),
        kind: kind.to_owned(),
        plural: guess_plural(&singular),
        singular,
    })
}

/// The resources of a definition.
struct Graph<'a> {
    resources: Vec<&'a Value>,
    /// Name and path below `.children` by id.
    by_id: BTreeMap<&'a str, (Option<&'a str>, Option<String>)>,
    left: Vec<String>,
}

impl<'a> Graph<'a> {
    fn of(resources: &'a Value) -> Self {
        let mut left = Vec::new();
        let mut by_id = BTreeMap::new();
        let mut kept = Vec::new();
        let all: Vec<&Value> = resources.as_array().into_iter().flatten().collect();
        let kind = |one: &Value| {
            text(one, &["template", "kind"])
                .unwrap_or_default()
                .to_owned()
        };
        for resource in &all {
            let id = resource["id"].as_str().unwrap_or_default();
            let alone = all.iter().filter(|one| kind(one) == kind(resource)).count() == 1;
            let child = alone.then(|| lower_first(&kind(resource)));
            let name = text(resource, &["template", "metadata", "name"]);
            by_id.insert(id, (name, child));
            if resource["externalRef"].is_object() {
                left.push(format!(
                    "resource {id}: `externalRef`; read it with `cross` or `observe`"
                ));
            } else if !resource["forEach"].is_null() {
                left.push(format!(
                    "resource {id}: `forEach`; declare it as `forEach` of an entry"
                ));
            } else if kind(resource).is_empty() || !resource["template"]["apiVersion"].is_string() {
                left.push(format!(
                    "resource {id}: it has no template with `apiVersion` and `kind`"
                ));
            } else {
                kept.push(*resource);
            }
        }
        Self {
            resources: kept,
            by_id,
            left,
        }
    }

    fn children(&mut self) -> Vec<Value> {
        let resources = std::mem::take(&mut self.resources);
        let children = resources
            .into_iter()
            .filter_map(|resource| self.child(resource));
        children.collect()
    }

    fn child(&mut self, resource: &Value) -> Option<Value> {
        let id = resource["id"].as_str().unwrap_or_default();
        let mut made = Map::new();
        for (key, value) in resource["template"].as_object()? {
            if let Some(value) = self.node(value, &format!("resource {id}: {key}")) {
                made.insert(key.clone(), value);
            }
        }
        made.remove("status");
        let metadata = made.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata.filter(|metadata| metadata.contains_key("name")) else {
            self.left.push(format!(
                "resource {id}: it is omitted, because its name cannot be converted"
            ));
            return None;
        };
        super::keep_child_metadata(metadata);
        let when = self.conditions(&resource["includeWhen"], id);
        if !when.is_empty() {
            made.insert("when".to_owned(), json!(when));
        }
        if !resource["readyWhen"].is_null() {
            self.left.push(format!("resource {id}: `readyWhen`; the kind of a child determines its readiness, and `status.readyWhen` adds conditions"));
        }
        Some(Value::Object(made))
    }

    /// Converts a part of a template; `None` if an expression in it is not converted, which is reported.
    fn node(&mut self, node: &Value, at: &str) -> Option<Value> {
        match node {
            Value::String(text) => self.converted(text, at).map(Value::String),
            Value::Object(map) => {
                let entries = map.iter().filter_map(|(key, below)| {
                    let below = self.node(below, &format!("{at}.{key}"))?;
                    Some((key.clone(), below))
                });
                Some(Value::Object(entries.collect()))
            }
            Value::Array(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .filter_map(|(index, item)| self.node(item, &format!("{at}[{index}]")));
                Some(Value::Array(items.collect()))
            }
            other => Some(other.clone()),
        }
    }

    fn converted(&mut self, text: &str, at: &str) -> Option<String> {
        match self.text(text, 0) {
            Ok(text) => Some(text),
            Err(expression) => {
                self.left
                    .push(format!("{at}: the expression `{expression}`"));
                None
            }
        }
    }

    /// Converts the expressions in a text to templates, or returns the first that is not a plain path.
    fn text(&self, text: &str, depth: usize) -> Result<String, String> {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            made.push_str(&literal(before));
            let end = end_of(after).ok_or_else(|| after.to_owned())?;
            let expression = &after[..end];
            made.push_str(
                &self
                    .path(expression.trim(), depth)
                    .ok_or_else(|| expression.to_owned())?,
            );
            rest = &after[end + 1..];
        }
        made.push_str(&literal(rest));
        Ok(made)
    }

    /// Converts a path to a template.
    fn path(&self, expression: &str, depth: usize) -> Option<String> {
        let plain = expression.replace(".?", ".");
        let keys: Vec<&str> = plain.split('.').collect();
        if !keys.iter().all(|key| is_plain(key)) {
            return None;
        }
        let (root, rest) = keys.split_first()?;
        let below = rest.join(".");
        if *root == "schema" {
            let is_known = ["spec", "metadata", "status"].contains(rest.first()?);
            return is_known.then(|| format!("{{{{ .{below} }}}}"));
        }
        let (name, child) = self.by_id.get(root)?;
        if below == "metadata.name" {
            // A name may be composed of another name, but not of itself.
            let name = name.filter(|name| depth < NAME_DEPTH && name.len() <= NAME_BYTES)?;
            return self.text(name, depth + 1).ok();
        }
        let child = child.as_ref()?;
        (!rest.is_empty()).then(|| format!("{{{{ .children.{child}.{below} }}}}"))
    }

    fn conditions(&mut self, all: &Value, id: &str) -> Vec<Value> {
        let mut made = Vec::new();
        for one in all.as_array().into_iter().flatten() {
            let text = one.as_str().unwrap_or_default();
            let inner = text
                .trim()
                .strip_prefix("${")
                .and_then(|text| text.strip_suffix('}'));
            if let Some(condition) = inner.and_then(condition) {
                made.push(condition);
            } else {
                let note = format!(
                    "resource {id}: `includeWhen: {text}`; the object is created without it"
                );
                self.left.push(note);
            }
        }
        made
    }

    /// Returns the fields of the status, with their schemas.
    fn status(
        &mut self,
        node: &Value,
        path: &str,
        fields: &mut Vec<Value>,
        schemas: &mut Map<String, Value>,
    ) {
        for (key, value) in node.as_object().into_iter().flatten() {
            if path.is_empty() && ["conditions", "observedGeneration"].contains(&key.as_str()) {
                continue;
            }
            let place = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            if !is_plain(key) {
                self.left.push(format!("status.{place}: its name"));
            } else if value.is_object() {
                let mut below = Map::new();
                self.status(value, &place, fields, &mut below);
                schemas.insert(
                    key.clone(),
                    json!({ "type": "object", "properties": below }),
                );
            } else if let Some(text) = value.as_str()
                && let Some(value) = self.converted(text, &format!("status.{place}"))
            {
                fields.push(json!({ "path": place, "value": value }));
                schemas.insert(
                    key.clone(),
                    json!({ "x-kubernetes-preserve-unknown-fields": true }),
                );
            }
        }
    }
}

/// Converts `schema.spec.enabled`, or a comparison of such a path with a value.
fn condition(expression: &str) -> Option<Value> {
    let (path, value) = match expression.split_once("==") {
        Some((path, value)) => (path.trim(), value.trim().trim_matches(['"', '\''])),
        None => (expression.trim(), "true"),
    };
    let field = path.strip_prefix("schema.")?;
    let is_path = field.starts_with("spec.") && field.split('.').all(is_plain);
    let is_value = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
    (is_path && is_value).then(|| json!({ "field": field, "equals": value }))
}

/// Returns the end of an expression: the brace that closes the first one.
fn end_of(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Converts `StatefulSet` to `statefulSet`.
fn lower_first(kind: &str) -> String {
    let mut chars = kind.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
