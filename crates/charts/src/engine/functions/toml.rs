//! TOML output.

use orkestra_object::value::{Map, Node};
use orkestra_template::go::EvalFailure;

use super::{Function, built, function, wrong};
use crate::engine::Engine;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("toToml", 1, to_toml),
    function("mustToToml", 1, to_toml),
];

/// Source: github.com/BurntSushi/toml: plain keys before tables, both in order, tables indented by level.
fn to_toml(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    engine.whole(&args[0])?;
    let Value::Map(map, _) = &args[0] else {
        return Err(wrong("map[string]interface {}", &args[0]));
    };
    drop(map.borrow());
    let mut out = String::new();
    if let Node::Map(map) = exact(&args[0]) {
        table(&mut out, &map, &mut Vec::new())?;
    }
    built(out, engine)
}

/// Returns the value with its floats as floats.
fn exact(value: &Value) -> Node {
    match value {
        Value::Float(n) => Node::Float(*n),
        Value::List(items, _) => Node::from(items.iter().map(exact).collect::<Vec<_>>()),
        Value::Map(map, _) => {
            let map = map.borrow();
            let entries = map
                .iter()
                .map(|(k, v)| (orkestra_object::value::Key::new(k), exact(v)));
            Node::Map(entries.collect())
        }
        value => value.to_node(),
    }
}

/// Returns a list that is written as tables: `[[name]]`.
fn tables(node: &Node) -> Option<&[Node]> {
    let items = node.as_list().filter(|items| !items.is_empty())?;
    items
        .iter()
        .all(|item| item.as_map().is_some())
        .then_some(items)
}

fn table(out: &mut String, map: &Map, path: &mut Vec<String>) -> Result<(), EvalFailure> {
    let indent = "  ".repeat(path.len().saturating_sub(1));
    let plain = |node: &Node| node.as_map().is_none() && tables(node).is_none();
    for (name, value) in map.iter().filter(|(_, value)| plain(value)) {
        if *value == Node::Null {
            continue;
        }
        let indent = if path.is_empty() {
            ""
        } else {
            &*format!("{indent}  ")
        };
        out.push_str(&format!("{indent}{} = ", key(name)));
        inline(out, value)?;
        out.push('\n');
    }
    for (name, value) in map.iter().filter(|(_, value)| !plain(value)) {
        path.push(key(name));
        let indent = "  ".repeat(path.len() - 1);
        let header = path.join(".");
        match (value, tables(value)) {
            (Node::Map(inner), _) => {
                if !out.is_empty() && path.len() == 1 {
                    out.push('\n');
                }
                out.push_str(&format!("{indent}[{header}]\n"));
                table(out, inner, path)?;
            }
            (_, items) => {
                for item in items.unwrap_or_default() {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    out.push_str(&format!("{indent}[[{header}]]\n"));
                    if let Node::Map(inner) = item {
                        table(out, inner, path)?;
                    }
                }
            }
        }
        path.pop();
    }
    Ok(())
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn inline(out: &mut String, node: &Node) -> Result<(), EvalFailure> {
    match node {
        Node::Str(text) => out.push_str(&quoted(text)),
        Node::Float(n) if n.fract() == 0.0 && n.abs() < 1e21 => out.push_str(&format!("{n:.1}")),
        Node::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                inline(out, item)?;
            }
            out.push(']');
        }
        Node::Map(map) => {
            out.push('{');
            for (at, (name, item)) in map.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                out.push_str(&format!("{} = ", key(name)));
                inline(out, item)?;
            }
            out.push('}');
        }
        Node::Null => {
            return Err(EvalFailure::refused(
                "toml: cannot encode array with nil element",
            ));
        }
        node => out.push_str(&node.to_text()),
    }
    Ok(())
}
