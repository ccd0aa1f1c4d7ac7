//! Texts: substrings, padding, comparison and joining.

use orkestra_template::go::EvalFailure;

use super::helm::to_string;
use super::{
    Function, arg, built, function, int, string, string_bytes, strings_of, strval, variadic,
};
use crate::engine::Engine;
use crate::engine::print;
use crate::value::{Elem, Entries, Table, Value};

pub(crate) static TABLE: &[Function] = &[
    function("trim", 1, |_, args| {
        Ok(Value::text(string(&args[0])?.trim_matches(is_space)))
    }),
    function("upper", 1, |engine, args| {
        built(string(&args[0])?.to_uppercase(), engine)
    }),
    function("lower", 1, |engine, args| {
        built(string(&args[0])?.to_lowercase(), engine)
    }),
    function("trimall", 2, trim_all),
    function("trimAll", 2, trim_all),
    function("trimSuffix", 2, |_, args| {
        let (suffix, text) = (string(&args[0])?, string(&args[1])?);
        Ok(Value::text(text.strip_suffix(&*suffix).unwrap_or(&text)))
    }),
    function("trimPrefix", 2, |_, args| {
        let (prefix, text) = (string(&args[0])?, string(&args[1])?);
        Ok(Value::text(text.strip_prefix(&*prefix).unwrap_or(&text)))
    }),
    function("contains", 2, |_, args| {
        let (part, text) = (string(&args[0])?, string(&args[1])?);
        Ok(Value::Bool(text.contains(&*part)))
    }),
    function("hasPrefix", 2, |_, args| {
        let (part, text) = (string(&args[0])?, string(&args[1])?);
        Ok(Value::Bool(text.starts_with(&*part)))
    }),
    function("hasSuffix", 2, |_, args| {
        let (part, text) = (string(&args[0])?, string(&args[1])?);
        Ok(Value::Bool(text.ends_with(&*part)))
    }),
    function("repeat", 2, repeat),
    function("substr", 3, |_, args| {
        let (start, end, text) = (int(&args[0])?, int(&args[1])?, string_bytes(&args[2])?);
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        let (start, end) = match (start, end) {
            (start, end) if start < 0 => (0, end),
            (start, end) if end < 0 || end > length => (start, length),
            range => range,
        };
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let part = range.and_then(|(start, end)| text.get(start..end));
        part.map(Value::bytes)
            .ok_or_else(|| EvalFailure::refused("slice bounds out of range"))
    }),
    function("trunc", 2, |_, args| {
        let (count, text) = (int(&args[0])?, string_bytes(&args[1])?);
        let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        Ok(Value::bytes(match text.len() {
            all if length >= all => text,
            all if count < 0 => &text[all - length..],
            _ => &text[..length],
        }))
    }),
    function("replace", 3, |engine, args| {
        let (old, new, text) = (string(&args[0])?, string(&args[1])?, string(&args[2])?);
        let places = text.matches(&*old).count();
        engine.text(text.len().saturating_add(places.saturating_mul(new.len())))?;
        Ok(Value::text(text.replace(&*old, &new)))
    }),
    function("indent", 2, |engine, args| indent(engine, args, "")),
    function("nindent", 2, |engine, args| indent(engine, args, "\n")),
    variadic("quote", 0, |engine, args| {
        let mut texts = Vec::with_capacity(args.len());
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            let text = Value::text(strval(arg, engine)?);
            texts.push(print::sprintf("%q", &[text], engine)?);
        }
        built(texts.join(" "), engine)
    }),
    variadic("squote", 0, |engine, args| {
        let mut texts = Vec::with_capacity(args.len());
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            texts.push(format!("'{}'", print::text(arg, engine)?));
        }
        built(texts.join(" "), engine)
    }),
    variadic("cat", 0, |engine, args| {
        let mut texts = Vec::with_capacity(args.len());
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            texts.push(print::text(arg, engine)?);
        }
        built(texts.join(" "), engine)
    }),
    function("toString", 1, to_string),
    function("toStrings", 1, |engine, args| {
        strings_of(&args[0], engine).map(Value::texts)
    }),
    function("join", 2, |engine, args| {
        let separator = string(&args[0])?;
        let texts = strings_of(&args[1], engine)?;
        engine.text(texts.len().saturating_mul(separator.len()))?;
        built(texts.join(&separator), engine)
    }),
    function("splitList", 2, |engine, args| {
        let parts = split(engine, &string(&args[1])?, &string(&args[0])?, None)?;
        Ok(Value::texts(parts))
    }),
    function("split", 2, |engine, args| {
        let parts = split(engine, &string(&args[1])?, &string(&args[0])?, None)?;
        Ok(numbered(parts))
    }),
    function("splitn", 3, |engine, args| {
        let count = usize::try_from(int(&args[1])?).ok();
        let parts = split(engine, &string(&args[2])?, &string(&args[0])?, count)?;
        Ok(numbered(parts))
    }),
    function("sortAlpha", 1, |engine, args| {
        let mut texts = strings_of(&args[0], engine)?;
        engine.steps(texts.len() as u64 * 16)?;
        texts.sort_unstable();
        Ok(Value::texts(texts))
    }),
    function("plural", 3, |_, args| {
        let (one, many) = (string(&args[0])?, string(&args[1])?);
        Ok(Value::text(if int(&args[2])? == 1 { one } else { many }))
    }),
    function("hello", 0, |_, _| Ok(Value::text("Hello!"))),
];

/// White space as defined by Go's `unicode.IsSpace`.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn trim_all(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (cut, text) = (string(&args[0])?, string(&args[1])?);
    Ok(Value::text(text.trim_matches(|c| cut.contains(c))))
}

fn repeat(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (count, text) = (int(arg(args, 0))?, string(arg(args, 1))?);
    let count =
        usize::try_from(count).map_err(|_| EvalFailure::refused("negative Repeat count"))?;
    engine.text(text.len().saturating_mul(count))?;
    Ok(Value::text(text.repeat(count)))
}

fn indent(engine: &mut Engine<'_>, args: &[Value], before: &str) -> Result<Value, EvalFailure> {
    let (spaces, text) = (int(&args[0])?, string(&args[1])?);
    let spaces =
        usize::try_from(spaces).map_err(|_| EvalFailure::refused("negative Repeat count"))?;
    let lines = text.matches('\n').count() + 1;
    engine.text(text.len().saturating_add(lines.saturating_mul(spaces)))?;
    let pad = " ".repeat(spaces);
    let indented = text.replace('\n', &format!("\n{pad}"));
    Ok(Value::text(format!("{before}{pad}{indented}")))
}

/// Splits a text into at most `count` parts.
fn split(
    engine: &mut Engine<'_>,
    text: &str,
    separator: &str,
    count: Option<usize>,
) -> Result<Vec<String>, EvalFailure> {
    engine.items(match separator {
        "" => text.len(),
        separator => text.matches(separator).count() + 1,
    })?;
    engine.text(text.len())?;
    // Without a separator, Go splits by characters.
    let all = || match separator {
        "" => text.chars().map(String::from).collect::<Vec<_>>(),
        separator => text.split(separator).map(str::to_owned).collect(),
    };
    Ok(match count {
        Some(0) => Vec::new(),
        Some(count) if separator.is_empty() => {
            let mut parts = all();
            let rest: String = parts.iter().skip(count - 1).map(String::as_str).collect();
            if parts.len() > count {
                parts.truncate(count - 1);
                parts.push(rest);
            }
            parts
        }
        Some(count) => text.splitn(count, separator).map(str::to_owned).collect(),
        None => all(),
    })
}

/// Returns the parts under `_0`, `_1` and so on.
fn numbered(parts: Vec<String>) -> Value {
    let parts = parts.into_iter().enumerate();
    let entries = parts.map(|(at, part)| (format!("_{at}").into(), Value::text(part)));
    Value::Map(Table::new(entries.collect::<Entries>()), Elem::Text)
}
