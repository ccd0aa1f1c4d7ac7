//! Access to lists, maps and objects.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "get",
        doc: "The value at a path of keys; null if one is missing.",
        example: (
            r#"{{ get . "metadata" "labels" "app" }} {{ get .children "pod" "status" "phase" | default "none" }}"#,
            "pond none",
        ),
        min_args: 1,
        max_args: None,
        params: &[NoteType::Any, NoteType::Text],
        result: NoteType::Inside,
        run: NoteBody::Leading(get),
        ..PLAIN
    },
    BuiltInNote {
        name: "index",
        doc: "The item of a list or the value of a map, level by level; null if one is missing.",
        example: (r#"{{ index (split "a,b" ",") 0 }}"#, "a"),
        min_args: 1,
        max_args: None,
        params: &[NoteType::Any],
        result: NoteType::Inside,
        run: NoteBody::Leading(index),
        ..PLAIN
    },
    BuiltInNote {
        name: "slice",
        doc: "The part of a text or a list from one position to another, up to its end; positions in text are bytes.",
        example: (
            r#"{{ slice "kubernetes" 0 4 }} {{ slice .spec.domains 1 }}"#,
            "kube [pond.example]",
        ),
        max_args: Some(4),
        params: &[NoteType::Any, NoteType::Int],
        run: NoteBody::Eager(slice),
        ..PLAIN
    },
    BuiltInNote {
        name: "len",
        doc: "The number of items or of bytes; 0 for values of other types.",
        example: (r#"{{ len "abc" }}"#, "3"),
        params: &[NoteType::Any],
        result: NoteType::Int,
        run: NoteBody::Eager(len),
        ..PLAIN
    },
];

fn get<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let mut value = call.take(0);
    for position in 1..call.len() {
        let key = call.take(position);
        value = match key.node().as_str() {
            Some(key) => call.look(value, key)?,
            None => Value::null(),
        };
    }
    Ok(value)
}

fn index<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let mut value = call.take(0);
    for position in 1..call.len() {
        let key = call.take(position);
        value = match step(&value, key.node())? {
            IndexedElement::Nowhere => Value::null(),
            IndexedElement::Byte(byte) => i64::from(byte).into(),
            IndexedElement::Key(key) => call.look(value, key)?,
            IndexedElement::Item(at) => value.part(|node| node.as_list()?.get(at), call.budget)?,
        };
    }
    Ok(value)
}

/// The element that an index refers to.
enum IndexedElement<'k> {
    Nowhere,
    Byte(u8),
    Key(&'k str),
    Item(usize),
}

fn step<'k>(value: &Value<'_>, key: &'k Node) -> Result<IndexedElement<'k>, EvalFailure> {
    let root = matches!(value, Value::Root);
    match (value.node(), key) {
        (_, Node::Str(key)) if root => Ok(IndexedElement::Key(key)),
        (Node::Null, _) if !root => Ok(IndexedElement::Nowhere),
        (_, Node::Null) => Ok(IndexedElement::Nowhere),
        (Node::Map(_), Node::Str(key)) => Ok(IndexedElement::Key(key)),
        (Node::List(_), Node::Int(_) | Node::UInt(_)) => {
            Ok(position(key, "index")?.map_or(IndexedElement::Nowhere, IndexedElement::Item))
        }
        (Node::Str(text), Node::Int(_) | Node::UInt(_)) => {
            let byte = position(key, "index")?.and_then(|at| text.as_bytes().get(at));
            Ok(byte.map_or(IndexedElement::Nowhere, |byte| IndexedElement::Byte(*byte)))
        }
        (node, key) => {
            let (node, key) = (if root { "map" } else { node.type_name() }, key.type_name());
            let message =
                format!("`index` cannot look into a value of type {node} with one of type {key}");
            Err(EvalFailure::wrong_type(message))
        }
    }
}

/// Converts an integer to a position; `None` if no list is that long.
fn position(key: &Node, note: &str) -> Result<Option<usize>, EvalFailure> {
    match key {
        Node::Int(n) if *n < 0 => {
            let message = format!("`{note}` was given a negative index");
            Err(EvalFailure::refused(message))
        }
        Node::Int(n) => Ok(usize::try_from(*n).ok()),
        _ => Ok(None),
    }
}

/// A position past the end yields nothing (Go fails); a position inside a character is rounded down to its start.
fn slice<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = match call.node(0) {
        Node::Null => return Ok(Value::null()),
        Node::Str(_) if call.len() == 4 => {
            return Err(EvalFailure::refused(
                "`slice` takes two positions of a text, not three",
            ));
        }
        Node::Str(text) => text.len(),
        Node::List(items) => items.len(),
        _ => return Err(call.wrong(0, "text or a list")),
    };
    let mut bounds = [0, length, length];
    for at in 1..call.len() {
        bounds[at - 1] = match position(call.node(at), "slice")? {
            Some(at) => at,
            None if *call.node(at) == Node::Null => bounds[at - 1],
            None => usize::MAX,
        };
    }
    let given = &bounds[..(call.len() - 1).max(1)];
    if !given.is_sorted() {
        return Err(EvalFailure::refused(
            "`slice` was given positions that go backwards",
        ));
    }
    let [from, to, _] = bounds.map(|at| at.min(length));
    let value = call.take(0);
    Ok(match value.node() {
        Node::Str(text) => {
            let (from, to) = (text.floor_char_boundary(from), text.floor_char_boundary(to));
            call.budget.text(to - from)?;
            Node::from(&text[from..to]).into()
        }
        node => {
            let items = node
                .as_list()
                .unwrap_or_default()
                .get(from..to)
                .unwrap_or_default();
            call.budget.items(items.len())?;
            let bytes = items.iter().map(Node::heap_bytes).sum();
            call.budget.take(bytes)?;
            Node::from(items.to_vec()).into()
        }
    })
}

fn len<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = match call.node(0) {
        Node::Str(text) => text.len(),
        Node::List(items) => items.len(),
        Node::Map(map) => map.len(),
        _ => 0,
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX).into())
}
