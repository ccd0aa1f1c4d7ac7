//! Types, emptiness and defaults.

use orkestra_template::go::EvalFailure;

use super::{Function, arg, boolean, function, string, variadic};
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("typeOf", 1, |_, args| Ok(Value::text(args[0].type_name()))),
    function("kindOf", 1, |_, args| Ok(Value::text(args[0].kind()))),
    function("typeIs", 2, |_, args| {
        Ok(Value::Bool(string(&args[0])? == args[1].type_name()))
    }),
    function("typeIsLike", 2, |_, args| {
        let (wanted, found) = (string(&args[0])?, args[1].type_name());
        Ok(Value::Bool(
            wanted == found || format!("*{wanted}") == found,
        ))
    }),
    function("kindIs", 2, |_, args| {
        Ok(Value::Bool(string(&args[0])? == args[1].kind()))
    }),
    function("deepEqual", 2, |engine, args| {
        engine.whole(&args[0])?;
        Ok(Value::Bool(args[0].deep_equal(&args[1])))
    }),
    variadic("default", 1, |_, args| {
        let given = arg(args, 1);
        Ok(if given.is_empty() { &args[0] } else { given }.clone())
    }),
    function("empty", 1, |_, args| Ok(Value::Bool(args[0].is_empty()))),
    variadic("coalesce", 0, |_, args| {
        let first = args.iter().find(|arg| !arg.is_empty());
        Ok(first.cloned().unwrap_or_default())
    }),
    variadic("all", 0, |_, args| {
        Ok(Value::Bool(!args.iter().any(Value::is_empty)))
    }),
    variadic("any", 0, |_, args| {
        Ok(Value::Bool(!args.iter().all(Value::is_empty)))
    }),
    function("ternary", 3, |_, args| {
        let chosen = if boolean(&args[2])? {
            &args[0]
        } else {
            &args[1]
        };
        Ok(chosen.clone())
    }),
    function("deepCopy", 1, deep_copy),
    function("mustDeepCopy", 1, deep_copy),
];

fn deep_copy(engine: &mut crate::engine::Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    engine.whole(&args[0])?;
    Ok(args[0].deep_copy())
}
