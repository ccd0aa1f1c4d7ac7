//! Helm's own functions.

use orkestra_object::value::Node;
use orkestra_template::go::EvalFailure;

use super::{Function, arg, function, string, strval};
use crate::engine::Engine;
use crate::engine::write;
use crate::value::{Entries, Value};
use crate::yaml;

pub(crate) static TABLE: &[Function] = &[
    function("include", 2, |engine, args| {
        let name = string(&args[0])?;
        engine.render_raw(&name, args[1].clone()).map(Value::text)
    }),
    function("tpl", 2, |engine, args| {
        let source = string(&args[0])?;
        engine
            .render_source(&source, args[1].clone())
            .map(Value::text)
    }),
    function("required", 2, required),
    function("fail", 1, |_, args| {
        Err(EvalFailure::refused(string(&args[0])?))
    }),
    function("lookup", 4, |_, args| {
        for arg in args {
            string(arg)?;
        }
        Ok(Value::map(Entries::new()))
    }),
    function("getHostByName", 1, |_, args| {
        string(&args[0])?;
        Ok(Value::text(""))
    }),
    function("toYaml", 1, |engine, args| {
        write::write(&args[0], engine).map(Value::text)
    }),
    function("mustToYaml", 1, |engine, args| {
        write::write(&args[0], engine).map(Value::text)
    }),
    function("toYamlPretty", 1, |engine, args| {
        write::write_pretty(&args[0], engine).map(Value::text)
    }),
    function("fromYaml", 1, |engine, args| {
        from_yaml(engine, arg(args, 0), false)
    }),
    function("fromYamlArray", 1, |engine, args| {
        from_yaml(engine, arg(args, 0), true)
    }),
    function("fromJson", 1, |engine, args| {
        from_json(engine, arg(args, 0), false)
    }),
    function("fromJsonArray", 1, |engine, args| {
        from_json(engine, arg(args, 0), true)
    }),
];

fn required(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let message = string(&args[0])?;
    let value = &args[1];
    let missing = value.is_nil() || value.as_str().is_some_and(str::is_empty);
    engine.steps(1)?;
    if missing {
        return Err(EvalFailure::refused(message));
    }
    Ok(value.clone())
}

fn from_yaml(engine: &mut Engine<'_>, text: &Value, list: bool) -> Result<Value, EvalFailure> {
    let text = string(text)?;
    engine.steps(text.len() as u64)?;
    engine.text(text.len().saturating_mul(4))?;
    parsed(yaml::read(&text), list, engine)
}

fn from_json(engine: &mut Engine<'_>, text: &Value, list: bool) -> Result<Value, EvalFailure> {
    let text = string(text)?;
    engine.steps(text.len() as u64)?;
    engine.text(text.len().saturating_mul(4))?;
    let read = serde_json::from_str::<Node>(&text).map_err(|error| error.to_string());
    parsed(read, list, engine)
}

/// Returns the parsed value, or the error in the form that Helm's charts expect.
fn parsed(
    read: Result<Node, String>,
    list: bool,
    engine: &mut Engine<'_>,
) -> Result<Value, EvalFailure> {
    let error = match (read, list) {
        (Ok(node @ Node::List(_)), true) | (Ok(node @ Node::Map(_)), false) => {
            let value = Value::from_node(&node);
            engine.whole(&value)?;
            return Ok(value);
        }
        (Ok(Node::Null), true) => return Ok(Value::list(Vec::new())),
        (Ok(Node::Null), false) => return Ok(Value::map(Entries::new())),
        (Ok(node), list) => format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type {}",
            match node {
                Node::List(_) => "array",
                Node::Map(_) => "object",
                Node::Bool(_) => "bool",
                Node::Str(_) => "string",
                _ => "number",
            },
            if list {
                "[]interface {}"
            } else {
                "map[string]interface {}"
            }
        ),
        (Err(error), _) => error,
    };
    let error = Value::text(error);
    Ok(if list {
        Value::list(vec![error])
    } else {
        Value::object([("Error", error)])
    })
}

/// Converts a value to text, as `toString` does.
pub(crate) fn to_string(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    match arg(args, 0) {
        Value::Str(text) => Ok(Value::Str(text.clone())),
        value => strval(value, engine).map(Value::text),
    }
}
