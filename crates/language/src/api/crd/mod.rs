//! The custom resource definitions of Orkestra's own kinds.
//!
//! They are generated from the types. Maps, lists, words and numbers have a type, which `kubectl explain` shows; single values
//! that may be written in several ways have none. Every type is nullable, and unknown fields are preserved at every level:
//! Orkestra reports most mistakes itself, all at once and each with a hint, where the API server would silently drop the fields.
//! `status`, which Orkestra writes, is typed throughout.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::katalog::{Katalog, KatalogSpec};
use super::komposer::{Komposer, KomposerSpec};
use super::motif::{Motif, MotifSpec};
use super::names;
use super::shape::{PAIRS, RULES, Shape};
use super::status::KatalogStatus;
use crate::schema::{INT_OR_STRING, PRESERVE};
use orkestra_object::value::{Node, hash};

/// The definitions of our own kinds as JSON, always the same.
pub fn crds() -> Vec<Value> {
    let mut katalog = root_schema(
        &Shape::of::<KatalogSpec>(),
        "The specification of the Katalog.",
    );
    // The default of `status` has an observed generation that never existed: kstatus then reports a new object as in progress,
    // also while Orkestra is down.
    let mut status = status_schema::<KatalogStatus>();
    status["default"] = json!({ "observedGeneration": -1 });
    katalog["properties"]["status"] = status;
    let mut komposer = root_schema(
        &Shape::of::<KomposerSpec>(),
        "The specification of the Komposer.",
    );
    // Fields that both kinds have are described once; otherwise the definitions would be too large for `kubectl apply`. An override
    // has the fields of a Katalog's entry.
    let as_other = |description: &str| json!({ PRESERVE: true, "description": description, "nullable": true, "type": "object" });
    komposer["properties"]["spec"]["properties"]["crds"]["additionalProperties"] =
        as_other("The same as `spec.crds` of a Katalog.");
    for (block, description) in [
        ("sources", "The same as `spec.sources` of a Komposer."),
        ("security", "The same as `spec.security` of a Komposer."),
    ] {
        katalog["properties"]["spec"]["properties"][block] = as_other(description);
    }
    komposer["properties"]["status"] = katalog["properties"]["status"].clone();
    let motif = root_schema(&Shape::of::<MotifSpec>(), "The specification of the Motif.");
    let mut katalog = definition(&Katalog::crd(), &katalog, &operators_columns());
    let mut komposer = definition(&Komposer::crd(), &komposer, &operators_columns());
    for definition in [&mut katalog, &mut komposer] {
        definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    }
    // A Motif has no status subresource: it would drop the block `status` that authors write next to `spec`, and Orkestra reports
    // nothing on Motifs.
    let motif = definition(&Motif::crd(), &motif, &motif_columns());
    [katalog, motif, komposer].map(stamped).into()
}

/// The definition with the version that wrote it and a hash of its content, by which installations are compared.
fn stamped(mut definition: Value) -> Value {
    let spec = Node::from(&definition["spec"]);
    definition["metadata"]["annotations"] = json!({
        names::ANNOTATION_SCHEMA: hash(&spec),
        names::ANNOTATION_VERSION: env!("CARGO_PKG_VERSION"),
    });
    definition
}

/// The definitions as a YAML stream, to be applied as it is.
///
/// # Errors
/// None that the types can cause; the serializer's own are passed on.
pub fn crds_yaml() -> Result<String, serde_saphyr::ser::Error> {
    let mut stream = String::new();
    for definition in crds() {
        stream.push_str("---\n");
        stream.push_str(&serde_saphyr::to_string(&definition)?);
    }
    Ok(stream)
}

fn definition(derived: &CustomResourceDefinition, schema: &Value, columns: &Value) -> Value {
    let names = &derived.spec.names;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": derived.metadata.name,
            "labels": { "app.kubernetes.io/part-of": "orkestra" },
        },
        "spec": {
            "group": derived.spec.group,
            "scope": derived.spec.scope,
            "names": {
                "kind": names.kind,
                "plural": names.plural,
                "singular": names.singular,
                "shortNames": names.short_names,
                "categories": names.categories,
                "listKind": format!("{}List", names.kind),
            },
            "versions": [{
                "name": names::VERSION,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// The columns of a Katalog and a Komposer.
fn operators_columns() -> Value {
    let ready = r#".status.conditions[?(@.type=="Ready")]"#;
    json!([
        { "name": "Ready", "type": "string", "jsonPath": format!("{ready}.status") },
        { "name": "Operators", "type": "string", "jsonPath": ".status.ready",
          "description": "Number of running operators, of those declared" },
        { "name": "Instances", "type": "string", "jsonPath": ".status.instancesReady",
          "description": "Number of ready custom resources, of all" },
        { "name": "Reason", "type": "string", "jsonPath": format!("{ready}.reason") },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
        { "name": "Revision", "type": "string", "jsonPath": ".status.revision", "priority": 1,
          "description": "The running revision" },
        { "name": "Message", "type": "string", "jsonPath": format!("{ready}.message"), "priority": 1 },
    ])
}

fn motif_columns() -> Value {
    json!([
        { "name": "Version", "type": "string", "jsonPath": ".spec.info.version" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
}

fn root_schema(spec: &Shape, description: &str) -> Value {
    json!({
        "type": "object",
        PRESERVE: true,
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object" },
            "spec": Described::default().schema(spec, "spec", description),
        },
    })
}

/// The fields whose types are described there, although other fields with the same types come before them: most children stand below it.
const FIRST: [&str; 1] = ["onReconcile"];

/// What users write, on its way into a schema. Each type is described where it is met first: the API server has no
/// references, and a definition must stay small enough for a plain `kubectl apply`.
#[derive(Default)]
struct Described {
    /// Where the types are described.
    types: BTreeMap<String, String>,
}

impl Described {
    fn schema(&mut self, shape: &Shape, path: &str, description: &str) -> Value {
        let mut schema = Map::new();
        schema.insert(PRESERVE.to_owned(), Value::Bool(true));
        let mut description = description.to_owned();
        if let Some(elsewhere) = self.elsewhere(shape, path) {
            let gap = if description.is_empty() { "" } else { " " };
            let _ = write!(description, "{gap}As `{elsewhere}`.");
            if matches!(shape, Shape::List(_)) {
                schema.insert("items".to_owned(), json!({ PRESERVE: true }));
            }
        } else {
            self.parts(shape, path, &mut schema);
        }
        for (key, value) in type_of(shape, path) {
            // The API server refuses a schema with both extensions.
            if key == INT_OR_STRING {
                schema.remove(PRESERVE);
            }
            schema.insert(key.to_owned(), value);
        }
        let words = [description.as_str(), &in_words(shape)];
        let words: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
        if !words.is_empty() {
            schema.insert("description".to_owned(), Value::from(words.join(" ")));
        }
        Value::Object(schema)
    }

    /// Where the type is described, if that is elsewhere.
    fn elsewhere(&mut self, shape: &Shape, path: &str) -> Option<String> {
        let item = match shape.written() {
            Shape::List(item) => item,
            other => other,
        };
        let Shape::Object(object) = item else {
            return None;
        };
        if object.name.is_empty() || object.fields.is_empty() {
            return None;
        }
        match self.types.entry(object.name.clone()) {
            Entry::Occupied(entry) if entry.get() != path => Some(entry.get().clone()),
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                entry.insert(path.to_owned());
                None
            }
        }
    }

    /// The fields, items or values of what users write. The API server takes nodes without a type as structural where unknown
    /// fields are kept.
    fn parts(&mut self, shape: &Shape, path: &str, schema: &mut Map<String, Value>) {
        match shape {
            // Only a value with a type may have items.
            Shape::OrTemplate(written) if matches!(**written, Shape::List(_)) => {}
            Shape::OrTemplate(written) => self.parts(written, path, schema),
            Shape::Object(object) => {
                let works = object.fields.iter().filter(|(_, field)| field.works());
                let (first, others): (Vec<_>, Vec<_>) =
                    works.partition(|(name, _)| FIRST.contains(&name.as_str()));
                let properties: BTreeMap<String, Value> = first
                    .into_iter()
                    .chain(others)
                    .map(|(name, field)| {
                        let path = format!("{path}.{name}");
                        let described = self.schema(&field.shape, &path, &field.description);
                        (name.clone(), described)
                    })
                    .collect();
                let properties: Map<String, Value> = properties.into_iter().collect();
                // A structural schema may have only one of `properties` and `additionalProperties`.
                match &object.rest {
                    Some(rest) if properties.is_empty() => {
                        let values = self.schema(rest, path, "");
                        schema.insert("additionalProperties".to_owned(), values);
                    }
                    _ => {
                        schema.insert("properties".to_owned(), Value::Object(properties));
                    }
                }
            }
            Shape::List(item) => {
                schema.insert("items".to_owned(), self.schema(item, path, ""));
            }
            _ => {}
        }
    }
}

/// The type of a value in the schema for the API server, as general as in every document that loads: `80` and `"80"` are the same to
/// us, earlier spellings have other shapes, and nulls may stand anywhere. What `kubectl explain` cannot know without a type is
/// in the description.
fn type_of(shape: &Shape, path: &str) -> Vec<(&'static str, Value)> {
    let field = path.rsplit('.').next().unwrap_or_default();
    let typed = |name: &str| ("type", Value::from(name));
    let mut schema = match shape {
        Shape::Object(_) if PAIRS.contains(&field) || RULES.contains(&field) => return Vec::new(),
        Shape::Object(_) => vec![typed("object")],
        Shape::List(_) => vec![typed("array")],
        Shape::Int { .. } | Shape::Duration => vec![(INT_OR_STRING, Value::Bool(true))],
        // Without `enum`: Orkestra itself reports the words of earlier documents, and unknown words.
        Shape::Enum { .. } => vec![typed("string")],
        _ => return Vec::new(),
    };
    schema.push(("nullable", Value::Bool(true)));
    schema
}

/// What a single value may be: `Integer, 1 to 1000.`. Nothing where anything may stand, and where a template may.
fn in_words(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "Boolean.".to_owned(),
        Shape::Duration => "Duration.".to_owned(),
        Shape::Int { min, max } => match (min, max) {
            (Some(min), Some(max)) => format!("Integer, {min} to {max}."),
            (Some(min), None) => format!("Integer, at least {min}."),
            (None, Some(max)) => format!("Integer, at most {max}."),
            (None, None) => "Integer.".to_owned(),
        },
        Shape::Enum { values, .. } => format!("One of: {}.", values.join(", ")),
        _ => String::new(),
    }
}

fn status_schema<Status: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<Status>()
        .to_value();
    make_structural(&mut schema, true);
    schema
}

/// Takes out what the API server refuses, warns of, or has no use for: titles, defaults of fields,
/// formats that only Rust has, and the descriptions of enum variants.
fn make_structural(schema: &mut Value, is_root: bool) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.remove("title");
    object.remove("default");
    if is_root {
        object.remove("description");
    }
    let format = object.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.starts_with('u')) {
        object.remove("format");
    }
    if let Some(Value::Array(variants)) = object.remove("oneOf") {
        let words = variants.iter().filter_map(|variant| {
            let word = variant.get("const").or_else(|| variant.get("enum")?.get(0));
            word.cloned()
        });
        object.insert("enum".to_owned(), words.collect());
        object.insert("type".to_owned(), Value::from("string"));
    }
    if let Some(description) = object.get_mut("description")
        && let Some(text) = description.as_str()
    {
        *description = Value::String(text.replace('\n', " "));
    }
    for key in ["properties", "items", "additionalProperties"] {
        match object.get_mut(key) {
            Some(Value::Object(properties)) if key == "properties" => {
                properties
                    .values_mut()
                    .for_each(|schema| make_structural(schema, false));
            }
            Some(schema) => make_structural(schema, false),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
