//! Regular expressions in RE2's syntax, with Go's syntax for replacements.

use orkestra_template::go::EvalFailure;
use regex::{Captures, Regex};

use super::{Function, built, function, int, string};
use crate::engine::Engine;
use crate::value::Value;

/// The table. A function with `must` in its name is the same function.
macro_rules! table {
    ($($name:literal $must:literal $count:literal $run:ident,)*) => {
        pub(crate) static TABLE: &[Function] = &[
            $(function($name, $count, $run), function($must, $count, $run),)*
            function("regexQuoteMeta", 1, |engine, args| {
                let mut out = String::new();
                for c in string(&args[0])?.chars() {
                    if r"\.+*?()|[]{}^$".contains(c) {
                        out.push('\\');
                    }
                    out.push(c);
                }
                built(out, engine)
            }),
        ];
    };
}

table! {
    "regexMatch" "mustRegexMatch" 2 is_match,
    "regexFind" "mustRegexFind" 2 find,
    "regexFindAll" "mustRegexFindAll" 3 find_all,
    "regexReplaceAll" "mustRegexReplaceAll" 3 replace_all,
    "regexReplaceAllLiteral" "mustRegexReplaceAllLiteral" 3 replace_literal,
    "regexSplit" "mustRegexSplit" 3 split,
}

/// Translates an expression to this crate's syntax, which differs from Go's in few places: `\z`, `\Q…\E`, `\C` and the
/// meaning of `\d`, `\s`, `\w` and `\b`, which are ASCII-only in Go.
pub(crate) fn as_rust_regex(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('Q') => {
                    let rest = chars.as_str();
                    let (quoted, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                    out.push_str(&regex::escape(quoted));
                    chars = after.chars();
                }
                Some(escaped) => push_escape(&mut out, escaped, in_class),
                None => out.push('\\'),
            },
            '[' if in_class => {
                // In Go, a bracket in a class is a literal, except in named classes.
                let named = chars.as_str().starts_with(':');
                out.push_str(if named { "[" } else { r"\[" });
                if named {
                    for c in chars.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                in_class = true;
                out.push('[');
                let rest = chars.as_str();
                let negated = rest.starts_with('^');
                // A bracket in the first position of a class is a literal.
                let literal = rest.strip_prefix('^').unwrap_or(rest).starts_with(']');
                if negated {
                    chars.next();
                    out.push('^');
                }
                if literal {
                    chars.next();
                    out.push_str(r"\]");
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Adds an escape sequence, of which `escaped` is the character after the backslash.
fn push_escape(out: &mut String, escaped: char, in_class: bool) {
    match escaped {
        'd' => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        'w' => out.push_str(if in_class {
            "0-9A-Za-z_"
        } else {
            "[0-9A-Za-z_]"
        }),
        's' => out.push_str(if in_class {
            r"\t\n\f\r "
        } else {
            r"[\t\n\f\r ]"
        }),
        'D' if !in_class => out.push_str("[^0-9]"),
        'W' if !in_class => out.push_str("[^0-9A-Za-z_]"),
        'S' if !in_class => out.push_str(r"[^\t\n\f\r ]"),
        boundary @ ('b' | 'B') => out.push_str(&format!("(?-u:\\{boundary})")),
        other => out.extend(['\\', other]),
    }
}

/// Charges for the expression and the text, and returns them.
fn prepared<'a>(
    engine: &mut Engine<'_>,
    args: &'a [Value],
) -> Result<(std::rc::Rc<Regex>, std::borrow::Cow<'a, str>), EvalFailure> {
    let pattern = string(&args[0])?;
    let regex = engine.regex(&pattern)?;
    let text = string(&args[1])?;
    // Each byte of the text may visit as many states as the expression has.
    engine.steps((text.len() as u64).saturating_mul(1 + pattern.len() as u64 / 8))?;
    Ok((regex, text))
}

fn is_match(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (regex, text) = prepared(engine, args)?;
    Ok(Value::Bool(regex.is_match(&text)))
}

fn find(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (regex, text) = prepared(engine, args)?;
    Ok(Value::text(
        regex.find(&text).map_or("", |found| found.as_str()),
    ))
}

fn find_all(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (regex, text) = prepared(engine, args)?;
    let most = usize::try_from(int(&args[2])?).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for part in regex.find_iter(&text).take(most) {
        engine.items(1)?;
        found.push(part.as_str());
    }
    Ok(Value::texts(found))
}

fn replace_all(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let template = string(&args[2])?;
    replaced(engine, args, |found, out| expand(&template, found, out))
}

fn replace_literal(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let literal = string(&args[2])?;
    replaced(engine, args, |_, out| out.push_str(&literal))
}

fn replaced(
    engine: &mut Engine<'_>,
    args: &[Value],
    write: impl Fn(&Captures<'_>, &mut String),
) -> Result<Value, EvalFailure> {
    let (regex, text) = prepared(engine, args)?;
    let (mut out, mut from) = (String::new(), 0);
    for found in regex.captures_iter(&text) {
        let Some(whole) = found.get(0) else {
            continue;
        };
        let before = out.len();
        out.push_str(&text[from..whole.start()]);
        write(&found, &mut out);
        engine.text(out.len() - before)?;
        engine.steps(4)?;
        from = whole.end();
    }
    out.push_str(&text[from..]);
    built(out, engine)
}

/// Expands a replacement: `$1`, `${1}`, `$name`, `${name}`, `$$`. A name is as long as possible.
///
/// Source: Go's package regexp, `Expand`.
fn expand(template: &str, found: &Captures<'_>, out: &mut String) {
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        let braced = rest.strip_prefix('{');
        let (name, after) = match braced.and_then(|inner| inner.split_once('}')) {
            Some(found) => found,
            None if braced.is_some() => ("", rest),
            None => rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
        };
        if name.is_empty() || !name.chars().all(is_word) {
            out.push('$');
            continue;
        }
        rest = after;
        let group = match name.parse::<usize>() {
            Ok(number) => found.get(number),
            Err(_) => found.name(name),
        };
        out.push_str(group.map_or("", |group| group.as_str()));
    }
    out.push_str(rest);
}

/// Source: Go's package regexp, `Split`.
fn split(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (regex, text) = prepared(engine, args)?;
    let most = match int(&args[2])? {
        0 => return Ok(Value::texts([""; 0])),
        n => usize::try_from(n).unwrap_or(usize::MAX),
    };
    if !args[0].is_empty() && text.is_empty() {
        return Ok(Value::texts([""]));
    }
    let (mut parts, mut from, mut end) = (Vec::new(), 0, 0);
    for found in regex.find_iter(&text) {
        engine.items(1)?;
        if parts.len() + 1 == most {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(&text[from..end]);
        }
        from = found.end();
    }
    if end != text.len() {
        parts.push(&text[from..]);
    }
    Ok(Value::texts(parts))
}
