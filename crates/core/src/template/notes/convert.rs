//! Type conversions.

use super::number::Number;
use super::{Call, Note, PLAIN, Run, Type, Value, yaml};
use crate::template::error::Failure;
use crate::template::print;
use crate::value::Node;

pub(super) static NOTES: &[Note] = &[
    Note {
        name: "toInt",
        doc: "The value as an integer: decimals are truncated, true is 1, text is read as a number.",
        example: (r#"{{ toInt "4.9" }}"#, "4"),
        result: Type::Int,
        run: Run::Eager(to_int),
        ..PLAIN
    },
    Note {
        name: "toFloat",
        doc: "The value as a number with its decimals: true is 1, text is read as a number.",
        example: (r#"{{ toFloat "0.5" }}"#, "0.5"),
        result: Type::Number,
        run: Run::Eager(to_float),
        ..PLAIN
    },
    Note {
        name: "toBool",
        doc: "The value as a boolean. Numbers other than 0 and the texts true, yes, on and 1 are true; 0, empty text and the texts false, no, off and 0 are false.",
        example: (r#"{{ toBool "on" }} {{ toBool 0 }}"#, "true false"),
        result: Type::Bool,
        run: Run::Eager(to_bool),
        ..PLAIN
    },
    Note {
        name: "toString",
        doc: "The value as text.",
        example: ("{{ toString 12 }}", "12"),
        result: Type::Text,
        run: Run::Eager(to_string),
        ..PLAIN
    },
    Note {
        name: "toJson",
        aliases: &["toJSON"],
        doc: "The value as compact JSON, with sorted keys.",
        example: ("{{ toJson .spec.tiers }}", r#"{"gold":5,"silver":2}"#),
        result: Type::Text,
        run: Run::Eager(to_json),
        ..PLAIN
    },
    Note {
        name: "toList",
        doc: "The parts of a text between commas, trimmed and without empty ones; a list is returned unchanged.",
        example: (r#"{{ toList "x, y," }}"#, "[x y]"),
        result: Type::List,
        run: Run::Eager(to_list),
        ..PLAIN
    },
    Note {
        name: "asString",
        doc: "The value as text; lists and maps as compact JSON.",
        example: (
            "{{ asString .spec.domains }}",
            r#"["koi.example","pond.example"]"#,
        ),
        result: Type::Text,
        run: Run::Eager(as_string),
        ..PLAIN
    },
    Note {
        name: "asList",
        doc: "The list, or a list parsed from a text in YAML or JSON; an empty list for other values.",
        example: (r#"{{ index (asList "[a, b]") 1 }}"#, "b"),
        result: Type::List,
        run: Run::Eager(as_list),
        ..PLAIN
    },
    Note {
        name: "asMap",
        doc: "The map, or a map parsed from a text in YAML or JSON; an empty map for other values.",
        example: (r#"{{ (asMap "{k: 1}").k }}"#, "1"),
        result: Type::Map,
        run: Run::Eager(as_map),
        ..PLAIN
    },
];

fn to_int<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let number = number(call)?;
    let whole = number
        .truncated()
        .map(Number::Int)
        .ok_or_else(|| Failure::refused("`toInt` was given a number that is no 64-bit integer"))?;
    Ok(whole.into_node().into())
}

fn to_float<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let number = number(call)?;
    Ok(Node::Float(number.float()).into())
}

/// Converts the argument to a number.
fn number(call: &Call<'_, '_>) -> Result<Number, Failure> {
    if let Node::List(_) | Node::Map(_) = call.node(0) {
        return Err(call.wrong(0, "a number, a boolean or text"));
    }
    // The text is not quoted because it may be secret.
    let message = || format!("`{}` was given text that is no number", call.note.name);
    Number::read(call.node(0)).ok_or_else(|| Failure::refused(message()))
}

fn to_bool<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    const TRUE: [&str; 4] = ["true", "yes", "on", "1"];
    const FALSE: [&str; 5] = ["false", "no", "off", "0", ""];
    let is_among = |words: &[&str], text: &str| words.iter().any(|w| w.eq_ignore_ascii_case(text));
    let truth = match call.node(0) {
        Node::Str(text) if is_among(&TRUE, text.trim()) => true,
        Node::Str(text) if is_among(&FALSE, text.trim()) => false,
        Node::Str(_) => {
            let message = "`toBool` was given text that is neither true nor false";
            return Err(Failure::refused(message));
        }
        Node::List(_) | Node::Map(_) => return Err(call.wrong(0, "a boolean, a number or text")),
        node => !node.is_empty_value(),
    };
    Ok(truth.into())
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

fn to_json<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let value = call.take(0);
    let json = yaml::to_json(value.node(), call.budget)?;
    Ok(Node::from(json).into())
}

fn to_list<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
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

fn as_string<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    match call.node(0) {
        Node::List(_) | Node::Map(_) => to_json(call),
        _ => to_string(call),
    }
}

/// Parses the text as YAML or JSON; `None` if it is neither.
fn read(call: &mut Call<'_, '_>) -> Result<Option<Node>, Failure> {
    let text = call.take(0);
    yaml::read(text.node().as_str().unwrap_or_default(), call.budget)
}

fn as_list<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let parsed = match call.node(0) {
        Node::List(_) => return Ok(call.take(0)),
        Node::Str(_) => read(call)?,
        _ => None,
    };
    let list = parsed.filter(|node| matches!(node, Node::List(_)));
    Ok(list.unwrap_or_else(|| Node::from(Vec::new())).into())
}

fn as_map<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let parsed = match call.node(0) {
        Node::Map(_) => return Ok(call.take(0)),
        Node::Str(_) => read(call)?,
        _ => None,
    };
    let map = parsed.filter(|node| matches!(node, Node::Map(_)));
    Ok(map.unwrap_or_else(|| Node::object([])).into())
}
