//! From one type to another.

use super::{Call, Note, PLAIN, Run, Type, Value};
use crate::template::error::Failure;
use crate::template::print;
use crate::value::Node;

pub(super) static NOTES: &[Note] = &[
    Note {
        name: "toInt",
        doc: "The value as an integer: decimals are cut off, true is 1, text is read as a number.",
        example: (r#"{{ toInt "4.9" }}"#, "4"),
        min_args: 1,
        max_args: Some(1),
        params: &[Type::Any],
        result: Type::Int,
        run: Run::Eager(to_int),
        ..PLAIN
    },
    Note {
        name: "toString",
        doc: "The value as text.",
        example: ("{{ toString 12 }}", "12"),
        min_args: 1,
        max_args: Some(1),
        params: &[Type::Any],
        result: Type::Text,
        run: Run::Eager(to_string),
        ..PLAIN
    },
];

fn to_int<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let node = match call.node(0) {
        Node::Null => Node::Int(0),
        Node::Bool(b) => Node::Int(i64::from(*b)),
        Node::Int(n) => Node::Int(*n),
        Node::UInt(n) => Node::UInt(*n),
        Node::Float(n) => truncated(*n)?,
        Node::Str(text) => read_int(text.trim())?,
        Node::List(_) | Node::Map(_) => return Err(call.wrong(0, "a number, a boolean or text")),
    };
    Ok(node.into())
}

/// The integer that a text starts from: exact if it is one, else a decimal number cut off.
fn read_int(text: &str) -> Result<Node, Failure> {
    if let Ok(n) = text.parse::<i64>() {
        return Ok(Node::Int(n));
    }
    if let Ok(n) = text.parse::<u64>() {
        return Ok(Node::UInt(n));
    }
    match text.parse::<f64>() {
        Ok(n) => truncated(n),
        // The text is not quoted: it may be secret.
        Err(_) => Err(Failure::refused("`toInt` was given text that is no number")),
    }
}

fn truncated(n: f64) -> Result<Node, Failure> {
    const LOWEST: f64 = -9_223_372_036_854_775_808.0; // -2^63
    const BEYOND: f64 = 9_223_372_036_854_775_808.0; // 2^63
    let whole = n.trunc();
    if !(LOWEST..BEYOND).contains(&whole) {
        return Err(Failure::refused(
            "`toInt` was given a number that is no 64-bit integer",
        ));
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
    Ok(Node::Int(whole as i64))
}

fn to_string<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    if let Node::Str(_) = call.node(0) {
        return Ok(call.take(0));
    }
    let value = call.take(0);
    let mut out = String::new();
    print::print(&mut out, value.node(), call.budget)?;
    Ok(Node::from(out).into())
}
