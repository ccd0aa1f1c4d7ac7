//! Maps. Some functions change them in place.

use std::rc::Rc;

use orkestra_template::go::EvalFailure;

use super::{Function, arg, function, string, strval, table, variadic};
use crate::engine::Engine;
use crate::value::{Entries, Table, Value};

pub(crate) static TABLE: &[Function] = &[
    variadic("dict", 0, |engine, args| {
        engine.items(args.len())?;
        let mut entries = Entries::new();
        for pair in args.chunks(2) {
            let key = strval(&pair[0], engine)?;
            let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
            entries.insert(key.into(), value);
        }
        Ok(Value::map(entries))
    }),
    function("get", 2, |_, args| {
        let map = table(&args[0])?.borrow();
        let found = map.get(&*string(&args[1])?).cloned();
        Ok(found.unwrap_or_else(|| Value::text("")))
    }),
    function("set", 3, |engine, args| {
        let key = string(&args[1])?;
        engine.items(1)?;
        engine.text(key.len())?;
        let map = table(&args[0])?;
        map.borrow_mut().insert((&*key).into(), args[2].clone());
        Ok(args[0].clone())
    }),
    function("unset", 2, |_, args| {
        let key = string(&args[1])?;
        let removed = table(&args[0])?.borrow_mut().remove(&*key);
        drop(removed);
        Ok(args[0].clone())
    }),
    function("hasKey", 2, |_, args| {
        let key = string(&args[1])?;
        Ok(Value::Bool(table(&args[0])?.borrow().contains_key(&*key)))
    }),
    variadic("pluck", 1, |engine, args| {
        let key = string(&args[0])?;
        engine.items(args.len())?;
        let mut found = Vec::new();
        for map in &args[1..] {
            found.extend(table(map)?.borrow().get(&*key).cloned());
        }
        Ok(Value::list(found))
    }),
    variadic("keys", 0, |engine, args| {
        let mut keys = Vec::new();
        for map in args {
            let map = table(map)?.borrow();
            engine.items(map.len())?;
            keys.extend(map.keys().cloned());
        }
        Ok(Value::texts(keys))
    }),
    function("values", 1, |engine, args| {
        let map = table(&args[0])?.borrow();
        engine.items(map.len())?;
        Ok(Value::list(map.values().cloned().collect()))
    }),
    variadic("pick", 1, |engine, args| part(engine, args, true)),
    variadic("omit", 1, |engine, args| part(engine, args, false)),
    variadic("merge", 1, |engine, args| merged(engine, args, false)),
    variadic("mustMerge", 1, |engine, args| merged(engine, args, false)),
    variadic("mergeOverwrite", 1, |engine, args| {
        merged(engine, args, true)
    }),
    variadic("mustMergeOverwrite", 1, |engine, args| {
        merged(engine, args, true)
    }),
    variadic("dig", 3, dig),
];

/// Returns the entries with, or without, the keys in the arguments.
fn part(engine: &mut Engine<'_>, args: &[Value], with: bool) -> Result<Value, EvalFailure> {
    let map = table(&args[0])?.borrow();
    engine.items(map.len())?;
    engine.steps((map.len() as u64).saturating_mul(args.len() as u64))?;
    let keys = args[1..]
        .iter()
        .map(string)
        .collect::<Result<Vec<_>, _>>()?;
    let wanted = |key: &str| keys.iter().any(|other| *other == *key) == with;
    let entries = map.iter().filter(|(key, _)| wanted(key));
    Ok(Value::map(
        entries.map(|(k, v)| (Rc::clone(k), v.clone())).collect(),
    ))
}

fn merged(engine: &mut Engine<'_>, args: &[Value], overwrite: bool) -> Result<Value, EvalFailure> {
    let target = table(&args[0])?;
    for source in &args[1..] {
        engine.whole(&args[0])?;
        engine.whole(source)?;
        merge(target, table(source)?, overwrite, engine)?;
    }
    Ok(args[0].clone())
}

/// Merges a map into another, as mergo does: either fills the empty values of the target, or overwrites them with those of
/// the source. New maps are shared with the source.
fn merge(
    target: &Rc<Table>,
    source: &Rc<Table>,
    overwrite: bool,
    engine: &mut Engine<'_>,
) -> Result<(), EvalFailure> {
    if Rc::ptr_eq(target, source) {
        return Ok(());
    }
    // The source may be part of the target.
    let entries: Vec<_> = source
        .borrow()
        .iter()
        .map(|(k, v)| (Rc::clone(k), v.clone()))
        .collect();
    engine.items(entries.len())?;
    for (key, value) in entries {
        let known = target.borrow().get(&key).cloned();
        match (known, &value) {
            // A nil overwrites but never fills.
            (_, Value::Nil) if !overwrite => {}
            (Some(Value::Map(inner, _)), Value::Map(source, _)) => {
                merge(&inner, source, overwrite, engine)?;
            }
            (Some(known), _) if !known.is_empty() && !overwrite => {}
            _ => {
                target.borrow_mut().insert(key, value);
            }
        }
    }
    Ok(())
}

fn dig(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let [keys @ .., default, map] = args else {
        return Err(EvalFailure::refused("dig needs at least three arguments"));
    };
    let mut value = map.clone();
    for key in keys {
        let key = string(key)?;
        let found = match &value {
            Value::Map(map, _) => map.borrow().get(&*key).cloned(),
            other => {
                let found = other.type_name();
                let message = format!(
                    "interface conversion: interface {{}} is {found}, not map[string]interface {{}}"
                );
                return Err(EvalFailure::wrong_type(message));
            }
        };
        match found {
            Some(found) => value = found,
            None => return Ok(arg(std::slice::from_ref(default), 0).clone()),
        }
    }
    Ok(value)
}
