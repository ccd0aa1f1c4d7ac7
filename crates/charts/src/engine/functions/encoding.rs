//! Base 64, base 32, JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orkestra_object::value::Node;
use orkestra_template::go::EvalFailure;

use super::{Function, built, function, string, string_bytes};
use crate::engine::Engine;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("b64enc", 1, |engine, args| {
        let bytes = string_bytes(&args[0])?;
        engine.text(bytes.len().saturating_mul(2))?;
        Ok(Value::text(STANDARD.encode(bytes)))
    }),
    function("b64dec", 1, |_, args| {
        let text = string(&args[0])?.replace(['\r', '\n'], "");
        Ok(if let Ok(bytes) = STANDARD.decode(&text) {
            Value::bytes(&bytes)
        } else {
            let at = text
                .bytes()
                .position(|b| !(b.is_ascii_alphanumeric() || b"+/=".contains(&b)));
            let at = at.unwrap_or(text.len() / 4 * 4);
            Value::text(format!("illegal base64 data at input byte {at}"))
        })
    }),
    function("b32enc", 1, |engine, args| {
        let bytes = string_bytes(&args[0])?;
        engine.text(bytes.len().saturating_mul(2))?;
        Ok(Value::text(base32(bytes)))
    }),
    function("b32dec", 1, |_, args| {
        let text = string(&args[0])?;
        Ok(match from_base32(&text) {
            Some(bytes) => Value::bytes(&bytes),
            None => Value::text("illegal base32 data at input byte 0"),
        })
    }),
    function("toJson", 1, |engine, args| {
        json(engine, &args[0], Form::Escaped)
    }),
    function("mustToJson", 1, |engine, args| {
        json(engine, &args[0], Form::Escaped)
    }),
    function("toPrettyJson", 1, |engine, args| {
        json(engine, &args[0], Form::Pretty)
    }),
    function("mustToPrettyJson", 1, |engine, args| {
        json(engine, &args[0], Form::Pretty)
    }),
    function("toRawJson", 1, |engine, args| {
        json(engine, &args[0], Form::Raw)
    }),
    function("mustToRawJson", 1, |engine, args| {
        json(engine, &args[0], Form::Raw)
    }),
    function("mustFromJson", 1, |engine, args| {
        let text = string(&args[0])?;
        engine.steps(text.len() as u64)?;
        engine.text(text.len().saturating_mul(4))?;
        let node: Node =
            serde_json::from_str(&text).map_err(|e| EvalFailure::refused(e.to_string()))?;
        Ok(Value::from_node(&node))
    }),
];

const BASE_32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let bits = chunk
            .iter()
            .fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        let bits = bits << (8 * (5 - chunk.len()));
        let used = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let index = usize::try_from(bits >> (35 - 5 * at) & 31).unwrap_or(0);
            out.push(if at < used {
                char::from(BASE_32[index])
            } else {
                '='
            });
        }
    }
    out
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let text = text.replace(['\r', '\n'], "");
    if !text.len().is_multiple_of(8) {
        return None;
    }
    let (mut out, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = BASE_32.iter().position(|known| *known == byte)?;
        bits = bits << 5 | u32::try_from(value).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(out)
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Escaped,
    Pretty,
    Raw,
}

/// Writes JSON as Go's encoding/json does: keys sorted, and `<`, `>` and `&` escaped except in the raw form.
fn json(engine: &mut Engine<'_>, value: &Value, form: Form) -> Result<Value, EvalFailure> {
    engine.whole(value)?;
    let mut out = String::new();
    let indent = (form == Form::Pretty).then_some(0);
    write_json(
        &mut out,
        &value.to_node(),
        indent,
        form != Form::Raw,
        engine,
    )?;
    built(out, engine)
}

fn write_json(
    out: &mut String,
    node: &Node,
    indent: Option<usize>,
    escape: bool,
    engine: &mut Engine<'_>,
) -> Result<(), EvalFailure> {
    engine.steps(1)?;
    let deeper = indent.map(|level| level + 1);
    let line = |out: &mut String, level: Option<usize>| {
        if let Some(level) = level {
            out.push('\n');
            out.push_str(&"  ".repeat(level));
        }
    };
    match node {
        Node::Str(text) => write_text(out, text, escape),
        Node::Float(n) => {
            let text = format!("{n:e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            match exponent.parse::<i32>() {
                Ok(exponent) if !(-6..21).contains(&exponent) => {
                    let sign = if exponent < 0 { '-' } else { '+' };
                    // One digit of the exponent where that is enough: e-7 and e+21.
                    out.push_str(&format!("{mantissa}e{sign}{}", exponent.abs()));
                }
                _ => out.push_str(&format!("{n}")),
            }
        }
        Node::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(out, deeper);
                write_json(out, item, deeper, escape, engine)?;
            }
            line(out, indent.filter(|_| !items.is_empty()));
            out.push(']');
        }
        Node::Map(map) => {
            out.push('{');
            for (at, (key, item)) in map.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(out, deeper);
                write_text(out, key, escape);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write_json(out, item, deeper, escape, engine)?;
            }
            line(out, indent.filter(|_| !map.is_empty()));
            out.push('}');
        }
        Node::Null => out.push_str("null"),
        node => out.push_str(&node.to_text()),
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str, escape: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '<' | '>' | '&' if escape => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
