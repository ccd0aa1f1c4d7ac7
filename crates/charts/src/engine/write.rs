//! Writes values as YAML: line starts, and the content after keys and dashes.

use orkestra_object::value::Node;
use orkestra_template::go::EvalFailure;

use crate::engine::Engine;
use crate::value::Value;
use crate::yaml::{float, inline, scalar, shortest};

/// The maximum length of a simple key; longer ones are written with a question mark.
const LONGEST_KEY: usize = 128;

/// Writes a value, without a final line break.
///
/// # Errors
/// The budget is exhausted.
pub(crate) fn write(value: &Value, engine: &mut Engine<'_>) -> Result<String, EvalFailure> {
    write_with(value, engine, false)
}

/// Writes a value with the items of lists indented: `toYamlPretty`.
///
/// # Errors
/// The budget is exhausted.
pub(crate) fn write_pretty(value: &Value, engine: &mut Engine<'_>) -> Result<String, EvalFailure> {
    write_with(value, engine, true)
}

fn write_with(value: &Value, engine: &mut Engine<'_>, pretty: bool) -> Result<String, EvalFailure> {
    engine.whole(value)?;
    // helm passes the value of `toYamlPretty` to the YAML library as it is, and that of `toYaml` as JSON.
    let node = if pretty {
        value.to_native_node()
    } else {
        value.to_node()
    };
    let mut out = YamlWriter {
        out: String::new(),
        pretty,
        engine,
    };
    out.node(&node, 0, ValuePosition::Root)?;
    let YamlWriter { mut out, .. } = out;
    if out.ends_with('\n') {
        out.pop();
    }
    Ok(out)
}

/// The position of a value.
#[derive(Clone, Copy, PartialEq)]
enum ValuePosition {
    Root,
    /// After `key:`
    Key,
    /// After `- `
    Item,
}

struct YamlWriter<'w, 'c> {
    out: String,
    /// True if the items of a list are indented relative to its key.
    pretty: bool,
    engine: &'w mut Engine<'c>,
}

impl YamlWriter<'_, '_> {
    /// Writes a value and a line break. `indent` is the column of its keys or items.
    fn node(
        &mut self,
        node: &Node,
        indent: usize,
        place: ValuePosition,
    ) -> Result<(), EvalFailure> {
        match node {
            Node::Map(map) if !map.is_empty() => {
                if place == ValuePosition::Key {
                    self.push("\n")?;
                }
                for (at, (key, value)) in map.iter().enumerate() {
                    // The first key of an item is on the line of its dash.
                    if at > 0 || place != ValuePosition::Item {
                        self.spaces(indent)?;
                    }
                    self.key(key, indent)?;
                    // The items of a list start in the column of the key.
                    let deeper = match value {
                        Node::List(_) if !self.pretty => indent,
                        _ => indent + 2,
                    };
                    self.node(value, deeper, ValuePosition::Key)?;
                }
                Ok(())
            }
            Node::List(items) if !items.is_empty() => {
                if place == ValuePosition::Key {
                    self.push("\n")?;
                }
                for (at, item) in items.iter().enumerate() {
                    if at > 0 || place != ValuePosition::Item {
                        self.spaces(indent)?;
                    }
                    self.push("-")?;
                    if is_block(item) {
                        self.push(" ")?;
                    }
                    self.node(item, indent + 2, ValuePosition::Item)?;
                }
                Ok(())
            }
            node => self.leaf(node, indent, place),
        }
    }

    /// Writes a value that takes no lines of its own: a scalar, or an empty map or list.
    fn leaf(
        &mut self,
        node: &Node,
        indent: usize,
        place: ValuePosition,
    ) -> Result<(), EvalFailure> {
        if place != ValuePosition::Root && !self.out.ends_with("- ") {
            self.push(" ")?;
        }
        let column = self.column();
        let text = match node {
            Node::Null => "null".to_owned(),
            Node::Map(_) => "{}".to_owned(),
            Node::List(_) => "[]".to_owned(),
            Node::Float(n) if self.pretty => shortest(*n),
            Node::Float(n) => float(*n),
            Node::Str(text) => scalar(
                text,
                if place == ValuePosition::Root {
                    2
                } else {
                    indent
                },
                column,
            ),
            node => node.to_text().into_owned(),
        };
        self.push(&text)?;
        if text.ends_with('\n') && text.starts_with('|') {
            Ok(())
        } else {
            self.push("\n")
        }
    }

    fn key(&mut self, key: &str, indent: usize) -> Result<(), EvalFailure> {
        let text = inline(key);
        if text.len() > LONGEST_KEY {
            self.push("? ")?;
            self.push(&text)?;
            self.push("\n")?;
            self.spaces(indent)?;
        } else {
            self.push(&text)?;
        }
        self.push(":")
    }

    fn column(&self) -> usize {
        let start = self.out.rfind('\n').map_or(0, |at| at + 1);
        self.out[start..].chars().count()
    }

    fn spaces(&mut self, count: usize) -> Result<(), EvalFailure> {
        self.push(&" ".repeat(count))
    }

    fn push(&mut self, text: &str) -> Result<(), EvalFailure> {
        self.engine.text(text.len())?;
        self.out.push_str(text);
        Ok(())
    }
}

/// True if a value starts with keys or dashes.
fn is_block(node: &Node) -> bool {
    match node {
        Node::Map(map) => !map.is_empty(),
        Node::List(items) => !items.is_empty(),
        _ => false,
    }
}
