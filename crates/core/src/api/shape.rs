//! The shape of a document, read from the API types' schemas.
//!
//! JSON Schema has many ways to say one thing. [`Shape`] has one way for each, so that the check of
//! documents, the custom resource definitions and the reference documents are short walks over it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::later::{FORMAT, LATER_VALUES, REASON, SUPPORT};

/// What a value may look like.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Shape {
    /// Anything.
    #[default]
    Free,
    /// Text, a number or a boolean; templates are text.
    Scalar,
    /// Text without templates.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds, both included.
    Int {
        /// The least.
        min: Option<i64>,
        /// The greatest.
        max: Option<i64>,
    },
    /// A duration, as text.
    Duration,
    /// One of some words.
    Enum {
        /// The words.
        values: Vec<String>,
        /// Words of the language that are not built yet.
        later: Vec<String>,
    },
    /// Values in order.
    List(Box<Shape>),
    /// Values by key.
    Object(Arc<ObjectShape>),
    /// One of some shapes, told apart by being a map, a list or neither.
    OneOf(Vec<Shape>),
}

/// What a map may hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectShape {
    /// The type's name; empty for maps of the user's own keys.
    pub name: String,
    /// The type's doc comment.
    pub description: String,
    /// Fields by name.
    pub fields: BTreeMap<String, Field>,
    /// The values of other keys; none when there may be none.
    pub rest: Option<Box<Shape>>,
}

/// A field of a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Field {
    /// What the value may look like.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
    /// The doc comment.
    pub description: String,
    /// What counts when the field is left out, as the doc comment says it: Markdown.
    pub default: Option<String>,
    /// How far it is supported.
    pub support: Support,
}

impl Field {
    /// Whether it does something.
    pub fn works(&self) -> bool {
        self.support == Support::Works
    }
}

/// How far a field is supported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Support {
    /// It works.
    #[default]
    Works,
    /// The language has it, and it is not built yet.
    Later,
    /// It is accepted and has no effect here.
    Ignored,
    /// It is not accepted, for this reason.
    Refused(String),
}

/// Nested references followed; the API types have about ten.
const MAX_DEPTH: usize = 40;

impl Shape {
    /// The shape of a type.
    pub fn of<T: JsonSchema>() -> Self {
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

    /// A map that has one field, which must be there.
    pub(crate) fn map_of_one(name: &str, shape: Shape) -> Self {
        let field = Field {
            shape,
            required: true,
            description: String::new(),
            default: None,
            support: Support::Works,
        };
        Shape::Object(Arc::new(ObjectShape {
            fields: BTreeMap::from([(name.to_owned(), field)]),
            ..ObjectShape::default()
        }))
    }

    /// What is expected, for messages: `a list`.
    pub fn describe(&self) -> String {
        match self {
            Shape::Free => "anything".to_owned(),
            Shape::Scalar => "a single value".to_owned(),
            Shape::Text => "text".to_owned(),
            Shape::Bool => "`true` or `false`".to_owned(),
            Shape::Int { .. } => "a whole number".to_owned(),
            Shape::Duration => "a duration such as `30s`".to_owned(),
            Shape::Enum { values, .. } => one_of(values.iter().map(|value| format!("`{value}`"))),
            Shape::List(_) => "a list".to_owned(),
            Shape::Object(_) => "a map".to_owned(),
            Shape::OneOf(shapes) => one_of(shapes.iter().map(Shape::describe)),
        }
    }
}

fn one_of(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
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
        Some(_) => Support::Ignored,
        None => Support::Works,
    }
}

/// The default that a doc comment tells: ``Default `x`.``, or `Default: the other one.`
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::KatalogSpec;

    fn object(shape: &Shape) -> &ObjectShape {
        match shape {
            Shape::Object(object) => object,
            other => panic!("{other:?} is no map"),
        }
    }

    fn field<'a>(shape: &'a Shape, name: &str) -> &'a Shape {
        &object(shape).fields[name].shape
    }

    #[test]
    fn shapes_follow_from_the_types() {
        let spec = Shape::of::<KatalogSpec>();
        let entry = object(field(&spec, "crds")).rest.as_deref().unwrap();
        assert_eq!(
            *field(entry, "workers"),
            Shape::Int {
                min: Some(1),
                max: Some(1000)
            }
        );
        assert_eq!(*field(entry, "enabled"), Shape::Bool);
        assert_eq!(object(entry).fields["conversion"].support, Support::Later);
        assert_eq!(object(entry).fields["mode"].support, Support::Ignored);
        assert_eq!(*field(entry, "setup"), Shape::List(Box::new(Shape::Text)));
        let lifecycle = field(field(entry, "operatorBox"), "onCreate");
        assert_eq!(object(lifecycle).fields["jobs"].support, Support::Later);
        assert!(
            matches!(field(lifecycle, "jobs"), Shape::List(job) if object(job).fields["image"].required)
        );
        let refused = &object(lifecycle).fields["serviceMonitors"].support;
        assert!(matches!(refused, Support::Refused(why) if why.contains("custom")));
        let Shape::List(deployment) = field(lifecycle, "deployments") else {
            panic!()
        };
        assert!(object(deployment).fields["image"].required);
        assert!(!object(deployment).fields["port"].required);
        assert_eq!(*field(deployment, "port"), Shape::Scalar);
        assert_eq!(object(deployment).fields["forEach"].support, Support::Later);
        assert_eq!(object(field(deployment, "forEach")).name, "ForEach");
        assert_eq!(
            object(deployment).fields["replicas"].default.as_deref(),
            Some("`1`")
        );
        assert_eq!(
            object(deployment).fields["name"]
                .description
                .lines()
                .count(),
            1
        );
        assert_eq!(
            *field(deployment, "onFalse"),
            Shape::Enum {
                values: vec!["delete".into(), "keep".into()],
                later: vec![]
            }
        );
        assert!(matches!(field(deployment, "env"), Shape::OneOf(shapes) if shapes.len() == 2));
        assert_eq!(
            *field(deployment, "volumes"),
            Shape::List(Box::new(Shape::Free))
        );
        let Shape::List(custom) = field(lifecycle, "custom") else {
            panic!()
        };
        assert_eq!(object(custom).rest.as_deref(), Some(&Shape::Free));
    }
}
