//! Comparisons.
//!
//! Source: Go's text/template, "Functions"; integers and floats compare by value, which Go rejects.

use std::cmp::Ordering;

use super::number::Number;
use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "eq",
        doc: "True if the first argument equals any of the others.",
        example: (r#"{{ eq "b" "a" "b" }} {{ eq 1 2 }}"#, "true false"),
        min_args: 2,
        max_args: None,
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(eq),
        ..PLAIN
    },
    BuiltInNote {
        name: "ne",
        doc: "True if the two values differ.",
        example: ("{{ ne 1 2 }}", "true"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(ne),
        ..PLAIN
    },
    BuiltInNote {
        name: "lt",
        doc: "True if the first value is less than the second: numbers by value, text by bytes.",
        example: (r#"{{ lt 1 1.5 }} {{ lt "b" "a" }}"#, "true false"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(lt),
        ..PLAIN
    },
    BuiltInNote {
        name: "le",
        doc: "True if the first value is less than or equal to the second.",
        example: ("{{ le 2 2 }}", "true"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(le),
        ..PLAIN
    },
    BuiltInNote {
        name: "gt",
        doc: "True if the first value is greater than the second.",
        example: ("{{ gt 2 2 }}", "false"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(gt),
        ..PLAIN
    },
    BuiltInNote {
        name: "ge",
        doc: "True if the first value is greater than or equal to the second.",
        example: ("{{ ge 2 2 }}", "true"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(ge),
        ..PLAIN
    },
];

fn eq<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    for other in 1..call.len() {
        if equal(call, other)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn ne<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok((!equal(call, 1)?).into())
}

fn lt<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok((order(call)? == Some(Ordering::Less)).into())
}

fn le<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(order(call)?.is_some_and(Ordering::is_le).into())
}

fn gt<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok((order(call)? == Some(Ordering::Greater)).into())
}

fn ge<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(order(call)?.is_some_and(Ordering::is_ge).into())
}

/// Returns whether the first argument equals another. Null equals only null. Lists, maps and values of different types are
/// never equal.
fn equal(call: &NoteCall<'_, '_>, other: usize) -> Result<bool, EvalFailure> {
    match (call.node(0), call.node(other)) {
        (Node::Null, Node::Null) => Ok(true),
        (Node::Null, _) | (_, Node::Null) => Ok(false),
        (Node::Bool(a), Node::Bool(b)) => Ok(a == b),
        (Node::Str(a), Node::Str(b)) => Ok(a == b),
        (a, b) => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => Ok(a.order(b) == Some(Ordering::Equal)),
            _ => Err(incomparable(call, other)),
        },
    }
}

/// Returns the order of the two arguments; `None` if one is NaN. Null counts as the zero value of the other's type.
fn order(call: &NoteCall<'_, '_>) -> Result<Option<Ordering>, EvalFailure> {
    match (call.node(0), call.node(1)) {
        (Node::Null, Node::Null) => Ok(Some(Ordering::Equal)),
        (Node::Str(a), Node::Str(b)) => Ok(Some(a.cmp(b))),
        (Node::Null, Node::Str(b)) => Ok(Some("".cmp(b))),
        (Node::Str(a), Node::Null) => Ok(Some((**a).cmp(""))),
        (a, b) => {
            let zero = |node: &Node| match node {
                Node::Null => Some(Number::Int(0)),
                node => Number::of(node),
            };
            match (zero(a), zero(b)) {
                (Some(a), Some(b)) => Ok(a.order(b)),
                _ => Err(incomparable(call, 1)),
            }
        }
    }
}

fn incomparable(call: &NoteCall<'_, '_>, other: usize) -> EvalFailure {
    let (a, b) = (call.node(0).type_name(), call.node(other).type_name());
    EvalFailure::wrong_type(format!("`{}` cannot compare {a} with {b}", call.note.name))
}
