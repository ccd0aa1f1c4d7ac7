//! The custom resource definitions of our own kinds.
//!
//! They follow from the types. The schema under `spec` describes and refuses nothing: it has no types,
//! and fields of all kinds are kept. So mistakes are reported by us, all of them at once and each with
//! a hint, instead of the API server dropping them in silence or naming a type. `kubectl explain` works
//! all the same. What we write ourselves, `status`, is typed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::katalog::{Katalog, KatalogSpec};
use super::motif::{Motif, MotifSpec};
use super::shape::Shape;
use super::status::KatalogStatus;
use crate::schema::PRESERVE;

/// The definitions of our own kinds as JSON, always the same.
pub fn crds() -> Vec<Value> {
    let mut katalog = root_schema(&Shape::of::<KatalogSpec>(), "What the Katalog declares.");
    // `status` of a new object is not nothing: with an observed generation that was never there, kstatus takes the
    // object for one that is being worked on, also while Orkestra is down.
    let mut status = status_schema::<KatalogStatus>();
    status["default"] = json!({ "observedGeneration": -1 });
    katalog["properties"]["status"] = status;
    let motif = root_schema(&Shape::of::<MotifSpec>(), "What the Motif gives.");
    let mut katalog = definition(&Katalog::crd(), &katalog, &katalog_columns());
    katalog["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    // No status subresource: it would drop the block `status` that authors write beside `spec`, and nothing of ours is
    // reported on a Motif.
    vec![katalog, definition(&Motif::crd(), &motif, &motif_columns())]
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
                "name": super::names::VERSION,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn katalog_columns() -> Value {
    let ready = r#".status.conditions[?(@.type=="Ready")]"#;
    json!([
        { "name": "Ready", "type": "string", "jsonPath": format!("{ready}.status") },
        { "name": "Operators", "type": "string", "jsonPath": ".status.ready",
          "description": "Operators that run, of those declared" },
        { "name": "Instances", "type": "integer", "jsonPath": ".status.instances",
          "description": "Custom resources of all operators" },
        { "name": "Reason", "type": "string", "jsonPath": format!("{ready}.reason") },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
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
        } else {
            self.parts(shape, path, &mut schema);
        }
        if !description.is_empty() {
            schema.insert("description".to_owned(), Value::from(description));
        }
        Value::Object(schema)
    }

    /// Where the type is described, if that is elsewhere.
    fn elsewhere(&mut self, shape: &Shape, path: &str) -> Option<String> {
        let item = match shape {
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

    /// The schema of what users write. Nothing has a type: `80` and `"80"` are the same to us, earlier spellings have other
    /// shapes, and nulls may stand anywhere. The API server takes nodes without a type as structural where unknown fields
    /// are kept.
    fn parts(&mut self, shape: &Shape, path: &str, schema: &mut Map<String, Value>) {
        match shape {
            Shape::Object(object) => {
                let works = object.fields.iter().filter(|(_, field)| field.works());
                let properties: Map<String, Value> = works
                    .map(|(name, field)| {
                        let path = format!("{path}.{name}");
                        let described = self.schema(&field.shape, &path, &field.description);
                        (name.clone(), described)
                    })
                    .collect();
                // Of a structural schema only one of the two may be there.
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
mod tests {
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
            // A plain `kubectl apply` keeps them in an annotation, as compact JSON; all of these may have 256 KiB.
            let json = serde_json::to_string(&definition).unwrap();
            assert!(json.len() < 200_000, "{} bytes", json.len());
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
                    assert_eq!(object.get(PRESERVE), Some(&Value::Bool(true)), "{path}");
                    let refuses = ["type", "default", "required", "nullable"];
                    assert!(
                        refuses.iter().all(|key| !object.contains_key(*key)),
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
        assert_eq!(names, ["Ready", "Operators", "Instances", "Reason", "Age"]);
    }
}
