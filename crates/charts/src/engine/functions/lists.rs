//! Lists. No function changes them in place.

use orkestra_template::go::EvalFailure;

use super::{Function, Run, function, int, slice, variadic};
use crate::engine::Engine;
use crate::value::{Elem, Items, Value};

/// The table. A function with `must` in its name is the same function, because all of them report their errors here.
macro_rules! table {
    ($($name:literal $must:literal $arity:ident($count:literal) $run:expr,)*) => {
        pub(crate) static TABLE: &[Function] = &[
            variadic("list", 0, list),
            variadic("tuple", 0, list),
            variadic("concat", 0, concat),
            function("push", 2, append),
            function("mustPush", 2, append),
            $($arity($name, $count, { const RUN: Run = $run; RUN }),
            $arity($must, $count, { const RUN: Run = $run; RUN }),)*
        ];
    };
}

table! {
    "append" "mustAppend" function(2) append,
    "prepend" "mustPrepend" function(2) |engine, args| {
        let (items, _) = slice("prepend", &args[0])?;
        engine.items(items.len() + 1)?;
        let item = std::iter::once(args[1].clone());
        Ok(Value::list(item.chain(items.iter().cloned()).collect()))
    },
    "first" "mustFirst" function(1) |_, args| {
        let (items, _) = slice("find first", &args[0])?;
        Ok(items.first().cloned().unwrap_or_default())
    },
    "last" "mustLast" function(1) |_, args| {
        let (items, _) = slice("find last", &args[0])?;
        Ok(items.last().cloned().unwrap_or_default())
    },
    "rest" "mustRest" function(1) |engine, args| {
        let (items, _) = slice("find rest", &args[0])?;
        engine.items(items.len())?;
        Ok(match &**items {
            [] => Value::list(Vec::new()),
            [_, rest @ ..] => Value::list(rest.to_vec()),
        })
    },
    "initial" "mustInitial" function(1) |engine, args| {
        let (items, _) = slice("find initial", &args[0])?;
        engine.items(items.len())?;
        Ok(match &**items {
            [] => Value::list(Vec::new()),
            [rest @ .., _] => Value::list(rest.to_vec()),
        })
    },
    "reverse" "mustReverse" function(1) |engine, args| {
        let (items, _) = slice("find reverse", &args[0])?;
        engine.items(items.len())?;
        Ok(Value::list(items.iter().rev().cloned().collect()))
    },
    "compact" "mustCompact" function(1) |engine, args| {
        let (items, _) = slice("compact", &args[0])?;
        engine.items(items.len())?;
        Ok(Value::list(items.iter().filter(|item| !item.is_empty()).cloned().collect()))
    },
    "uniq" "mustUniq" function(1) |engine, args| {
        let (items, _) = slice("find uniq", &args[0])?;
        let mut kept: Vec<Value> = Vec::new();
        for item in items.iter() {
            if !is_in(&kept, item, engine)? {
                kept.push(item.clone());
            }
        }
        Ok(Value::list(kept))
    },
    "without" "mustWithout" variadic(1) |engine, args| {
        let (items, _) = slice("find without", &args[0])?;
        let mut kept = Vec::new();
        for item in items.iter() {
            if !is_in(&args[1..], item, engine)? {
                kept.push(item.clone());
            }
        }
        Ok(Value::list(kept))
    },
    "has" "mustHas" function(2) |engine, args| {
        if args[1].is_nil() {
            return Ok(Value::Bool(false));
        }
        let (items, _) = slice("find has", &args[1])?;
        Ok(Value::Bool(is_in(&items, &args[0], engine)?))
    },
    "chunk" "mustChunk" function(2) |engine, args| {
        let size = usize::try_from(int(&args[0])?).ok().filter(|size| *size > 0);
        let size = size.ok_or_else(|| EvalFailure::refused("chunk takes a positive size"))?;
        let (items, _) = slice("chunk", &args[1])?;
        engine.items(items.len().saturating_mul(2))?;
        let chunks = items.chunks(size).map(|chunk| Value::list(chunk.to_vec()));
        Ok(Value::List(Items::new(chunks.collect()), Elem::List))
    },
}

fn list(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    engine.items(args.len())?;
    Ok(Value::list(args.to_vec()))
}

fn append(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (items, _) = slice("push", &args[0])?;
    engine.items(items.len() + 1)?;
    let item = std::iter::once(args[1].clone());
    Ok(Value::list(items.iter().cloned().chain(item).collect()))
}

fn concat(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let mut all = Vec::new();
    for list in args {
        let (items, _) = slice("concat", list).map_err(|_| {
            EvalFailure::refused(format!("Cannot concat type {} as list", list.kind()))
        })?;
        engine.items(items.len())?;
        all.extend(items.iter().cloned());
    }
    Ok(Value::list(all))
}

/// True if a list contains an item.
fn is_in(items: &[Value], wanted: &Value, engine: &mut Engine<'_>) -> Result<bool, EvalFailure> {
    engine.whole(wanted)?;
    engine.steps(items.len() as u64)?;
    Ok(items.iter().any(|item| wanted.deep_equal(item)))
}
