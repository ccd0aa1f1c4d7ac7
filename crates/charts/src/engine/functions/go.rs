//! The functions of Go's text/template, except for `and` and `or`, which the walker implements.

use std::cmp::Ordering;

use orkestra_template::go::EvalFailure;

use super::{Function, arg, function, string, variadic};
use crate::engine::print;
use crate::engine::{Engine, part_of};
use crate::value::Object;
use crate::value::{Raw, Value, object};

pub(crate) static TABLE: &[Function] = &[
    function("not", 1, |_, args| Ok(Value::Bool(args[0].is_empty()))),
    function("len", 1, |_, args| len(&args[0])),
    variadic("index", 1, index),
    variadic("slice", 1, slice),
    variadic("mustSlice", 1, slice),
    variadic("print", 0, |engine, args| {
        print::sprint(args, false, engine).map(Value::text)
    }),
    variadic("println", 0, |engine, args| {
        print::sprint(args, true, engine).map(Value::text)
    }),
    variadic("printf", 1, |engine, args| {
        let format = string(&args[0])?;
        print::sprintf(&format, &args[1..], engine).map(Value::text)
    }),
    variadic("html", 0, |engine, args| escaped(engine, args, html)),
    variadic("js", 0, |engine, args| escaped(engine, args, js)),
    variadic("urlquery", 0, |engine, args| {
        escaped(engine, args, url_query)
    }),
    variadic("call", 1, |_, _| {
        Err(EvalFailure::wrong_type(
            "a chart's values have no functions to call",
        ))
    }),
    variadic("eq", 1, |engine, args| {
        let [first, others @ ..] = args else {
            return Ok(Value::Nil);
        };
        if others.is_empty() {
            return Err(EvalFailure::wrong_type("missing argument for comparison"));
        }
        for other in others {
            if equal(first, other, engine)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    function("ne", 2, |engine, args| {
        Ok(Value::Bool(!equal(&args[0], &args[1], engine)?))
    }),
    function("lt", 2, |_, args| ordered(args, Ordering::is_lt)),
    function("le", 2, |_, args| ordered(args, Ordering::is_le)),
    function("gt", 2, |_, args| ordered(args, Ordering::is_gt)),
    function("ge", 2, |_, args| ordered(args, Ordering::is_ge)),
];

fn count(n: usize) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

fn len(value: &Value) -> Result<Value, EvalFailure> {
    Ok(match value {
        Value::Str(text) => count(text.len()),
        Value::Bytes(bytes, _) => count(bytes.len()),
        Value::List(items, _) => count(items.len()),
        Value::Map(map, _) => count(map.borrow().len()),
        Value::Object(Object::Files(files)) => count(files.len()),
        Value::Object(Object::Versions(capabilities)) => count(capabilities.api_versions.len()),
        Value::Nil => return Err(EvalFailure::wrong_type("len of nil pointer")),
        value => {
            return Err(EvalFailure::wrong_type(format!(
                "len of type {}",
                value.type_name()
            )));
        }
    })
}

/// Returns the position of an index; `most` itself is valid for the end of a slice.
fn position(index: &Value, most: usize) -> Result<usize, EvalFailure> {
    let number = match index {
        Value::Int(n) | Value::Int64(n) => *n,
        Value::Nil => return Err(EvalFailure::wrong_type("cannot index slice/array with nil")),
        value => {
            let message = format!("cannot index slice/array with type {}", value.type_name());
            return Err(EvalFailure::wrong_type(message));
        }
    };
    usize::try_from(number)
        .ok()
        .filter(|number| *number <= most)
        .ok_or_else(|| EvalFailure::refused(format!("index out of range: {number}")))
}

fn index(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let mut value = args[0].clone();
    for key in &args[1..] {
        let next = match &value {
            Value::Nil => return Err(EvalFailure::wrong_type("index of untyped nil")),
            Value::Map(map, _) => {
                let key = match key {
                    Value::Nil => {
                        return Err(EvalFailure::wrong_type(
                            "value is nil; should be of type string",
                        ));
                    }
                    Value::Str(_) | Value::Bytes(_, Raw::Text) => string(key)?,
                    key => {
                        let found = key.type_name();
                        let message = format!("value has type {found}; should be string");
                        return Err(EvalFailure::wrong_type(message));
                    }
                };
                map.borrow().get(&*key).cloned().unwrap_or_default()
            }
            Value::Object(object @ Object::Files(_)) => {
                let key = string(key)?;
                object.clone().field(&key, engine)?
            }
            Value::Str(text) => {
                let at = position(key, text.len().saturating_sub(1))?;
                let byte = text.as_bytes().get(at).copied();
                let byte = byte.ok_or_else(|| EvalFailure::refused("index out of range: 0"))?;
                Value::Int(i64::from(byte))
            }
            value => {
                if let Some((items, _)) = object::slice(value) {
                    let at = position(key, items.len())?;
                    let item = items.get(at).cloned();
                    item.ok_or_else(|| {
                        EvalFailure::refused(format!("reflect: slice index out of range: {at}"))
                    })?
                } else {
                    let message = format!("can't index item of type {}", value.type_name());
                    return Err(EvalFailure::wrong_type(message));
                }
            }
        };
        value = next;
    }
    Ok(value)
}

/// Sprig's `slice`, which hides Go's: returns a part of a list.
fn slice(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let Some((items, elem)) = object::slice(&args[0]) else {
        let kind = args[0].kind();
        return Err(EvalFailure::refused(format!(
            "list should be type of slice or array but {kind}"
        )));
    };
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let bound = |at: usize, default: usize| match args.get(at) {
        Some(value) => usize::try_from(super::numbers::to_i64(value)).ok(),
        None => Some(default),
    };
    let range = bound(1, 0).zip(bound(2, items.len()));
    let part = range.and_then(|(start, end)| items.get(start..end));
    let part = part.ok_or_else(|| EvalFailure::refused("slice bounds out of range"))?;
    Ok(part_of(elem, part.to_vec()))
}

/// The kinds that Go's templates distinguish in comparisons.
#[derive(PartialEq)]
enum Basic<'v> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(std::borrow::Cow<'v, str>),
    Nil,
    Other,
}

fn basic(value: &Value) -> Basic<'_> {
    match value {
        Value::Nil => Basic::Nil,
        Value::Bool(b) => Basic::Bool(*b),
        Value::Int(n) | Value::Int64(n) | Value::Object(Object::Duration(n)) => Basic::Int(*n),
        Value::Float(n) => Basic::Float(*n),
        Value::Str(_) | Value::Bytes(_, Raw::Text) => match string(value) {
            Ok(text) => Basic::Text(text),
            Err(_) => Basic::Other,
        },
        _ => Basic::Other,
    }
}

fn equal(a: &Value, b: &Value, engine: &mut Engine<'_>) -> Result<bool, EvalFailure> {
    let incompatible = || EvalFailure::wrong_type("incompatible types for comparison");
    match (basic(a), basic(b)) {
        (Basic::Bool(a), Basic::Bool(b)) => Ok(a == b),
        (Basic::Int(a), Basic::Int(b)) => Ok(a == b),
        (Basic::Float(a), Basic::Float(b)) => Ok(a == b),
        (Basic::Text(a), Basic::Text(b)) => Ok(a == b),
        (Basic::Nil, Basic::Nil) => Ok(true),
        // A missing value is a nil interface, which is comparable with everything and equal to nothing else.
        (Basic::Nil, _) | (_, Basic::Nil) => Ok(false),
        (Basic::Other, Basic::Other) => match (a, b) {
            (Value::Object(a), Value::Object(b)) => Ok(a.same(b)),
            (a, b) => {
                let (first, second) = (print::text(a, engine)?, print::text(b, engine)?);
                let (a, b) = (a.type_name(), b.type_name());
                let message = format!("non-comparable types {a}: {first}, {b}: {second}");
                Err(EvalFailure::wrong_type(message))
            }
        },
        _ => Err(incompatible()),
    }
}

fn ordered(args: &[Value], holds: fn(Ordering) -> bool) -> Result<Value, EvalFailure> {
    let order = match (basic(arg(args, 0)), basic(arg(args, 1))) {
        (Basic::Int(a), Basic::Int(b)) => Some(a.cmp(&b)),
        (Basic::Float(a), Basic::Float(b)) => a.partial_cmp(&b),
        (Basic::Text(a), Basic::Text(b)) => Some(a.cmp(&b)),
        (Basic::Nil | Basic::Other | Basic::Bool(_), _)
        | (_, Basic::Nil | Basic::Other | Basic::Bool(_)) => {
            return Err(EvalFailure::wrong_type("invalid type for comparison"));
        }
        _ => return Err(EvalFailure::wrong_type("incompatible types for comparison")),
    };
    Ok(Value::Bool(order.is_some_and(holds)))
}

/// Joins the arguments into one text, with each character escaped.
fn escaped(
    engine: &mut Engine<'_>,
    args: &[Value],
    escape: fn(char, &mut String),
) -> Result<Value, EvalFailure> {
    let text = match args {
        [Value::Nil] => "<no value>".to_owned(),
        [only] => print::text(only, engine)?,
        args => print::sprint(args, false, engine)?,
    };
    // An escape takes at most ten bytes per character.
    engine.text(text.len().saturating_mul(10))?;
    let mut out = String::new();
    text.chars().for_each(|c| escape(c, &mut out));
    Ok(Value::text(out))
}

/// Source: Go's text/template, `HTMLEscape`.
fn html(c: char, out: &mut String) {
    match c {
        '\0' => out.push('\u{fffd}'),
        '"' => out.push_str("&#34;"),
        '\'' => out.push_str("&#39;"),
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}

/// Source: Go's text/template, `JSEscape`.
fn js(c: char, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\'' => out.push_str("\\'"),
        '"' => out.push_str("\\\""),
        '<' => out.push_str("\\u003C"),
        '>' => out.push_str("\\u003E"),
        '&' => out.push_str("\\u0026"),
        '=' => out.push_str("\\u003D"),
        c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        c => out.push(c),
    }
}

/// Source: Go's net/url, `QueryEscape`.
fn url_query(c: char, out: &mut String) {
    match c {
        ' ' => out.push('+'),
        c if c.is_ascii_alphanumeric() || "-_.~".contains(c) => out.push(c),
        c => c
            .encode_utf8(&mut [0; 4])
            .bytes()
            .for_each(|byte| out.push_str(&format!("%{byte:02X}"))),
    }
}
