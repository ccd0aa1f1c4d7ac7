//! Keywords that contain no schemas.

use orkestra_object::value::Node;

/// The maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 18;

/// Keywords that reject nothing.
const ANNOTATIONS: [&str; 22] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "else",
    "example",
    "examples",
    "format",
    "id",
    "readOnly",
    "then",
    "title",
    "writeOnly",
];

/// Compiles a pattern of the schema.
///
/// # Errors
/// It is malformed or too large.
pub(crate) fn pattern(text: &str) -> Result<regex::Regex, String> {
    let pattern = regex::RegexBuilder::new(&crate::engine::functions::as_rust_regex(text));
    let mut pattern = pattern;
    let pattern = pattern.size_limit(PATTERN_BYTES).build();
    pattern.map_err(|_| format!("the pattern {text:?} is not supported"))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of values are floats anyway"
)]
fn number(node: &Node) -> Option<f64> {
    match node {
        Node::Int(n) => Some(*n as f64),
        Node::UInt(n) => Some(*n as f64),
        Node::Float(n) => Some(*n),
        _ => None,
    }
}

/// Evaluates a keyword without schemas: returns an error, or an empty text; `None` for other keywords.
#[expect(clippy::too_many_lines, reason = "one line or two a keyword")]
// Over 60 lines: a table, one arm for each keyword.
pub(crate) fn simple(keyword: &str, rule: &Node, value: &Node) -> Result<Option<String>, String> {
    let holds = |holds: bool, problem: String| if holds { String::new() } else { problem };
    let limit = || number(rule).ok_or_else(|| format!("`{keyword}` takes a number"));
    #[expect(clippy::cast_precision_loss, reason = "lengths are small")]
    let size = |count: usize| count as f64;
    let measured = match (keyword, value) {
        ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", value) => {
            number(value)
        }
        ("minLength" | "maxLength", Node::Str(text)) => Some(size(text.chars().count())),
        ("minItems" | "maxItems", Node::List(items)) => Some(size(items.len())),
        ("minProperties" | "maxProperties", Node::Map(map)) => Some(size(map.len())),
        _ => None,
    };
    Ok(Some(match keyword {
        "type" => {
            let types = rule.as_list().unwrap_or(std::slice::from_ref(rule));
            let fits = types
                .iter()
                .filter_map(Node::as_str)
                .any(|name| is_type(name, value));
            holds(
                fits,
                format!("expected {}, found {}", rule.to_text(), value.type_name()),
            )
        }
        "enum" => {
            let allowed = rule.as_list().unwrap_or_default();
            holds(
                allowed.iter().any(|other| same(other, value)),
                format!("expected one of {}", rule.to_text()),
            )
        }
        "const" => holds(same(rule, value), format!("expected {}", rule.to_text())),
        "required" => {
            let names = rule
                .as_list()
                .unwrap_or_default()
                .iter()
                .filter_map(Node::as_str);
            let is_map = value.as_map().is_some();
            let missing: Vec<&str> = names
                .filter(|name| is_map && value.get(name).is_none())
                .collect();
            holds(
                missing.is_empty(),
                format!("missing {}", missing.join(", ")),
            )
        }
        "pattern" => match value.as_str() {
            Some(text) => holds(
                pattern(rule.as_str().unwrap_or_default())?.is_match(text),
                format!("does not match {}", rule.to_text()),
            ),
            None => String::new(),
        },
        "uniqueItems" => {
            let items = value
                .as_list()
                .filter(|_| rule.as_bool() == Some(true))
                .unwrap_or_default();
            let twice =
                |(at, item): (usize, &Node)| items[..at].iter().any(|other| same(other, item));
            if items.len() > 1000 {
                return Err("`uniqueItems` of more than 1000 items is not supported".into());
            }
            holds(
                !items.iter().enumerate().any(twice),
                "an item appears twice".into(),
            )
        }
        "minimum" | "minLength" | "minItems" | "minProperties" => {
            let limit = limit()?;
            holds(
                measured.is_none_or(|n| n >= limit),
                format!("less than the minimum of {limit}"),
            )
        }
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => {
            let limit = limit()?;
            holds(
                measured.is_none_or(|n| n <= limit),
                format!("more than the maximum of {limit}"),
            )
        }
        "exclusiveMinimum" => {
            let limit = limit()?;
            holds(
                measured.is_none_or(|n| n > limit),
                format!("not more than {limit}"),
            )
        }
        "exclusiveMaximum" => {
            let limit = limit()?;
            holds(
                measured.is_none_or(|n| n < limit),
                format!("not less than {limit}"),
            )
        }
        "multipleOf" => {
            let limit = limit()?;
            holds(
                measured.is_none_or(|n| (n / limit).fract() == 0.0),
                format!("not a multiple of {limit}"),
            )
        }
        keyword if ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-") => String::new(),
        _ => return Ok(None),
    }))
}

fn is_type(name: &str, value: &Node) -> bool {
    match name {
        "null" => *value == Node::Null,
        "boolean" => matches!(value, Node::Bool(_)),
        "integer" => number(value).is_some_and(|n| n.fract() == 0.0),
        "number" => number(value).is_some(),
        "string" => matches!(value, Node::Str(_)),
        "array" => matches!(value, Node::List(_)),
        "object" => matches!(value, Node::Map(_)),
        _ => false,
    }
}

fn same(a: &Node, b: &Node) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
