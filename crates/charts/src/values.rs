//! Reads and merges values, and applies them over the defaults of charts.

use std::rc::Rc;

use orkestra_object::value::{Key, Map, Node};

use crate::error::Error;
use crate::value::{Elem, Entries, Table, Value};
use crate::yaml;

/// The key of the values shared by all charts.
pub(crate) const GLOBAL: &str = "global";

/// Parses a values file: one YAML document, or several, which are merged. An empty one has no values.
///
/// # Errors
/// The text is malformed, or not a map.
pub fn read_values(text: &str) -> Result<Node, Error> {
    let mut values = Node::Map(Map::default());
    for document in documents(text) {
        let read = yaml::read(document).map_err(Error::Values)?;
        match read {
            Node::Null => {}
            Node::Map(_) => merge_values(&mut values, &read),
            other => {
                let found = other.type_name();
                return Err(Error::Values(format!("values are a map, not a {found}")));
            }
        }
    }
    Ok(values)
}

/// Merges values over others, as with a later values file: maps are merged, everything else is replaced, also by null.
pub fn merge_values(values: &mut Node, over: &Node) {
    let (Node::Map(below), Node::Map(over)) = (&mut *values, over) else {
        *values = over.clone();
        return;
    };
    for (key, value) in over.iter() {
        match below.get_mut(key) {
            Some(known @ Node::Map(_)) if matches!(value, Node::Map(_)) => {
                merge_values(known, value);
            }
            Some(known) => *known = value.clone(),
            None => {
                below.insert(Key::new(key), value.clone());
            }
        }
    }
}

/// Splits a stream into documents.
fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_marker = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim().is_empty() || rest.starts_with([' ', '\t']));
        if is_marker && at > start {
            documents.push(&text[start..at]);
            start = at;
        }
        at += line.len();
    }
    documents.push(&text[start..]);
    documents
}

/// Returns the entries of a value, if it is a map of `interface {}`.
pub(crate) fn as_table(value: &Value) -> Option<Rc<Table>> {
    value.as_map().cloned()
}

/// Returns the map at a dotted path.
pub(crate) fn table_at(values: &Rc<Table>, path: &str) -> Option<Rc<Table>> {
    path.split('.').try_fold(Rc::clone(values), |table, key| {
        table.borrow().get(key).and_then(as_table)
    })
}

/// Returns the value at a path, unless it is a map.
pub(crate) fn value_at(values: &Rc<Table>, path: &str) -> Option<Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((table, key)) => (table_at(values, table)?, key),
        None => (Rc::clone(values), path),
    };
    let found = table.borrow().get(key).cloned();
    found.filter(|value| value.as_map().is_none())
}

/// Returns a copy that shares no map.
pub(crate) fn deep_copy(values: &Rc<Table>) -> Rc<Table> {
    let copy = Value::Map(Rc::clone(values), Elem::Any).deep_copy();
    as_table(&copy).unwrap_or_default()
}

/// Copies the entries, so that the map can be changed during the iteration.
fn entries(values: &Rc<Table>) -> Vec<(Rc<str>, Value)> {
    values
        .borrow()
        .iter()
        .map(|(k, v)| (Rc::clone(k), v.clone()))
        .collect()
}

/// Adds the values of a table as defaults of another: values in `over` are kept. With `merge`, nulls are kept as well;
/// otherwise a null in `over` removes the default.
///
/// Source: helm's `coalesceTablesFullKey`.
pub(crate) fn coalesce_tables(over: &Rc<Table>, below: &Rc<Table>, merge: bool) {
    if Rc::ptr_eq(over, below) {
        return;
    }
    let defaults = entries(below);
    for (key, default) in defaults {
        let known = over.borrow().get(&key).cloned();
        match (known, &default) {
            (Some(Value::Nil), default) if !merge && !default.is_nil() => {
                over.borrow_mut().remove(&key);
            }
            (None, _) => {
                over.borrow_mut().insert(key, default);
            }
            (Some(Value::Map(inner, _)), Value::Map(default, _)) => {
                coalesce_tables(&inner, default, merge);
            }
            _ => {}
        }
    }
}

/// Adds a chart's default values below the given ones. `is_chart` is true for the keys of its dependencies.
///
/// Source: helm's `coalesceValues`.
pub(crate) fn coalesce_values(
    given: &Rc<Table>,
    defaults: &Rc<Table>,
    is_chart: impl Fn(&str) -> bool,
    merge: bool,
) {
    for (key, default) in entries(&deep_copy(defaults)) {
        let known = given.borrow().get(&key).cloned();
        match (known, &default) {
            (Some(Value::Nil), _) if !merge => {
                given.borrow_mut().remove(&key);
            }
            (Some(Value::Map(inner, _)), Value::Map(default, _)) => {
                let merge = merge || is_chart(&key);
                if !merge {
                    without_nulls(default);
                }
                coalesce_tables(&inner, default, merge);
            }
            (Some(_), _) => {}
            (None, Value::Nil) if !merge => {}
            (None, value) => {
                if let (false, Value::Map(inner, _)) = (merge, value) {
                    without_nulls(inner);
                }
                given.borrow_mut().insert(key, default);
            }
        }
    }
}

/// Removes nulls, at every level.
pub(crate) fn without_nulls(values: &Rc<Table>) {
    values.borrow_mut().retain(|_, value| !value.is_nil());
    for (_, value) in entries(values) {
        if let Value::Map(inner, _) = value {
            without_nulls(&inner);
        }
    }
}

/// Passes the global values of a chart to one of its dependencies.
///
/// Source: helm's `coalesceGlobals`.
pub(crate) fn coalesce_globals(dependency: &Rc<Table>, chart: &Rc<Table>) {
    let global = |values: &Rc<Table>| match values.borrow().get(GLOBAL) {
        None => Some(Rc::default()),
        Some(value) => as_table(value),
    };
    let (Some(to), Some(from)) = (global(dependency), global(chart)) else {
        return;
    };
    for (key, value) in entries(&from) {
        let known = to.borrow().get(&key).cloned();
        match (&value, known) {
            (Value::Map(table, _), known) => {
                // The dependency's map is filled from the chart's, in a copy.
                let copy: Entries = entries(table).into_iter().collect();
                let copy = Table::new(copy);
                match known {
                    None => {}
                    Some(Value::Map(known, _)) => coalesce_tables(&copy, &known, true),
                    Some(_) => continue,
                }
                to.borrow_mut().insert(key, Value::Map(copy, Elem::Any));
            }
            (_, Some(Value::Map(..))) => {}
            (value, _) => {
                to.borrow_mut().insert(key, value.clone());
            }
        }
    }
    dependency
        .borrow_mut()
        .insert(GLOBAL.into(), Value::Map(to, Elem::Any));
}
