//! Values as text: Go's `%v`, `Sprint` and `Sprintf`.

use orkestra_object::value::{Key, Node};
use orkestra_template::go::{self, EvalFailure};

use crate::engine::Engine;
use crate::value::{Raw, Value};

/// Formats a value with `%v`; nil is `<nil>`.
pub(crate) fn text(value: &Value, engine: &mut Engine<'_>) -> Result<String, EvalFailure> {
    if let Value::Str(text) = value {
        engine.text(text.len())?;
        return Ok(text.to_string());
    }
    sprintf("%v", std::slice::from_ref(value), engine)
}

/// Formats arguments with a format.
pub(crate) fn sprintf(
    format: &str,
    args: &[Value],
    engine: &mut Engine<'_>,
) -> Result<String, EvalFailure> {
    let nodes = nodes(args, engine)?;
    let args: Vec<(&Node, bool)> = nodes.iter().map(|(node, int)| (node, *int)).collect();
    go::sprintf(format, &args, engine.budget_mut())
}

/// Formats the arguments as one text, with a line break if it is a line.
pub(crate) fn sprint(
    args: &[Value],
    line: bool,
    engine: &mut Engine<'_>,
) -> Result<String, EvalFailure> {
    let nodes = nodes(args, engine)?;
    let args: Vec<(&Node, bool)> = nodes.iter().map(|(node, int)| (node, *int)).collect();
    go::sprint(&args, line, engine.budget_mut())
}

/// Converts the arguments for the formatter, with a flag that is true if their integers are `int`.
fn nodes(args: &[Value], engine: &mut Engine<'_>) -> Result<Vec<(Node, bool)>, EvalFailure> {
    let mut nodes = Vec::with_capacity(args.len());
    for arg in args {
        engine.whole(arg)?;
        nodes.push((node(arg), matches!(arg, Value::Int(_))));
    }
    Ok(nodes)
}

/// Converts a value for the formatter: floats stay floats, and values that format themselves become text.
fn node(value: &Value) -> Node {
    match value {
        Value::Float(n) => Node::Float(*n),
        Value::Bytes(bytes, Raw::Slice) => {
            let numbers = bytes.iter().map(|b| Node::Int(i64::from(*b)));
            Node::from(numbers.collect::<Vec<_>>())
        }
        Value::List(items, _) => Node::from(items.iter().map(node).collect::<Vec<_>>()),
        Value::Map(map, _) => {
            let map = map.borrow();
            Node::Map(map.iter().map(|(k, v)| (Key::new(k), node(v))).collect())
        }
        Value::Object(object) => match object.text() {
            Some(text) => Node::from(text),
            None => object.data().as_ref().map_or(Node::Null, node),
        },
        value => value.to_node(),
    }
}
