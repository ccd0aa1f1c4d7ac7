//! Types, required and unknown fields, bounds, enums, patterns and formats.

use super::{flag, format, lists, words_of as words};
use crate::regex;
use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, nearest},
    schema::{EMBEDDED, INT_OR_STRING, NestedSchema, Schema},
};
use orkestra_object::value::Node;

/// The maximum length of a value in a message.
const SHOWN: usize = 60;

/// Collects the problems of a value.
pub(crate) struct Structure<'f> {
    found: &'f mut Diagnostics,
    /// Whether unknown fields are problems: not below `allOf`, `anyOf`, `oneOf` and `not`, which only restrict what is declared elsewhere.
    is_structural: bool,
}

impl<'f> Structure<'f> {
    pub(crate) fn new(found: &'f mut Diagnostics) -> Self {
        Self {
            found,
            is_structural: true,
        }
    }

    /// Adds a problem.
    pub(crate) fn refuse(&mut self, at: &FieldPath, message: impl Into<String>) {
        self.push(Diagnostic::error(
            Code::RefusedResource,
            at.clone(),
            message,
        ));
    }

    fn push(&mut self, problem: Diagnostic) {
        self.found.push(problem);
    }

    /// Checks a value.
    pub(crate) fn check(&mut self, schema: &Schema<'_>, value: &Node, at: &FieldPath) {
        let node = schema.node();
        if *value == Node::Null && (flag(node, "nullable") || schema.type_word().is_none()) {
            return;
        }
        if !self.has_type(schema, value, at) {
            return;
        }
        self.listed(node, value, at);
        match value {
            Node::Int(_) | Node::UInt(_) | Node::Float(_) => self.number(node, value, at),
            Node::Str(text) => self.text(node, text, at),
            Node::List(items) => {
                self.count(node, ("minItems", "maxItems", "item"), items.len(), at);
                for twice in lists::duplicates(node, items) {
                    let message =
                        format!("the same item is at [{}]: {}", twice.first, twice.identity);
                    self.refuse(&at.index(twice.index), message);
                }
                if let NestedSchema::Schema(below) = schema.item() {
                    for (index, item) in items.iter().enumerate() {
                        self.check(&below, item, &at.index(index));
                    }
                }
            }
            Node::Map(_) => self.map(schema, value, at),
            Node::Null | Node::Bool(_) => {}
        }
        self.combined(schema, value, at);
    }

    fn has_type(&mut self, schema: &Schema<'_>, value: &Node, at: &FieldPath) -> bool {
        let is_whole = match value {
            Node::Int(_) | Node::UInt(_) => true,
            Node::Float(number) => number.fract() == 0.0,
            _ => false,
        };
        let is_number = matches!(value, Node::Int(_) | Node::UInt(_) | Node::Float(_));
        let is_text = matches!(value, Node::Str(_));
        let (fits, expected) = match schema.type_word() {
            Some("int-or-string") => (is_whole || is_text, "an integer or a string"),
            Some("integer") => (is_whole, "an integer"),
            Some("number") => (is_number, "a number"),
            Some("boolean") => (matches!(value, Node::Bool(_)), "a boolean"),
            Some("string") => (is_text, "a string"),
            Some("array") => (matches!(value, Node::List(_)), "a list"),
            Some("object") => (matches!(value, Node::Map(_)), "an object"),
            _ => (true, ""),
        };
        if !fits {
            let found = match value {
                Node::Str(text) => format!("the string {:?}", shortened(text)),
                Node::Map(_) => "an object".to_owned(),
                Node::List(_) => "a list".to_owned(),
                Node::Null => "null".to_owned(),
                other => format!("the {} `{}`", other.type_name(), other.to_text()),
            };
            self.refuse(at, format!("expected {expected}, found {found}"));
        }
        fits
    }

    fn listed(&mut self, schema: &Node, value: &Node, at: &FieldPath) {
        let Some(all) = schema.get("enum").and_then(Node::as_list) else {
            return;
        };
        if all.contains(value) {
            return;
        }
        let texts: Vec<_> = all.iter().map(Node::to_text).collect();
        let message = format!(
            "`{}` is not one of {}",
            shortened(&value.to_text()),
            texts.join(", ")
        );
        let mut problem = Diagnostic::error(Code::RefusedResource, at.clone(), message);
        if let Some(near) = nearest(&value.to_text(), texts.iter().map(AsRef::as_ref)) {
            problem = problem.hint(format!("did you mean `{near}`?"));
        }
        self.push(problem);
    }

    fn number(&mut self, schema: &Node, value: &Node, at: &FieldPath) {
        let Some(number) = as_f64(value) else {
            return;
        };
        let shown = value.to_text();
        let bound = |keyword| schema.get(keyword).and_then(as_f64);
        if let Some(least) = bound("minimum") {
            let is_open = flag(schema, "exclusiveMinimum");
            if number < least || (is_open && number <= least) {
                let words = if is_open { "greater than" } else { "at least" };
                self.refuse(at, format!("expected {words} {least}, found {shown}"));
            }
        }
        if let Some(most) = bound("maximum") {
            let is_open = flag(schema, "exclusiveMaximum");
            if number > most || (is_open && number >= most) {
                let words = if is_open { "less than" } else { "at most" };
                self.refuse(at, format!("expected {words} {most}, found {shown}"));
            }
        }
        if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
            let ratio = number / step;
            if (ratio - ratio.round()).abs() > f64::EPSILON * ratio.abs().max(1.0) {
                self.refuse(at, format!("expected a multiple of {step}, found {shown}"));
            }
        }
    }

    fn text(&mut self, schema: &Node, text: &str, at: &FieldPath) {
        let length = text.chars().count();
        self.count(schema, ("minLength", "maxLength", "character"), length, at);
        let shown = shortened(text);
        if let Some(pattern) = schema.get("pattern").and_then(Node::as_str) {
            match regex(pattern) {
                Ok(compiled) if compiled.is_match(text) => {}
                Ok(_) => self.refuse(at, format!("{shown:?} does not match `{pattern}`")),
                Err(_) => {
                    let message = format!("the pattern `{pattern}` is not checked here");
                    let code = Code::RuleNotChecked;
                    self.push(Diagnostic::warning(code, at.clone(), message));
                }
            }
        }
        if let Some(name) = schema.get("format").and_then(Node::as_str)
            && !format::is_valid(name, text)
        {
            self.refuse(at, format!("{shown:?} does not have the format {name}"));
        }
    }

    fn count(
        &mut self,
        schema: &Node,
        (least, most, unit): (&str, &str, &str),
        count: usize,
        at: &FieldPath,
    ) {
        let bound = |keyword| {
            let bound = schema.get(keyword).and_then(Node::as_i64)?;
            usize::try_from(bound).ok()
        };
        let units = |count: usize| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
        if let Some(least) = bound(least).filter(|least| count < *least) {
            let message = format!("expected at least {}, found {count}", units(least));
            self.refuse(at, message);
        }
        if let Some(most) = bound(most).filter(|most| count > *most) {
            let message = format!("expected at most {}, found {count}", units(most));
            self.refuse(at, message);
        }
    }

    fn map(&mut self, schema: &Schema<'_>, value: &Node, at: &FieldPath) {
        let (node, Some(map)) = (schema.node(), value.as_map()) else {
            return;
        };
        let bounds = ("minProperties", "maxProperties", "field");
        self.count(node, bounds, map.len(), at);
        for name in words(node.get("required")) {
            if map.get(name).is_none() {
                self.refuse(&at.field(name), "the field is required");
            }
        }
        if flag(node, EMBEDDED) {
            for name in ["apiVersion", "kind"] {
                let text = map.get(name).and_then(Node::as_str);
                if text.is_none_or(str::is_empty) {
                    self.refuse(&at.field(name), "the field is required");
                }
            }
        }
        for (key, below) in map.iter() {
            match schema.field(key) {
                NestedSchema::Schema(schema) => self.check(&schema, below, &at.field(key)),
                NestedSchema::Anything => {}
                NestedSchema::Nowhere if !self.is_structural => {}
                NestedSchema::Nowhere => {
                    let code = Code::RefusedResource;
                    let message = "the schema has no such field";
                    let problem = Diagnostic::error(code, at.field(key), message);
                    let hint = nearest(key, schema.fields());
                    let hint = hint.map(|near| format!("did you mean `{near}`?"));
                    let all: Vec<&str> = schema.fields().take(12).collect();
                    let all = || format!("known fields: {}", all.join(", "));
                    let mut problem = problem.hint(hint.unwrap_or_else(all));
                    problem.at_key = true;
                    self.push(problem);
                }
            }
        }
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`: restrictions of values whose fields are declared elsewhere.
    fn combined(&mut self, schema: &Schema<'_>, value: &Node, at: &FieldPath) {
        let node = schema.node();
        let all = |keyword| {
            let list = node.get(keyword).and_then(Node::as_list);
            list.unwrap_or_default()
        };
        for one in all("allOf") {
            let before = std::mem::replace(&mut self.is_structural, false);
            self.check(&schema.restriction(one), value, at);
            self.is_structural = before;
        }
        let fitting = |keyword| {
            let fits = all(keyword).iter();
            let fits = fits.filter(|one| is_valid(&schema.restriction(one), value));
            fits.count()
        };
        // `anyOf` of an integer and a string is how `x-kubernetes-int-or-string` is written out.
        if !all("anyOf").is_empty() && !flag(node, INT_OR_STRING) && fitting("anyOf") == 0 {
            let message = format!("the value fits none of {}", alternatives(all("anyOf")));
            self.refuse(at, message);
        }
        if !all("oneOf").is_empty() {
            let fitting = fitting("oneOf");
            if fitting != 1 {
                let message = format!(
                    "the value must fit exactly one of {}, and fits {fitting}",
                    alternatives(all("oneOf"))
                );
                self.refuse(at, message);
            }
        }
        if let Some(not) = node.get("not")
            && is_valid(&schema.restriction(not), value)
        {
            let message = format!(
                "the value fits what is excluded: {}",
                alternatives(std::slice::from_ref(not))
            );
            self.refuse(at, message);
        }
    }
}

/// True if a value fits a restriction.
fn is_valid(schema: &Schema<'_>, value: &Node) -> bool {
    let mut found = Diagnostics::default();
    let mut structure = Structure {
        found: &mut found,
        is_structural: false,
    };
    structure.check(schema, value, &FieldPath::root());
    !found.has_errors()
}

/// Returns alternatives for a message: the fields that they require, else their text.
fn alternatives(all: &[Node]) -> String {
    let words = |one: &Node| {
        let required = words(one.get("required"));
        if required.is_empty() {
            shortened(&one.to_text()).to_owned()
        } else {
            let fields: Vec<_> = required.iter().map(|name| format!("`{name}`")).collect();
            format!("a value with {}", fields.join(" and "))
        }
    };
    all.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Cuts a long text for a message.
fn shortened(text: &str) -> &str {
    text.char_indices()
        .nth(SHOWN)
        .map_or(text, |(end, _)| &text[..end])
}

fn as_f64(value: &Node) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the API server compares as floating point, too"
    )]
    match value {
        Node::Int(number) => Some(*number as f64),
        Node::UInt(number) => Some(*number as f64),
        Node::Float(number) => Some(*number),
        _ => None,
    }
}
