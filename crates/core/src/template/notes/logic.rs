//! Conditions and fallbacks.

use super::{Call, Note, PLAIN, Run, Type, Value};
use crate::template::error::Failure;
use crate::value::Node;

pub(super) static NOTES: &[Note] = &[
    Note {
        name: "and",
        doc: "The first empty argument, or else the last; what follows is not evaluated.",
        example: (r#"{{ and "a" "" "b" }}|{{ and 1 2 }}"#, "|2"),
        min_args: 1,
        max_args: None,
        params: &[Type::Any],
        result: Type::OneOf(&[]),
        run: Run::Until { empty: true },
        ..PLAIN
    },
    Note {
        name: "or",
        doc: "The first argument that is not empty, or else the last; what follows is not evaluated.",
        example: (r#"{{ or "" 0 "b" "c" }}"#, "b"),
        min_args: 1,
        max_args: None,
        params: &[Type::Any],
        result: Type::OneOf(&[]),
        run: Run::Until { empty: false },
        ..PLAIN
    },
    Note {
        name: "not",
        doc: "Whether the argument is empty: null, false, 0, or a text, list or map without content.",
        example: (r#"{{ not "" }} {{ not 3 }}"#, "true false"),
        min_args: 1,
        max_args: Some(1),
        params: &[Type::Any],
        result: Type::Bool,
        run: Run::Eager(not),
        ..PLAIN
    },
    Note {
        name: "default",
        doc: "The last argument, or the first if the last is empty: fallback first, value last.",
        example: (
            r#"{{ "" | default "latest" }} {{ default "latest" "v2" }}"#,
            "latest v2",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[Type::Any],
        result: Type::OneOf(&[0, 1]),
        run: Run::Eager(default),
        ..PLAIN
    },
    Note {
        name: "ternary",
        doc: "The second argument if the first is true, else the third; empty values and the text \"false\" are false.",
        example: (
            r#"{{ ternary true "on" "off" }} {{ ternary "false" 1 2 }}"#,
            "on 2",
        ),
        min_args: 3,
        max_args: Some(3),
        params: &[Type::Any],
        result: Type::OneOf(&[1, 2]),
        run: Run::Eager(ternary),
        ..PLAIN
    },
];

fn not<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    Ok(call.node(0).is_empty_value().into())
}

fn default<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let chosen = usize::from(!call.node(1).is_empty_value());
    Ok(call.take(chosen))
}

fn ternary<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let condition = match call.node(0) {
        // Rendered conditions are text.
        Node::Str(text) => !text.is_empty() && text.trim() != "false",
        node => !node.is_empty_value(),
    };
    Ok(call.take(if condition { 1 } else { 2 }))
}
