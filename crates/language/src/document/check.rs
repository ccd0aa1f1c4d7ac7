//! Checks a tree against the shape of the API types.
//!
//! One walk finds all problems: unknown fields, wrong shapes, missing fields and fields that are not implemented yet. The
//! walk also returns the value as JSON that always deserializes: empty fields are omitted, and `"3"` becomes 3 where a
//! number is expected.

use serde_json::{Map, Value};

use super::hints::{self, EnclosingMap};
use crate::api::duration;
use crate::api::shape::{Field, ObjectShape, Shape, Support};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, MOST_PROBLEMS, did_you_mean};
use crate::tree::{FileSpan, Tree, TreeKey, TreeValue};
use orkestra_object::value::Node;

/// Checks `tree`, at `path`, against `shape`.
///
/// Returns the value as JSON. It is valid only if no error was added to `found`.
pub(crate) fn check<'a>(
    tree: &Tree,
    shape: &'a Shape,
    path: &FieldPath,
    found: &'a mut Diagnostics,
) -> Value {
    let place = CheckPosition {
        path: path.clone(),
        key: tree.span,
    };
    let mut checker = Checker {
        found,
        is_later: false,
        around: Vec::new(),
    };
    checker.value(tree, shape, &place)
}

/// The position of the walk.
struct CheckPosition {
    path: FieldPath,
    /// The key of this value, or the list item itself.
    key: Option<FileSpan>,
}

struct Checker<'a> {
    found: &'a mut Diagnostics,
    /// True if the walk is inside a field that is not implemented yet.
    is_later: bool,
    /// The maps around the current value, outermost first.
    around: Vec<EnclosingMap<'a>>,
}

impl<'a> Checker<'a> {
    fn error(
        &mut self,
        code: Code,
        place: &CheckPosition,
        span: Option<FileSpan>,
        message: String,
    ) -> &mut Diagnostic {
        let diagnostic =
            Diagnostic::error(code, place.path.clone(), message).at(span.or(place.key));
        self.found.push(diagnostic);
        let last = self.found.0.len() - 1;
        &mut self.found.0[last]
    }

    fn wrong(&mut self, tree: &Tree, shape: &Shape, place: &CheckPosition) -> Value {
        let span = match tree.value {
            TreeValue::Map(_) | TreeValue::List(_) | TreeValue::Null => place.key,
            _ => tree.span,
        };
        // A value in the place of a map or a list may be a secret.
        let found = match shape {
            Shape::Object(_) | Shape::List(_) | Shape::OneOf(_) => tree.describe().to_owned(),
            _ => describe(tree),
        };
        let message = format!("expected {}, found {found}", shape.describe());
        let diagnostic = self.error(Code::WrongShape, place, span, message);
        diagnostic.hint = match (&tree.value, shape) {
            (TreeValue::Str(text), shape) if text.contains("{{") => {
                let meant = hints::instead_of_scalar(shape, tree);
                let is_meant =
                    |hint: &String| hint.starts_with("write `{") || hint.starts_with("write `- {");
                let none = || "a template is not permitted here".to_owned();
                Some(meant.filter(is_meant).unwrap_or_else(none))
            }
            (TreeValue::List(_), Shape::Object(_)) => {
                Some("remove the `- `: a map has `key: value`".to_owned())
            }
            (TreeValue::Map(_) | TreeValue::List(_) | TreeValue::Null, _) => None,
            _ => hints::instead_of_scalar(shape, tree),
        };
        Value::Null
    }

    fn value(&mut self, tree: &Tree, shape: &'a Shape, place: &CheckPosition) -> Value {
        match shape {
            Shape::Free => tree.to_json(),
            Shape::Scalar | Shape::Text => match tree.value {
                TreeValue::Null | TreeValue::List(_) | TreeValue::Map(_) => {
                    self.wrong(tree, shape, place)
                }
                _ => leaf(tree, shape),
            },
            Shape::Bool => match (&tree.value, tree.as_str().map(str::trim)) {
                (TreeValue::Bool(flag), _) => Value::Bool(*flag),
                (_, Some("true")) => Value::Bool(true),
                (_, Some("false")) => Value::Bool(false),
                _ => self.wrong(tree, shape, place),
            },
            Shape::Int { min, max } => self.int(tree, shape, (*min, *max), place),
            Shape::Duration => self.duration(tree, shape, place),
            Shape::Enum { values, later } => self.word(tree, shape, (values, later), place),
            Shape::List(item) => self.list(tree, shape, item, place),
            Shape::Object(object) => match &tree.value {
                TreeValue::Map(entries) => self.object(entries, object, place),
                _ => self.wrong(tree, shape, place),
            },
            Shape::OneOf(shapes) => match shapes.iter().find(|shape| suits(shape, tree)) {
                Some(one) => self.value(tree, one, place),
                None => self.wrong(tree, shape, place),
            },
            Shape::OrTemplate(written) => match tree.as_str() {
                Some(text) if text.contains("{{") => Value::from(text),
                _ => self.value(tree, written, place),
            },
        }
    }

    fn int(
        &mut self,
        tree: &Tree,
        shape: &Shape,
        bounds: (Option<i64>, Option<i64>),
        place: &CheckPosition,
    ) -> Value {
        let number = match &tree.value {
            TreeValue::Int(number) => Some(*number),
            TreeValue::Str(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            return self.wrong(tree, shape, place);
        };
        let (min, max) = (bounds.0.unwrap_or(i64::MIN), bounds.1.unwrap_or(i64::MAX));
        if !(min..=max).contains(&number) {
            let message = if number < min {
                format!("{number} is too small: the minimum is {min}")
            } else {
                format!("{number} is too large: the maximum is {max}")
            };
            self.error(Code::OutOfRange, place, tree.span, message);
        }
        Value::from(number)
    }

    fn duration(&mut self, tree: &Tree, shape: &Shape, place: &CheckPosition) -> Value {
        let text = match &tree.value {
            TreeValue::Str(text) => text.clone(),
            TreeValue::Int(number) => number.to_string(),
            _ => return self.wrong(tree, shape, place),
        };
        if text.contains("{{") {
            return self.wrong(tree, shape, place);
        }
        if let Err(why) = duration::parse(&text) {
            self.error(Code::BadDuration, place, tree.span, why.to_string())
                .hint = duration::meant(&text).map(|meant| format!("write `{meant}`"));
        }
        Value::String(text)
    }

    fn word(
        &mut self,
        tree: &Tree,
        shape: &Shape,
        words: (&[String], &[String]),
        place: &CheckPosition,
    ) -> Value {
        let Some(text) = tree.as_str() else {
            return self.wrong(tree, shape, place);
        };
        let (values, later) = words;
        if values.iter().any(|word| word == text) {
            return Value::from(text);
        }
        if later.iter().any(|word| word == text) {
            if self.is_later {
                return Value::from(text);
            }
            self.error(
                Code::NotSupportedYet,
                place,
                tree.span,
                format!("`{text}` is not supported yet"),
            )
            .hint = Some(format!("write {}", shape.describe()));
            return Value::Null;
        }
        let message = format!("`{text}` is not known; expected {}", shape.describe());
        let known = values.iter().chain(later).map(String::as_str);
        let hint = hints::word(text, values).or_else(|| did_you_mean(text, known));
        self.error(Code::UnknownWord, place, tree.span, message)
            .hint = hint;
        Value::Null
    }

    fn list(
        &mut self,
        tree: &Tree,
        shape: &Shape,
        item: &'a Shape,
        place: &CheckPosition,
    ) -> Value {
        let TreeValue::List(items) = &tree.value else {
            self.wrong(tree, shape, place);
            if let (TreeValue::Map(_), Shape::Object(_)) = (&tree.value, item)
                && let Some(last) = self.found.0.last_mut()
            {
                last.hint = Some("begin each item with `- `".to_owned());
            }
            return Value::Null;
        };
        let checked = items.iter().enumerate().map(|(index, value)| {
            let place = CheckPosition {
                path: place.path.index(index),
                key: value.span.or(place.key),
            };
            self.value(value, item, &place)
        });
        Value::Array(checked.collect())
    }

    fn object(
        &mut self,
        entries: &[(TreeKey, Tree)],
        object: &'a ObjectShape,
        place: &CheckPosition,
    ) -> Value {
        self.around.push(EnclosingMap {
            path: place.path.clone(),
            object,
        });
        let mut checked = Map::new();
        let mut is_partial = false;
        for (key, value) in entries {
            let inner = CheckPosition {
                path: place.path.field(&key.name),
                key: key.span.or(value.span).or(place.key),
            };
            match (object.fields.get(&key.name), &object.rest) {
                (Some(field), _) => {
                    is_partial |= !self.is_supported(key, value, field, &inner);
                    if !value.is_null() && matches!(field.support, Support::Works | Support::Later)
                    {
                        let outer = self.is_later;
                        self.is_later |= field.support == Support::Later;
                        let value = self.value(value, &field.shape, &inner);
                        self.is_later = outer;
                        checked.insert(key.name.clone(), value);
                    }
                }
                (None, Some(rest)) => {
                    let value = self.rest(value, rest, &inner);
                    checked.insert(key.name.clone(), value);
                }
                (None, None) => {
                    is_partial = true;
                    // With too many problems the last ones are dropped, so they need no hint.
                    let is_reported = self.found.0.len() <= MOST_PROBLEMS;
                    let hint = || hints::unknown(&key.name, &self.around);
                    let hint = is_reported.then(hint).flatten();
                    self.error(
                        Code::UnknownField,
                        &inner,
                        key.span,
                        format!("unknown field `{}`", key.name),
                    )
                    .hint = hint;
                }
            }
        }
        if !is_partial {
            self.missing(&checked, entries, object, place);
        }
        self.around.pop();
        Value::Object(checked)
    }

    /// Reports a field that has no effect here. Returns false if the field is an error. Of fields that are not implemented
    /// yet, only the outermost is reported.
    fn is_supported(
        &mut self,
        key: &TreeKey,
        value: &Tree,
        field: &Field,
        place: &CheckPosition,
    ) -> bool {
        let name = &key.name;
        match &field.support {
            Support::Works => true,
            Support::Later if self.is_later => true,
            Support::Later => {
                let message = format!("`{name}` is not supported yet");
                self.error(Code::NotSupportedYet, place, key.span, message);
                false
            }
            Support::Ignored(why) => {
                let message = format!("`{name}` has no effect here");
                let mut warning = Diagnostic::warning(Code::NoEffect, place.path.clone(), message);
                warning.hint = (!why.is_empty()).then(|| why.clone());
                self.found.push(warning.at(key.span.or(value.span)));
                true
            }
            Support::Refused(why) => {
                let message = format!("`{name}` is not supported");
                self.error(Code::NotSupportedYet, place, key.span, message)
                    .hint = Some(why.clone());
                false
            }
        }
    }

    /// Reads a key of the user's own. An empty value is an empty map where a map is expected, else empty text.
    fn rest(&mut self, value: &Tree, shape: &'a Shape, place: &CheckPosition) -> Value {
        match (value.is_null(), shape) {
            (true, Shape::Object(_)) => Value::Object(Map::new()),
            (true, Shape::Free) => Value::Null,
            (true, _) => Value::from(""),
            (false, _) => self.value(value, shape, place),
        }
    }

    /// Reports missing fields. Skipped for a map with an unknown or unsupported field, which may be a misspelling of the
    /// missing one.
    fn missing(
        &mut self,
        checked: &Map<String, Value>,
        entries: &[(TreeKey, Tree)],
        object: &ObjectShape,
        place: &CheckPosition,
    ) {
        let missing = object
            .fields
            .iter()
            .filter(|(name, field)| field.required && !checked.contains_key(*name));
        for (name, _) in missing {
            // An empty value counts as missing, and has a position.
            let empty = entries.iter().find(|(key, _)| key.name == *name);
            let message = match empty {
                Some(_) => format!("`{name}` has no value"),
                None => format!("`{name}` is missing"),
            };
            let span = empty.and_then(|(key, _)| key.span);
            self.error(Code::Missing, place, span, message);
        }
    }
}

/// Text stays text and numbers stay numbers, except in a text field.
fn leaf(tree: &Tree, shape: &Shape) -> Value {
    match (tree.to_json(), shape) {
        (Value::String(text), _) => Value::String(text),
        (other, Shape::Text) => Value::String(Node::from(&other).to_text().into_owned()),
        (other, _) => other,
    }
}

/// Describes a value in messages. Short text is quoted, so that the reader recognizes it.
fn describe(tree: &Tree) -> String {
    match &tree.value {
        TreeValue::Str(text) if text.len() <= 60 && !text.contains('\n') => format!("`{text}`"),
        TreeValue::Bool(flag) => format!("`{flag}`"),
        TreeValue::Int(number) => format!("`{number}`"),
        TreeValue::Float(number) => format!("`{number}`"),
        _ => tree.describe().to_owned(),
    }
}

/// True if a value may be of the shape, or of one of several, judged only by being a map, a list or neither.
pub(crate) fn suits(shape: &Shape, tree: &Tree) -> bool {
    match tree.value {
        TreeValue::Map(_) => matches!(shape, Shape::Object(_) | Shape::Free),
        TreeValue::List(_) => matches!(shape, Shape::List(_) | Shape::Free),
        TreeValue::Null => matches!(shape, Shape::Free),
        _ => !matches!(shape, Shape::Object(_) | Shape::List(_)),
    }
}
