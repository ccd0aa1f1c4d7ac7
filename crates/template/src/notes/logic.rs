//! Conditions and fallbacks.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use crate::print;
use orkestra_object::value::Node;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "and",
        doc: "The first empty argument, or else the last; the arguments after it are not evaluated.",
        example: (r#"{{ and "a" "" "b" }}|{{ and 1 2 }}"#, "|2"),
        min_args: 1,
        max_args: None,
        params: &[NoteType::Any],
        result: NoteType::OneOf(&[]),
        run: NoteBody::Until { empty: true },
        ..PLAIN
    },
    BuiltInNote {
        name: "or",
        doc: "The first argument that is not empty, or else the last; the arguments after it are not evaluated.",
        example: (r#"{{ or "" 0 "b" "c" }}"#, "b"),
        min_args: 1,
        max_args: None,
        params: &[NoteType::Any],
        result: NoteType::OneOf(&[]),
        run: NoteBody::Until { empty: false },
        ..PLAIN
    },
    BuiltInNote {
        name: "not",
        doc: "True if the argument is empty: null, false, 0, or an empty text, list or map.",
        example: (r#"{{ not "" }} {{ not 3 }}"#, "true false"),
        params: &[NoteType::Any],
        result: NoteType::Bool,
        run: NoteBody::Eager(not),
        ..PLAIN
    },
    BuiltInNote {
        name: "default",
        doc: "The last argument, or the first if the last is empty: fallback first, value last.",
        example: (
            r#"{{ "" | default "latest" }} {{ default "latest" "v2" }}"#,
            "latest v2",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any],
        result: NoteType::OneOf(&[0, 1]),
        run: NoteBody::Eager(default),
        ..PLAIN
    },
    BuiltInNote {
        name: "ternary",
        doc: "The second argument if the first is true, else the third; empty values and the text \"false\" are false.",
        example: (
            r#"{{ ternary true "on" "off" }} {{ ternary "false" 1 2 }}"#,
            "on 2",
        ),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Any],
        result: NoteType::OneOf(&[1, 2]),
        run: NoteBody::Eager(ternary),
        ..PLAIN
    },
    BuiltInNote {
        name: "boolTernary",
        doc: "The second argument if the first, a boolean, is true, else the third.",
        example: (r#"{{ boolTernary true "on" "off" }}"#, "on"),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Bool, NoteType::Any],
        result: NoteType::OneOf(&[1, 2]),
        run: NoteBody::Eager(ternary),
        ..PLAIN
    },
    BuiltInNote {
        name: "eqTernary",
        doc: "The third argument if the first two are equal as text, else the fourth; null equals nothing.",
        example: (
            r#"{{ eqTernary .status.phase "Filled" 1 2 }} {{ eqTernary 3 "3" 1 2 }}"#,
            "1 1",
        ),
        min_args: 4,
        max_args: Some(4),
        result: NoteType::OneOf(&[2, 3]),
        run: NoteBody::Eager(eq_ternary),
        ..PLAIN
    },
    BuiltInNote {
        name: "boolDefault",
        aliases: &["getBoolOr"],
        doc: "The first argument if it is a boolean, else the second.",
        example: (r#"{{ boolDefault "true" false }}"#, "false"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any, NoteType::Bool],
        result: NoteType::Bool,
        run: NoteBody::Eager(bool_default),
        ..PLAIN
    },
    BuiltInNote {
        name: "coalesce",
        doc: "The first argument that is not empty; null if all are.",
        example: (r#"{{ coalesce "" 0 "x" }}"#, "x"),
        max_args: None,
        result: NoteType::OneOf(&[]),
        run: NoteBody::Eager(coalesce),
        ..PLAIN
    },
    BuiltInNote {
        name: "empty",
        doc: "True if the argument is null, false, 0, or an empty text, list or map.",
        example: ("{{ empty 0 }}", "true"),
        result: NoteType::Bool,
        run: NoteBody::Eager(not),
        ..PLAIN
    },
    BuiltInNote {
        name: "notEmpty",
        doc: "True unless the argument is null, false, 0, or an empty text, list or map.",
        example: ("{{ notEmpty .spec.domains }}", "true"),
        result: NoteType::Bool,
        run: NoteBody::Eager(not_empty),
        ..PLAIN
    },
];

fn not<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(call.node(0).is_empty_value().into())
}

fn not_empty<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok((!call.node(0).is_empty_value()).into())
}

fn default<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let chosen = usize::from(!call.node(1).is_empty_value());
    Ok(call.take(chosen))
}

fn ternary<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let condition = match call.node(0) {
        // Rendered conditions are text.
        Node::Str(text) => !text.is_empty() && text.trim() != "false",
        node => !node.is_empty_value(),
    };
    Ok(call.take(if condition { 1 } else { 2 }))
}

fn eq_ternary<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (a, b) = (call.take(0), call.take(1));
    let mut text = |node: &Node| -> Result<Option<String>, EvalFailure> {
        let mut out = String::new();
        print::print(&mut out, node, call.budget)?;
        Ok((*node != Node::Null).then_some(out))
    };
    let (a, b) = (text(a.node())?, text(b.node())?);
    let equal = a.is_some() && a == b;
    Ok(call.take(if equal { 2 } else { 3 }))
}

fn bool_default<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let truth = call.node(0).as_bool().or(call.node(1).as_bool());
    Ok(truth.unwrap_or_default().into())
}

fn coalesce<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let full = (0..call.len()).find(|at| !call.node(*at).is_empty_value());
    Ok(full.map_or(Value::null(), |at| call.take(at)))
}
