//! Type conversions.

use super::number::Number;
use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value, yaml};
use crate::error::EvalFailure;
use crate::print;
use orkestra_object::value::Node;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "toInt",
        doc: "The value as an integer: decimals are truncated, true is 1, text is read as a number.",
        example: (r#"{{ toInt "4.9" }}"#, "4"),
        result: NoteType::Int,
        run: NoteBody::Eager(to_int),
        ..PLAIN
    },
    BuiltInNote {
        name: "toFloat",
        doc: "The value as a number with its decimals: true is 1, text is read as a number.",
        example: (r#"{{ toFloat "0.5" }}"#, "0.5"),
        result: NoteType::Number,
        run: NoteBody::Eager(to_float),
        ..PLAIN
    },
    BuiltInNote {
        name: "toBool",
        doc: "The value as a boolean. Numbers other than 0 and the texts true, yes, on and 1 are true; 0, empty text and the texts false, no, off and 0 are false.",
        example: (r#"{{ toBool "on" }} {{ toBool 0 }}"#, "true false"),
        result: NoteType::Bool,
        run: NoteBody::Eager(to_bool),
        ..PLAIN
    },
    BuiltInNote {
        name: "toString",
        doc: "The value as text.",
        example: ("{{ toString 12 }}", "12"),
        result: NoteType::Text,
        run: NoteBody::Eager(to_string),
        ..PLAIN
    },
    BuiltInNote {
        name: "toJson",
        aliases: &["toJSON"],
        doc: "The value as compact JSON, with sorted keys.",
        example: ("{{ toJson .spec.tiers }}", r#"{"gold":5,"silver":2}"#),
        result: NoteType::Text,
        run: NoteBody::Eager(to_json),
        ..PLAIN
    },
    BuiltInNote {
        name: "toList",
        doc: "The parts of a text between commas, trimmed and without empty ones; a list is returned unchanged.",
        example: (r#"{{ toList "x, y," }}"#, "[x y]"),
        result: NoteType::List,
        run: NoteBody::Eager(to_list),
        ..PLAIN
    },
    BuiltInNote {
        name: "asString",
        doc: "The value as text; lists and maps as compact JSON.",
        example: (
            "{{ asString .spec.domains }}",
            r#"["koi.example","pond.example"]"#,
        ),
        result: NoteType::Text,
        run: NoteBody::Eager(as_string),
        ..PLAIN
    },
    BuiltInNote {
        name: "asList",
        doc: "The list, or a list parsed from a text in YAML or JSON; an empty list for other values.",
        example: (r#"{{ index (asList "[a, b]") 1 }}"#, "b"),
        result: NoteType::List,
        run: NoteBody::Eager(as_list),
        ..PLAIN
    },
    BuiltInNote {
        name: "asMap",
        doc: "The map, or a map parsed from a text in YAML or JSON; an empty map for other values.",
        example: (r#"{{ (asMap "{k: 1}").k }}"#, "1"),
        result: NoteType::Map,
        run: NoteBody::Eager(as_map),
        ..PLAIN
    },
];

fn to_int<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let number = number(call)?;
    let whole = number.truncated().map(Number::Int).ok_or_else(|| {
        EvalFailure::refused("`toInt` was given a number that is no 64-bit integer")
    })?;
    Ok(whole.into_node().into())
}

fn to_float<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let number = number(call)?;
    Ok(Node::Float(number.float()).into())
}

/// Converts the argument to a number.
fn number(call: &NoteCall<'_, '_>) -> Result<Number, EvalFailure> {
    if let Node::List(_) | Node::Map(_) = call.node(0) {
        return Err(call.wrong(0, "a number, a boolean or text"));
    }
    // The text is not quoted because it may be secret.
    let message = || format!("`{}` was given text that is not a number", call.note.name);
    Number::read(call.node(0)).ok_or_else(|| EvalFailure::refused(message()))
}

fn to_bool<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    const TRUE: [&str; 4] = ["true", "yes", "on", "1"];
    const FALSE: [&str; 5] = ["false", "no", "off", "0", ""];
    let is_among = |words: &[&str], text: &str| words.iter().any(|w| w.eq_ignore_ascii_case(text));
    let truth = match call.node(0) {
        Node::Str(text) if is_among(&TRUE, text.trim()) => true,
        Node::Str(text) if is_among(&FALSE, text.trim()) => false,
        Node::Str(_) => {
            let message = "`toBool` was given text that is neither true nor false";
            return Err(EvalFailure::refused(message));
        }
        Node::List(_) | Node::Map(_) => return Err(call.wrong(0, "a boolean, a number or text")),
        node => !node.is_empty_value(),
    };
    Ok(truth.into())
}

fn to_string<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    if let Node::Str(_) = call.node(0) {
        return Ok(call.take(0));
    }
    let value = call.take(0);
    let mut out = String::new();
    print::print(&mut out, value.node(), call.budget)?;
    Ok(Node::from(out).into())
}

fn to_json<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let value = call.take(0);
    let json = yaml::to_json(value.node(), call.budget)?;
    Ok(Node::from(json).into())
}

fn to_list<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let parts = match call.node(0) {
        Node::List(_) => return Ok(call.take(0)),
        Node::Null => "",
        Node::Str(text) => text,
        _ => return Err(call.wrong(0, "text or a list")),
    };
    let (count, length) = (parts.matches(',').count() + 1, parts.len());
    call.budget.items(count)?;
    call.budget.take(length)?;
    let parts = call.text(0).split(',').map(str::trim);
    let items: Vec<Node> = parts
        .filter(|part| !part.is_empty())
        .map(Node::from)
        .collect();
    Ok(Node::from(items).into())
}

fn as_string<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    match call.node(0) {
        Node::List(_) | Node::Map(_) => to_json(call),
        _ => to_string(call),
    }
}

/// Parses the text as YAML or JSON; `None` if it is neither.
fn read(call: &mut NoteCall<'_, '_>) -> Result<Option<Node>, EvalFailure> {
    let text = call.take(0);
    yaml::read(text.node().as_str().unwrap_or_default(), call.budget)
}

fn as_list<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let parsed = match call.node(0) {
        Node::List(_) => return Ok(call.take(0)),
        Node::Str(_) => read(call)?,
        _ => None,
    };
    let list = parsed.filter(|node| matches!(node, Node::List(_)));
    Ok(list.unwrap_or_else(|| Node::from(Vec::new())).into())
}

fn as_map<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let parsed = match call.node(0) {
        Node::Map(_) => return Ok(call.take(0)),
        Node::Str(_) => read(call)?,
        _ => None,
    };
    let map = parsed.filter(|node| matches!(node, Node::Map(_)));
    Ok(map.unwrap_or_else(|| Node::object([])).into())
}
