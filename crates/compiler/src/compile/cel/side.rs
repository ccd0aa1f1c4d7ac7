//! Compiles the left side of a comparison, a value of the object, to CEL.

use super::{CelContext, CelResult, fields, of_object};
use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{OLD, OPERATION, cel::quoted};
use orkestra_template::Template;

/// The words that CEL reserves; they are read by index.
///
/// Source: CEL language definition, "Syntax".
const RESERVED: [&str; 22] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
    "self",
];

/// The metadata that policies and webhooks see alike.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];

/// The type of a value, by its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CelType {
    Text,
    Int,
    Number,
    Bool,
    List,
    Map,
}

impl CelType {
    /// Returns the type of values of the schema, if it has one.
    pub(crate) fn of(schema: Schema<'_>) -> Option<Self> {
        Some(match schema.type_word()? {
            "string" => Self::Text,
            "integer" => Self::Int,
            "number" => Self::Number,
            "boolean" => Self::Bool,
            "array" => Self::List,
            "object" => Self::Map,
            _ => return None,
        })
    }
}

/// A value of the object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectValue {
    /// The expression that is true if the value is present.
    pub(crate) present: String,
    /// The value, if it is present.
    pub(crate) value: String,
    /// Its type.
    pub(crate) kind: CelType,
    /// Its path, for messages.
    pub(crate) path: String,
}

impl ObjectValue {
    /// Returns the trimmed text; empty if it is absent. Only for [`CelType::Text`].
    pub(crate) fn text(&self) -> String {
        let Self { present, value, .. } = self;
        if present == "true" {
            return format!("{value}.trim()");
        }
        format!("({present} ? {value}.trim() : \"\")")
    }

    /// Returns the number; 0 if it is absent. Only for numbers.
    pub(crate) fn number(&self) -> String {
        let Self { present, value, .. } = self;
        format!("({present} ? {value} : 0)")
    }
}

impl CelContext<'_> {
    /// Returns the value at a path of template data.
    pub(crate) fn side(&self, path: &Path) -> CelResult<ObjectValue> {
        let steps = fields(path)?;
        let (base, is_old, below) = match &steps[..] {
            [OPERATION] => {
                return Ok(ObjectValue {
                    present: "true".to_owned(),
                    value: "request.operation".to_owned(),
                    kind: CelType::Text,
                    path: path.to_string(),
                });
            }
            [OLD, below @ ..] => ("oldObject", true, below),
            below => ("object", false, below),
        };
        match below {
            ["metadata", name, ..] if METADATA.contains(name) => {}
            ["spec", _, ..] => {}
            _ => {
                return Err(format!(
                    "policies do not see the same value of `{path}` as passes"
                ));
            }
        }
        let relative = of_object(path);
        if !is_old {
            self.check_unset(&relative)?;
        }
        let mut present: Vec<String> = is_old
            .then(|| "oldObject != null".to_owned())
            .into_iter()
            .collect();
        let (value, schema) = self.descend(path, (base, below), &mut present)?;
        let kind = CelType::of(schema).ok_or_else(|| unknown_type(path))?;
        // A `Scale` has the name and the namespace of the object.
        if self.on_scale && !matches!(below, ["metadata", "name" | "namespace"]) {
            if self.replicas != Some(&relative) || kind != CelType::Int {
                return Err(format!("a write of `scale` does not contain `{path}`"));
            }
            // The API server leaves out 0.
            let value = format!("{base}.spec.replicas");
            return Ok(ObjectValue {
                present: "true".to_owned(),
                value: format!("(has({base}.spec) && has({value}) ? {value} : 0)"),
                kind,
                path: path.to_string(),
            });
        }
        Ok(ObjectValue {
            present: format!("({})", present.join(" && ")),
            value,
            kind,
            path: path.to_string(),
        })
    }

    /// Returns the expression of the field at the steps `below` the object `base`, and its schema; what must be present is
    /// added to `present`.
    pub(crate) fn descend(
        &self,
        path: &Path,
        (base, below): (&str, &[&str]),
        present: &mut Vec<String>,
    ) -> CelResult<(String, Schema<'_>)> {
        let mut value = base.to_owned();
        let mut schema = self.schema;
        for (depth, name) in below.iter().enumerate() {
            if depth > 0 && schema.type_word() != Some("object") {
                return Err(unknown_type(path));
            }
            let NestedSchema::Schema(inner) = schema.at(&[PathStep::Field((*name).into())]) else {
                return Err(unknown_type(path));
            };
            if inner.is_nullable() {
                return Err(format!("`{path}` may be null"));
            }
            schema = inner;
            if is_plain(name) {
                present.push(format!("has({value}.{name})"));
                value = format!("{value}.{name}");
            } else {
                present.push(format!("{} in {value}", quoted(name)));
                value = format!("{value}[{}]", quoted(name));
            }
        }
        Ok((value, schema))
    }
}

pub(crate) fn unknown_type(path: &Path) -> String {
    format!("the schema does not say the type of `{path}`")
}

fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !RESERVED.contains(&name)
}

/// Returns the path that a template reads, if it is `{{ .a.path }}` and nothing else.
pub(crate) fn plain_path(template: &Template) -> Option<Path> {
    let inner = template
        .source()
        .trim()
        .strip_prefix("{{")?
        .strip_suffix("}}")?;
    path_of(template, inner)
}

/// Returns the path that the action `inner` of a template reads, if it is a path and nothing else.
pub(crate) fn path_of(template: &Template, inner: &str) -> Option<Path> {
    let text = inner.trim().strip_prefix('.')?;
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.as_bytes()[0].is_ascii_digit()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !text.split('.').all(is_name) {
        return None;
    }
    let path = Path::of_fields(text.split('.'));
    let mut reads = template.reads().iter();
    // A note of that name would read something else.
    reads.any(|read| *read == path).then_some(path)
}
