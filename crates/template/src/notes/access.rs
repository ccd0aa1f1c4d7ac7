//! Typed access with a fallback.

use super::number::Number;
use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "getOr",
        doc: "The first argument, or the second if the first is empty.",
        example: (r#"{{ getOr .spec.tag "latest" }}"#, "latest"),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::OneOf(&[]),
        run: NoteBody::Eager(get_or),
        ..PLAIN
    },
    BuiltInNote {
        name: "getStringOr",
        doc: "The first argument if it is a text that is not empty, else the second.",
        example: (r#"{{ getStringOr .spec.replicas "x" }}"#, "x"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any, NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(get_string_or),
        ..PLAIN
    },
    BuiltInNote {
        name: "getIntOr",
        doc: "The first argument, truncated, if it is a number, else the second.",
        example: (r#"{{ getIntOr 2.0 9 }} {{ getIntOr "3" 9 }}"#, "2 9"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any, NoteType::Int],
        result: NoteType::Int,
        run: NoteBody::Eager(get_int_or),
        ..PLAIN
    },
];

fn get_or<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let chosen = usize::from(call.node(0).is_empty_value());
    Ok(call.take(chosen))
}

fn get_string_or<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let is_text = matches!(call.node(0), Node::Str(text) if !text.is_empty());
    let chosen = call.take(usize::from(!is_text));
    Ok(match chosen.node() {
        Node::Null => Node::from("").into(),
        _ => chosen,
    })
}

fn get_int_or<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    if let Some(whole) = Number::of(call.node(0)).and_then(Number::truncated) {
        return Ok(Number::Int(whole).into_node().into());
    }
    Ok(match call.node(1) {
        Node::Null => 0.into(),
        _ => call.take(1),
    })
}
