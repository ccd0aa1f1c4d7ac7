//! Typed access with a fallback.

use super::number::Number;
use super::{Call, Note, PLAIN, Run, Type, Value};
use crate::template::error::Failure;
use crate::value::Node;

pub(super) static NOTES: &[Note] = &[
    Note {
        name: "getOr",
        doc: "The first argument, or the second if the first is empty.",
        example: (r#"{{ getOr .spec.tag "latest" }}"#, "latest"),
        min_args: 2,
        max_args: Some(2),
        result: Type::OneOf(&[]),
        run: Run::Eager(get_or),
        ..PLAIN
    },
    Note {
        name: "getStringOr",
        doc: "The first argument if it is a text that is not empty, else the second.",
        example: (r#"{{ getStringOr .spec.replicas "x" }}"#, "x"),
        min_args: 2,
        max_args: Some(2),
        params: &[Type::Any, Type::Text],
        result: Type::Text,
        run: Run::Eager(get_string_or),
        ..PLAIN
    },
    Note {
        name: "getIntOr",
        doc: "The first argument, truncated, if it is a number, else the second.",
        example: (r#"{{ getIntOr 2.0 9 }} {{ getIntOr "3" 9 }}"#, "2 9"),
        min_args: 2,
        max_args: Some(2),
        params: &[Type::Any, Type::Int],
        result: Type::Int,
        run: Run::Eager(get_int_or),
        ..PLAIN
    },
];

fn get_or<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let chosen = usize::from(call.node(0).is_empty_value());
    Ok(call.take(chosen))
}

fn get_string_or<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let is_text = matches!(call.node(0), Node::Str(text) if !text.is_empty());
    let chosen = call.take(usize::from(!is_text));
    Ok(match chosen.node() {
        Node::Null => Node::from("").into(),
        _ => chosen,
    })
}

fn get_int_or<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    if let Some(whole) = Number::of(call.node(0)).and_then(Number::truncated) {
        return Ok(Number::Int(whole).into_node().into());
    }
    Ok(match call.node(1) {
        Node::Null => 0.into(),
        _ => call.take(1),
    })
}
