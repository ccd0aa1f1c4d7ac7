//! Paths and URLs.

use orkestra_template::go::EvalFailure;

use super::{Function, function, string, table};
use crate::engine::Engine;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("base", 1, |_, args| {
        Ok(Value::text(base(&string(&args[0])?)))
    }),
    function("osBase", 1, |_, args| {
        Ok(Value::text(base(&string(&args[0])?)))
    }),
    function("dir", 1, |_, args| Ok(Value::text(dir(&string(&args[0])?)))),
    function("osDir", 1, |_, args| {
        Ok(Value::text(dir(&string(&args[0])?)))
    }),
    function("clean", 1, |_, args| {
        Ok(Value::text(clean(&string(&args[0])?)))
    }),
    function("osClean", 1, |_, args| {
        Ok(Value::text(clean(&string(&args[0])?)))
    }),
    function("ext", 1, |_, args| Ok(Value::text(ext(&string(&args[0])?)))),
    function("osExt", 1, |_, args| {
        Ok(Value::text(ext(&string(&args[0])?)))
    }),
    function("isAbs", 1, |_, args| {
        Ok(Value::Bool(string(&args[0])?.starts_with('/')))
    }),
    function("osIsAbs", 1, |_, args| {
        Ok(Value::Bool(string(&args[0])?.starts_with('/')))
    }),
    function("urlParse", 1, url_parse),
    function("urlJoin", 1, url_join),
];

/// Source: Go's package path, `Clean`.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".into(),
        (false, rest) => rest,
    }
}

fn base(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if path.is_empty() => ".",
        "" => "/",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}

fn dir(path: &str) -> String {
    clean(path.rfind('/').map_or("", |at| &path[..=at]))
}

fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').map_or("", |at| &name[at..])
}

/// Source: Go's net/url, `Parse`.
fn url_parse(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let text = string(&args[0])?;
    if text.chars().any(|c| c.is_ascii_control()) {
        return Err(EvalFailure::refused(
            "unable to parse url: invalid control character in URL",
        ));
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((&text, ""));
    let is_scheme = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphabetic())
            && s.chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        Some(("", _)) => {
            return Err(EvalFailure::refused(
                "unable to parse url: missing protocol scheme",
            ));
        }
        _ => (String::new(), rest),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let opaque = if !scheme.is_empty() && !rest.starts_with('/') {
        rest
    } else {
        ""
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None if opaque.is_empty() => ("", rest),
        None => ("", ""),
    };
    let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let hostname = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, _)) => inner,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let parts = [
        ("scheme", scheme.as_str()),
        ("host", host),
        ("hostname", hostname),
        ("query", query),
        ("opaque", opaque),
        ("userinfo", userinfo),
    ];
    let value = Value::object(parts.map(|(name, part)| (name, Value::text(part))));
    if let Some(map) = value.as_map() {
        for (name, part) in [("path", path), ("fragment", fragment)] {
            map.borrow_mut()
                .insert(name.into(), Value::bytes(&unescaped(part)?));
        }
    }
    Ok(value)
}

/// Resolves the `%` escapes of a text.
fn unescaped(text: &str) -> Result<Vec<u8>, EvalFailure> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let digits = rest.get(at + 1..at + 3);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(
            byte.ok_or_else(|| EvalFailure::refused("unable to parse url: invalid URL escape"))?,
        );
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Escapes a path or a fragment where necessary.
fn escaped(text: &str, allowed: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-_.~$&+,/:;=@".contains(c) || allowed.contains(c) {
            out.push(c);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Source: Go's net/url, `URL.String`.
fn url_join(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let map = table(&args[0])?.borrow();
    let part = |name: &str| match map.get(name) {
        None => Ok(String::new()),
        Some(value @ (Value::Str(_) | Value::Bytes(..))) => Ok(string(value)?.into_owned()),
        Some(value) => Err(EvalFailure::refused(format!(
            "unable to parse {name} key, must be of type string, but {} found",
            value.kind()
        ))),
    };
    let (scheme, host, path) = (part("scheme")?, part("host")?, part("path")?);
    let (query, opaque, fragment) = (part("query")?, part("opaque")?, part("fragment")?);
    let userinfo = part("userinfo")?;
    let mut out = String::new();
    if !scheme.is_empty() {
        out += &scheme;
        out.push(':');
    }
    if opaque.is_empty() {
        if !host.is_empty()
            || !userinfo.is_empty()
            || (!scheme.is_empty() && path.starts_with("//"))
        {
            out += "//";
        }
        if !userinfo.is_empty() {
            out += &userinfo;
            out.push('@');
        }
        out += &host;
        if !path.is_empty() && !path.starts_with('/') && !host.is_empty() {
            out.push('/');
        }
        out += &escaped(&path, "");
    } else {
        out += &opaque;
    }
    if !query.is_empty() {
        out.push('?');
        out += &query;
    }
    if !fragment.is_empty() {
        out.push('#');
        out += &escaped(&fragment, "!()*?");
    }
    super::built(out, engine)
}
