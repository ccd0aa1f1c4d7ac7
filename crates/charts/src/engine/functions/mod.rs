//! The functions that chart templates call: Go's, Sprig's and Helm's.
//!
//! One file per family, one table per file. Arguments are checked like those in Go's templates: a function that takes a
//! string accepts nothing else. Functions charge the budget before they build anything.

#![allow(
    clippy::unnecessary_wraps,
    reason = "all functions have one signature, also those that cannot fail"
)]

mod crypto;
mod dates;
mod dicts;
mod encoding;
mod go;
mod helm;
mod lists;
mod numbers;
mod paths;
mod reflection;
mod refused;
mod regexes;
mod strings;
mod texts;
mod toml;
mod versions;

pub(crate) use refused::no_randomness;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use orkestra_template::go::EvalFailure;

use crate::engine::Engine;
use crate::engine::print;
use crate::value::{Elem, Items, Raw, Table, Value, object};

pub(crate) use regexes::as_rust_regex;

/// The implementation of a function.
type Run = fn(&mut Engine<'_>, &[Value]) -> Result<Value, EvalFailure>;

/// A function.
pub(crate) struct Function {
    /// The name that templates call.
    pub(crate) name: &'static str,
    least: usize,
    most: Option<usize>,
    run: Run,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A function with a fixed number of arguments.
const fn function(name: &'static str, count: usize, run: Run) -> Function {
    Function {
        name,
        least: count,
        most: Some(count),
        run,
    }
}

/// A function with a minimum number of arguments.
const fn variadic(name: &'static str, least: usize, run: Run) -> Function {
    Function {
        name,
        least,
        most: None,
        run,
    }
}

static FAMILIES: &[&[Function]] = &[
    crypto::TABLE,
    dates::TABLE,
    dicts::TABLE,
    encoding::TABLE,
    go::TABLE,
    helm::TABLE,
    lists::TABLE,
    numbers::TABLE,
    paths::TABLE,
    reflection::TABLE,
    refused::TABLE,
    regexes::TABLE,
    strings::TABLE,
    texts::TABLE,
    toml::TABLE,
    versions::TABLE,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let all = FAMILIES.iter().flat_map(|family| family.iter());
    all.map(|function| (function.name, function)).collect()
});

/// Finds a function by name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name).copied()
}

/// Calls a function.
pub(crate) fn call(
    function: &Function,
    args: &[Value],
    engine: &mut Engine<'_>,
) -> Result<Value, EvalFailure> {
    let Function {
        name,
        least,
        most,
        run,
    } = function;
    let given = args.len();
    if given < *least || most.is_some_and(|most| given > most) {
        let wanted = match most {
            Some(most) if most == least => most.to_string(),
            Some(most) => format!("{least} to {most}"),
            None => format!("at least {least}"),
        };
        let message = format!("wrong number of args for {name}: want {wanted} got {given}");
        return Err(EvalFailure::wrong_type(message));
    }
    let bytes: usize = args
        .iter()
        .map(|arg| arg.as_str().map_or(0, str::len))
        .sum();
    engine.steps(2 + bytes as u64 / 16)?;
    run(engine, args).map_err(|failure| {
        let message = failure.message();
        // A failure inside a called template is reported unchanged.
        if matches!(*name, "include" | "tpl" | "fail" | "required")
            || message.starts_with("error calling")
        {
            return failure;
        }
        EvalFailure::new(failure.kind(), format!("error calling {name}: {message}"))
    })
}

/// Returns an argument; nil if there is none.
fn arg(args: &[Value], position: usize) -> &Value {
    args.get(position).unwrap_or(&Value::Nil)
}

/// Returns the error for an argument of a wrong type.
fn wrong(expected: &str, value: &Value) -> EvalFailure {
    let found = match value {
        Value::Nil => "interface {}".to_owned(),
        value => value.type_name(),
    };
    EvalFailure::wrong_type(format!(
        "wrong type for value; expected {expected}; got {found}"
    ))
}

/// Returns a `string`; invalid UTF-8 is replaced.
pub(crate) fn string(value: &Value) -> Result<Cow<'_, str>, EvalFailure> {
    match value {
        Value::Str(text) => Ok(Cow::Borrowed(text)),
        Value::Bytes(bytes, Raw::Text) => Ok(String::from_utf8_lossy(bytes)),
        value => Err(wrong("string", value)),
    }
}

/// Returns the bytes of a `string`.
fn string_bytes(value: &Value) -> Result<&[u8], EvalFailure> {
    match value {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::Bytes(bytes, Raw::Text) => Ok(bytes),
        value => Err(wrong("string", value)),
    }
}

/// Returns an `int`.
fn int(value: &Value) -> Result<i64, EvalFailure> {
    match value {
        Value::Int(n) => Ok(*n),
        value => Err(wrong("int", value)),
    }
}

/// Returns a `bool`.
fn boolean(value: &Value) -> Result<bool, EvalFailure> {
    match value {
        Value::Bool(b) => Ok(*b),
        value => Err(wrong("bool", value)),
    }
}

/// Returns a map.
fn table(value: &Value) -> Result<&Rc<Table>, EvalFailure> {
    match value {
        Value::Map(map, _) => Ok(map),
        value => Err(wrong("map[string]interface {}", value)),
    }
}

/// Returns a slice, for a function whose error for other types is `Cannot … on type …`.
fn slice(what: &str, value: &Value) -> Result<(Rc<Items>, Elem), EvalFailure> {
    object::slice(value)
        .ok_or_else(|| EvalFailure::refused(format!("Cannot {what} on type {}", value.kind())))
}

/// Converts a value to text, as Sprig's `toString` does.
fn strval(value: &Value, engine: &mut Engine<'_>) -> Result<String, EvalFailure> {
    match value {
        Value::Bytes(bytes, _) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        value => print::text(value, engine),
    }
}

/// Converts a value to texts, as Sprig's `join` does: the items of a list that are not nil, or the value alone.
fn strings_of(value: &Value, engine: &mut Engine<'_>) -> Result<Vec<String>, EvalFailure> {
    match object::slice(value) {
        Some((items, _)) => {
            engine.items(items.len())?;
            let mut texts = Vec::with_capacity(items.len());
            for item in items.iter().filter(|item| !item.is_nil()) {
                texts.push(strval(item, engine)?);
            }
            Ok(texts)
        }
        None if value.is_nil() => Ok(Vec::new()),
        None => Ok(vec![strval(value, engine)?]),
    }
}

/// Charges for a text and returns it.
fn built(text: String, engine: &mut Engine<'_>) -> Result<Value, EvalFailure> {
    engine.text(text.len())?;
    Ok(Value::text(text))
}

/// Returns the names of all functions, sorted.
pub fn function_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = BY_NAME.keys().copied().chain(["and", "or"]).collect();
    names.sort_unstable();
    names
}
