//! Lists and maps. Any other value counts as empty.

use super::number::Number;
use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use crate::scope::copied;
use orkestra_object::value::{Key, Map, Node};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "listHas",
        doc: "True if the list contains the value; numbers compare by value.",
        example: (r#"{{ listHas .spec.domains "koi.example" }}"#, "true"),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::Bool,
        run: NoteBody::Eager(list_has),
        ..PLAIN
    },
    BuiltInNote {
        name: "listGet",
        doc: "The item at a position, from 0; null if there is none.",
        example: ("{{ listGet .spec.domains 1 }}", "pond.example"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any, NoteType::Int],
        result: NoteType::Inside,
        run: NoteBody::Leading(list_get),
        ..PLAIN
    },
    BuiltInNote {
        name: "listLen",
        doc: "The number of items of a list; 0 for values of other types.",
        example: ("{{ listLen .spec.domains }}", "2"),
        result: NoteType::Int,
        run: NoteBody::Eager(list_len),
        ..PLAIN
    },
    BuiltInNote {
        name: "mapGet",
        doc: "The value of a key in a map; null if there is none.",
        example: (r#"{{ mapGet .spec.tiers "gold" }}"#, "5"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any, NoteType::Text],
        result: NoteType::Inside,
        run: NoteBody::Leading(map_get),
        ..PLAIN
    },
    BuiltInNote {
        name: "mapKeys",
        doc: "The keys of a map, sorted.",
        example: ("{{ mapKeys .spec.tiers }}", "[gold silver]"),
        result: NoteType::List,
        run: NoteBody::Eager(map_keys),
        ..PLAIN
    },
    BuiltInNote {
        name: "mapValues",
        doc: "The values of a map, in the order of their keys.",
        example: ("{{ mapValues .spec.tiers }}", "[5 2]"),
        result: NoteType::List,
        run: NoteBody::Eager(map_values),
        ..PLAIN
    },
    BuiltInNote {
        name: "mapPick",
        doc: "The map with these keys only; keys may also be given as lists.",
        example: (r#"{{ mapPick .spec.tiers "gold" }}"#, "map[gold:5]"),
        max_args: None,
        result: NoteType::Map,
        run: NoteBody::Eager(map_pick),
        ..PLAIN
    },
    BuiltInNote {
        name: "mapOmit",
        doc: "The map without these keys; keys may also be given as lists.",
        example: (r#"{{ mapOmit .spec.tiers "gold" }}"#, "map[silver:2]"),
        max_args: None,
        result: NoteType::Map,
        run: NoteBody::Eager(map_omit),
        ..PLAIN
    },
];

fn list_has<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (list, value) = (call.take(0), call.take(1));
    let items = list.node().as_list().unwrap_or_default();
    let value = value.node();
    let steps_an_item = 1 + value.heap_bytes() / 16;
    let steps = items.len().saturating_mul(steps_an_item);
    call.budget.step(steps as u64)?;
    Ok(items.iter().any(|item| equal(item, value)).into())
}

fn equal(a: &Node, b: &Node) -> bool {
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => a.order(b) == Some(std::cmp::Ordering::Equal),
        _ => a == b,
    }
}

fn list_get<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let at = match call.node(1) {
        Node::Int(n) if *n < 0 => return Ok(Value::null()),
        Node::Null => return Ok(Value::null()),
        _ => call.count(1),
    };
    let list = call.take(0);
    list.part(|node| node.as_list()?.get(at), call.budget)
}

fn list_len<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = call.node(0).as_list().map_or(0, <[Node]>::len);
    Ok(i64::try_from(length).unwrap_or(i64::MAX).into())
}

fn map_get<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (map, key) = (call.take(0), call.take(1));
    let Some(key) = key.node().as_str() else {
        return Ok(Value::null());
    };
    if !matches!(map, Value::Root) && map.node().as_map().is_none() {
        return Ok(Value::null());
    }
    call.look(map, key)
}

fn map_keys<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let map = call.take(0);
    let mut keys = Vec::new();
    for (key, _) in map.node().as_map().into_iter().flat_map(Map::iter) {
        call.budget.items(1)?;
        call.budget.take(key.len())?;
        keys.push(Node::from(key.as_str()));
    }
    Ok(Node::from(keys).into())
}

fn map_values<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let map = call.take(0);
    let mut values = Vec::new();
    for (_, value) in map.node().as_map().into_iter().flat_map(Map::iter) {
        call.budget.items(1)?;
        values.push(copied(value, call.budget)?);
    }
    Ok(Node::from(values).into())
}

fn map_pick<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    chosen(call, true)
}

fn map_omit<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    chosen(call, false)
}

/// Returns the entries of the map whose keys are among the other arguments, or, without `wanted`, are not.
fn chosen<'d>(call: &mut NoteCall<'_, 'd>, wanted: bool) -> Result<Value<'d>, EvalFailure> {
    let map = call.take(0);
    let keys: Vec<Value<'d>> = (1..call.len()).map(|at| call.take(at)).collect();
    let count: usize = keys
        .iter()
        .map(|key| key.node().as_list().map_or(1, <[Node]>::len))
        .sum();
    let mut entries: Vec<(Key, Node)> = Vec::new();
    for (key, value) in map.node().as_map().into_iter().flat_map(Map::iter) {
        call.budget.step(1 + count as u64)?;
        let named = keys.iter().any(|names| names_key(names.node(), key));
        if named == wanted {
            call.budget.items(1)?;
            entries.push((key.clone(), copied(value, call.budget)?));
        }
    }
    Ok(Node::Map(entries.into_iter().collect()).into())
}

/// True if a text, or an item of a list of texts, equals the key.
fn names_key(names: &Node, key: &str) -> bool {
    match names {
        Node::Str(name) => **name == *key,
        Node::List(names) => names.iter().any(|name| name.as_str() == Some(key)),
        _ => false,
    }
}
