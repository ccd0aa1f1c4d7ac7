//! Reads the schemas that are generated for the API types.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::super::later::{FORMAT, LATER_VALUES, REASON, SUPPORT, TEMPLATE};
use super::{Field, ObjectShape, Shape, Support};

/// Nested references followed; the API types have about ten.
const MAX_DEPTH: usize = 40;

/// The shape of a type.
pub(crate) fn shape_of<T: JsonSchema>() -> Shape {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    let empty = Map::new();
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let mut reader = Reader {
        definitions: definitions.unwrap_or(&empty),
        read: HashMap::new(),
    };
    match schema.as_object() {
        Some(object) if types(object) == ["object"] => {
            Shape::Object(Arc::new(reader.object(object, &T::schema_name(), 0)))
        }
        _ => reader.shape(&schema, 0),
    }
}

/// Reads schemas; every named type is read once and shared.
struct Reader<'a> {
    definitions: &'a Map<String, Value>,
    read: HashMap<&'a str, Shape>,
}

impl<'a> Reader<'a> {
    fn shape(&mut self, schema: &'a Value, depth: usize) -> Shape {
        let Some(object) = schema.as_object() else {
            return Shape::Free;
        };
        if depth > MAX_DEPTH {
            return Shape::Free;
        }
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            return self.definition(target.rsplit('/').next().unwrap_or(target), depth);
        }
        if let Some(values) = words(object) {
            let later = object.get(LATER_VALUES).map(strings).unwrap_or_default();
            return Shape::Enum { values, later };
        }
        if object.contains_key(TEMPLATE)
            && let Some(written) = object.get("anyOf").and_then(|branches| branches.get(0))
        {
            return Shape::OrTemplate(Box::new(self.shape(written, depth + 1)));
        }
        if let Some(branches) = object.get("anyOf").or_else(|| object.get("oneOf")) {
            return self.branches(branches, depth);
        }
        match types(object).as_slice() {
            ["object"] => Shape::Object(Arc::new(self.object(object, "", depth))),
            ["array"] => {
                let items = object.get("items").unwrap_or(&Value::Null);
                Shape::List(Box::new(self.shape(items, depth + 1)))
            }
            ["boolean"] => Shape::Bool,
            ["integer"] => Shape::Int {
                min: object.get("minimum").and_then(Value::as_i64),
                max: object.get("maximum").and_then(Value::as_i64),
            },
            ["string"] if object.contains_key(FORMAT) => Shape::Duration,
            ["string"] => Shape::Text,
            [] => Shape::Free,
            _ => Shape::Scalar,
        }
    }

    fn definition(&mut self, name: &'a str, depth: usize) -> Shape {
        if let Some(shape) = self.read.get(name) {
            return shape.clone();
        }
        let schema = self.definitions.get(name).unwrap_or(&Value::Null);
        let shape = match schema.as_object() {
            Some(object) if types(object) == ["object"] => {
                Shape::Object(Arc::new(self.object(object, name, depth + 1)))
            }
            _ => self.shape(schema, depth + 1),
        };
        self.read.insert(name, shape.clone());
        shape
    }

    fn branches(&mut self, branches: &'a Value, depth: usize) -> Shape {
        let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let branches = branches.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut shapes: Vec<Shape> = branches
            .iter()
            .filter(|branch| !is_null(branch))
            .map(|branch| self.shape(branch, depth + 1))
            .collect();
        match shapes.len() {
            1 => shapes.remove(0),
            _ => Shape::OneOf(shapes),
        }
    }

    fn object(&mut self, object: &'a Map<String, Value>, name: &str, depth: usize) -> ObjectShape {
        let required = object.get("required").map(strings).unwrap_or_default();
        let properties = object.get("properties").and_then(Value::as_object);
        let fields = properties.into_iter().flatten().map(|(name, schema)| {
            let description = description(schema);
            let field = Field {
                shape: self.shape(schema, depth + 1),
                required: required.contains(name),
                default: default(&description),
                description,
                support: support(schema),
            };
            (name.clone(), field)
        });
        let fields = fields.collect();
        let rest = match object.get("additionalProperties") {
            None | Some(Value::Bool(false)) => None,
            Some(schema) => Some(Box::new(self.shape(schema, depth + 1))),
        };
        ObjectShape {
            name: name.to_owned(),
            description: text(object.get("description")),
            fields,
            rest,
        }
    }
}

fn support(schema: &Value) -> Support {
    match schema.get(SUPPORT).and_then(Value::as_str) {
        Some("later") => Support::Later,
        Some("refused") => Support::Refused(text(schema.get(REASON))),
        Some(_) => Support::Ignored(text(schema.get(REASON))),
        None => Support::Works,
    }
}

/// The default in a doc comment: ``Default `x`.``, or `Default: the other one.`
fn default(description: &str) -> Option<String> {
    let (_, rest) = description.split_once("Default")?;
    if let Some(words) = rest.strip_prefix(": ") {
        let end = words.find(". ").unwrap_or(words.len());
        return Some(words[..end].trim_end_matches('.').to_owned());
    }
    let (value, _) = rest.strip_prefix(" `")?.split_once('`')?;
    Some(format!("`{value}`"))
}

/// Doc comments are wrapped in the source; a description is one paragraph a line.
fn description(schema: &Value) -> String {
    text(schema.get("description"))
}

fn text(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str);
    let paragraphs = text.unwrap_or_default().split("\n\n");
    let joined: Vec<String> = paragraphs
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect();
    joined.join("\n")
}

fn types(object: &Map<String, Value>) -> Vec<&str> {
    match object.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many
            .iter()
            .filter_map(Value::as_str)
            .filter(|one| *one != "null")
            .collect(),
        _ => Vec::new(),
    }
}

/// The words of an enum: schemars writes `enum`, or `oneOf` with a `const` each where variants are
/// documented.
fn words(object: &Map<String, Value>) -> Option<Vec<String>> {
    if let Some(words) = object.get("enum") {
        return Some(strings(words));
    }
    let branches = object.get("oneOf")?.as_array()?;
    let constant = |branch: &Value| branch.get("const")?.as_str().map(str::to_owned);
    branches.iter().map(constant).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
