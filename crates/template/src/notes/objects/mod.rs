//! Notes on Kubernetes objects.
//!
//! Each note takes an object first and declares the parts that it reads. A value that is not an object, and a missing part
//! of an object, count as the zero value. `enrich` adds keys that start with `_` to an object; without them notes read the
//! object's own fields. Several texts are returned as one, separated by `, `.

pub(crate) mod containers;
pub(crate) mod generic;
pub(crate) mod ingress;
pub(crate) mod jobs;
pub(crate) mod nodes;
pub(crate) mod pods;
pub(crate) mod scaling;
pub(crate) mod services;
#[cfg(test)]
mod tests;
pub(crate) mod volumes;
pub(crate) mod warnings;
pub(crate) mod workloads;

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::Data;
use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use crate::print;
use crate::scope::NULL;
use orkestra_object::value::{Map, Node};

/// The first text at the declared paths.
const TEXT: BuiltInNote = BuiltInNote {
    result: NoteType::Text,
    run: NoteBody::Eager(text),
    ..PLAIN
};

/// The integer at the declared path.
const INT: BuiltInNote = BuiltInNote {
    result: NoteType::Int,
    run: NoteBody::Eager(int),
    ..PLAIN
};

/// The number of items in the first list at the declared paths.
const COUNT: BuiltInNote = BuiltInNote {
    result: NoteType::Int,
    run: NoteBody::Eager(count),
    ..PLAIN
};

/// The map at the declared path.
const MAP: BuiltInNote = BuiltInNote {
    result: NoteType::Map,
    run: NoteBody::Eager(map),
    ..PLAIN
};

/// A boolean, with its own implementation.
const CHECK: BuiltInNote = BuiltInNote {
    result: NoteType::Bool,
    ..PLAIN
};

/// A note that takes an object and a text.
const KEYED: BuiltInNote = BuiltInNote {
    min_args: 2,
    max_args: Some(2),
    params: &[NoteType::Any, NoteType::Text],
    ..PLAIN
};

/// Finding the parts that a note reads costs as much as several expressions.
const STEPS_AN_OBJECT: u64 = 3;

/// The first argument of a note, restricted to the paths that the note declares.
struct Object<'c, 'd> {
    whole: Value<'d>,
    data: &'c Data<'d>,
    reads: &'static [&'static str],
}

impl<'c, 'd> NoteCall<'c, 'd> {
    /// Takes the first argument and leaves null in its place.
    fn object(&mut self) -> Result<Object<'c, 'd>, EvalFailure> {
        self.budget.step(STEPS_AN_OBJECT)?;
        Ok(Object {
            whole: self.take(0),
            data: self.data,
            reads: self.note.reads,
        })
    }
}

impl<'d> Object<'_, 'd> {
    /// Returns the value at one of the paths that the note declares; null if there is none, and for any other path.
    fn at(&self, path: &str) -> &Node {
        let declared = self.reads.contains(&path);
        let found = declared.then(|| self.find(path)).flatten();
        found.unwrap_or(&NULL)
    }

    fn find(&self, path: &str) -> Option<&Node> {
        match &self.whole {
            Value::Root => {
                let (first, rest) = split(path);
                self.data.get(first).and_then(|node| below(node, rest))
            }
            value => below(value.node(), Some(path)),
        }
    }

    /// Returns the value in the map at a path, under the key in the note's second argument. The note declares it as the path
    /// and a `*`.
    fn under(&self, path: &str, key: &Node) -> Option<&Node> {
        let stars = self.reads.iter().filter_map(|read| read.strip_suffix(".*"));
        let declared = stars.into_iter().any(|read| read == path);
        declared.then(|| self.find(path)?.get(key.as_str()?))?
    }

    /// Returns the value of [`Object::at`], borrowed if the object is.
    fn part(self, path: &str, budget: &mut EvalBudget) -> Result<Value<'d>, EvalFailure> {
        match self.whole {
            _ if !self.reads.contains(&path) => Ok(Value::null()),
            Value::Root => {
                let (first, rest) = split(path);
                let found = self.data.get(first).and_then(|node| below(node, rest));
                Ok(found.map_or(Value::null(), Value::Data))
            }
            value => value.part(|node| below(node, Some(path)), budget),
        }
    }

    /// True if it is a map.
    fn is_map(&self) -> bool {
        matches!(self.whole, Value::Root) || self.whole.node().as_map().is_some()
    }

    /// Iterates over the paths that have a value, in order, with their values.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &Node)> {
        let parts = self.reads.iter().map(|path| (*path, self.at(path)));
        parts.filter(|(_, node)| !matches!(node, Node::Null))
    }

    /// Returns the items of the list at a path, charged for an iteration.
    fn list(&self, path: &str, budget: &mut EvalBudget) -> Result<&[Node], EvalFailure> {
        let items = self.at(path).as_list().unwrap_or_default();
        budget.step(items.len() as u64)?;
        Ok(items)
    }

    /// Returns the integer at a path, or 0.
    fn int(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    /// Returns the text at a path, or an empty one.
    fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }
}

fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    }
}

/// Returns the value at a path below a node; the node itself without a path.
fn below<'n>(node: &'n Node, path: Option<&str>) -> Option<&'n Node> {
    let mut keys = path.into_iter().flat_map(|path| path.split('.'));
    keys.try_fold(node, |node, key| match node {
        Node::List(items) => items.get(key.parse::<usize>().ok()?),
        node => node.get(key),
    })
}

fn text<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let found = object.parts().find(|(_, node)| is_scalar(node));
    match found.map(|(path, node)| (path, node.as_str().is_some())) {
        Some((path, true)) => object.part(path, call.budget),
        Some((path, false)) => {
            let text = object.at(path).to_text();
            call.budget.text(text.len())?;
            Ok(Node::from(text.into_owned()).into())
        }
        None => Ok(Node::from("").into()),
    }
}

fn int<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let found = object.parts().find_map(|(_, node)| node.as_i64());
    Ok(found.unwrap_or_default().into())
}

fn count<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let found = object.parts().find_map(|(_, node)| node.as_list());
    Ok(number(found.unwrap_or_default().len()).into())
}

fn map<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let found = object.parts().find(|(_, node)| node.as_map().is_some());
    match found.map(|(path, _)| path) {
        Some(path) => object.part(path, call.budget),
        None => Ok(Node::from(Map::default()).into()),
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node, Node::Null | Node::List(_) | Node::Map(_))
}

/// Returns the text under a key; empty if there is none.
fn text_of<'n>(node: &'n Node, key: &str) -> &'n str {
    let text = node.get(key).and_then(Node::as_str);
    text.unwrap_or_default()
}

/// Returns the name of an item, as added by `enrich` or as in Kubernetes objects.
fn name_of(item: &Node) -> &str {
    let name = item.get("name").or_else(|| item.meta("name"));
    name.and_then(Node::as_str).unwrap_or_default()
}

/// Joins texts, without the empty ones.
fn joined<'d, T: AsRef<str>>(
    texts: impl IntoIterator<Item = T>,
    budget: &mut EvalBudget,
) -> Result<Value<'d>, EvalFailure> {
    let mut out = String::new();
    for text in texts {
        budget.step(1)?;
        let text = text.as_ref();
        if text.is_empty() {
            continue;
        }
        if !out.is_empty() {
            print::append(&mut out, ", ", budget)?;
        }
        print::append(&mut out, text, budget)?;
    }
    Ok(Node::from(out).into())
}

/// Removes duplicates and keeps the order of first occurrence.
fn unique<'n>(texts: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let mut known = std::collections::HashSet::new();
    let mut unique: Vec<&str> = texts.into_iter().collect();
    unique.retain(|text| known.insert(*text));
    unique
}

/// Finds the condition of a type in a list of conditions.
fn condition<'n>(conditions: &'n [Node], wanted: &str) -> Option<&'n Node> {
    conditions.iter().find(|c| text_of(c, "type") == wanted)
}

/// True if the condition of a type is true.
fn is_true(conditions: &[Node], wanted: &str) -> bool {
    condition(conditions, wanted).is_some_and(|c| text_of(c, "status") == "True")
}
