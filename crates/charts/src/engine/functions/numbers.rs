//! Numbers: arithmetic in `int64` and `float64`, conversions, sequences.

use orkestra_template::go::EvalFailure;

use super::{Function, function, int, string, variadic};
use crate::engine::Engine;
use crate::engine::print;
use crate::value::Object;
use crate::value::{Elem, Items, Value};

pub(crate) static TABLE: &[Function] = &[
    function("atoi", 1, |_, args| {
        let text = string(&args[0])?;
        let sound = !text.contains('_');
        Ok(Value::Int(text.parse().ok().filter(|_| sound).unwrap_or(0)))
    }),
    function("int64", 1, |_, args| Ok(Value::Int64(to_i64(&args[0])))),
    function("int", 1, |_, args| Ok(Value::Int(to_i64(&args[0])))),
    function("float64", 1, |_, args| Ok(Value::Float(to_f64(&args[0])))),
    function("toDecimal", 1, |engine, args| {
        let text = print::text(&args[0], engine)?;
        Ok(Value::Int64(i64::from_str_radix(&text, 8).unwrap_or(0)))
    }),
    function("add1", 1, |_, args| {
        Ok(Value::Int64(to_i64(&args[0]).wrapping_add(1)))
    }),
    variadic("add", 0, |_, args| {
        let sum = args.iter().map(to_i64).fold(0, i64::wrapping_add);
        Ok(Value::Int64(sum))
    }),
    function("sub", 2, |_, args| {
        Ok(Value::Int64(
            to_i64(&args[0]).wrapping_sub(to_i64(&args[1])),
        ))
    }),
    function("div", 2, |_, args| {
        divided(args, i64::checked_div, i64::wrapping_div)
    }),
    function("mod", 2, |_, args| {
        divided(args, i64::checked_rem, i64::wrapping_rem)
    }),
    variadic("mul", 1, |_, args| {
        let product = args.iter().map(to_i64).fold(1, i64::wrapping_mul);
        Ok(Value::Int64(product))
    }),
    function("add1f", 1, |_, args| {
        Ok(Value::Float(rounded(to_f64(&args[0]) + 1.0)))
    }),
    variadic("addf", 0, |_, args| {
        Ok(Value::Float(
            args.iter().map(to_f64).fold(0.0, |a, b| rounded(a + b)),
        ))
    }),
    variadic("subf", 1, |_, args| {
        Ok(Value::Float(folded(args, |a, b| a - b)))
    }),
    variadic("mulf", 1, |_, args| {
        Ok(Value::Float(folded(args, |a, b| a * b)))
    }),
    variadic("divf", 1, |_, args| {
        if args.iter().skip(1).any(|arg| to_f64(arg) == 0.0) {
            return Err(EvalFailure::refused("decimal division by 0"));
        }
        Ok(Value::Float(folded(args, |a, b| a / b)))
    }),
    variadic("max", 1, most),
    variadic("biggest", 1, most),
    variadic("min", 1, |_, args| {
        Ok(Value::Int64(args.iter().map(to_i64).min().unwrap_or(0)))
    }),
    variadic("maxf", 1, |_, args| {
        Ok(Value::Float(
            args.iter().map(to_f64).fold(f64::NEG_INFINITY, f64::max),
        ))
    }),
    variadic("minf", 1, |_, args| {
        Ok(Value::Float(
            args.iter().map(to_f64).fold(f64::INFINITY, f64::min),
        ))
    }),
    function("ceil", 1, |_, args| {
        Ok(Value::Float(to_f64(&args[0]).ceil()))
    }),
    function("floor", 1, |_, args| {
        Ok(Value::Float(to_f64(&args[0]).floor()))
    }),
    variadic("round", 2, round),
    function("until", 1, |engine, args| {
        let count = int(&args[0])?;
        sequence(engine, 0, count, if count < 0 { -1 } else { 1 }).map(ints)
    }),
    function("untilStep", 3, |engine, args| {
        sequence(engine, int(&args[0])?, int(&args[1])?, int(&args[2])?).map(ints)
    }),
    variadic("seq", 0, seq),
    function("randInt", 2, |engine, args| {
        let (least, most) = (int(&args[0])?, int(&args[1])?);
        let range = u64::try_from(most.saturating_sub(least)).unwrap_or(0);
        if range == 0 {
            return Err(EvalFailure::refused("invalid argument to Intn"));
        }
        let drawn = engine.random(16)?;
        // 128 bits over a range of at most 64, so the bias is negligible.
        let drawn = drawn
            .iter()
            .fold(0u128, |n, byte| n << 8 | u128::from(*byte));
        let offset = i64::try_from(drawn % u128::from(range)).unwrap_or(0);
        Ok(Value::Int(least.wrapping_add(offset)))
    }),
];

/// Converts a value to `int64`, as github.com/spf13/cast does; 0 if that is impossible.
#[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
pub(crate) fn to_i64(value: &Value) -> i64 {
    match value {
        Value::Int(n) | Value::Int64(n) | Value::Object(Object::Duration(n)) => *n,
        Value::Float(n) => *n as i64,
        Value::Bool(b) => i64::from(*b),
        Value::Str(text) => parse_i64(text).unwrap_or(0),
        _ => 0,
    }
}

/// Parses an integer. Only zeros may follow a point; a prefix or a leading zero selects the base.
fn parse_i64(text: &str) -> Option<i64> {
    let whole = match text.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|b| b == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let (negative, digits) = match whole.as_bytes().first()? {
        b'-' => (true, &whole[1..]),
        b'+' => (false, &whole[1..]),
        _ => (false, whole),
    };
    let lower = digits.to_ascii_lowercase();
    let mut prefixes = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter();
    let prefix = prefixes.find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, radix)));
    let (digits, radix) = match prefix {
        Some(found) => found,
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&*lower, 10),
    };
    let plain = digits.replace('_', "");
    if plain.starts_with(['+', '-']) {
        return None;
    }
    let n = i128::from_str_radix(&plain, radix).ok()?;
    i64::try_from(if negative { -n } else { n }).ok()
}

/// Converts a value to `float64`, as github.com/spf13/cast does; 0 if that is impossible.
#[expect(clippy::cast_precision_loss, reason = "as Go converts")]
pub(crate) fn to_f64(value: &Value) -> f64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n as f64,
        Value::Float(n) => *n,
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Str(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}

fn divided(
    args: &[Value],
    checked: fn(i64, i64) -> Option<i64>,
    wrapping: fn(i64, i64) -> i64,
) -> Result<Value, EvalFailure> {
    let (a, b) = (to_i64(&args[0]), to_i64(&args[1]));
    if b == 0 {
        return Err(EvalFailure::refused(
            "runtime error: integer divide by zero",
        ));
    }
    Ok(Value::Int64(
        checked(a, b).unwrap_or_else(|| wrapping(a, b)),
    ))
}

fn folded(args: &[Value], step: fn(f64, f64) -> f64) -> f64 {
    let numbers = args.iter().map(to_f64);
    numbers.reduce(|a, b| rounded(step(a, b))).unwrap_or(0.0)
}

/// Rounds to the result of decimal arithmetic, without the noise of binary fractions in the last digits.
fn rounded(n: f64) -> f64 {
    format!("{n:.15e}").parse().unwrap_or(n)
}

fn most(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    Ok(Value::Int64(args.iter().map(to_i64).max().unwrap_or(0)))
}

fn round(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let places = i32::try_from(int(&args[1])?).unwrap_or(i32::MAX);
    let on = match args.get(2) {
        Some(Value::Float(on)) => *on,
        Some(value) => return Err(super::wrong("float64", value)),
        None => 0.5,
    };
    let power = 10f64.powi(places);
    let digit = power * to_f64(&args[0]);
    let up = digit.fract() >= on;
    Ok(Value::Float(
        if up { digit.ceil() } else { digit.floor() } / power,
    ))
}

/// Returns the numbers from `start` up or down to `end`.
fn sequence(
    engine: &mut Engine<'_>,
    start: i64,
    end: i64,
    step: i64,
) -> Result<Vec<i64>, EvalFailure> {
    let downwards = end < start;
    if downwards == (step >= 0) || step == 0 {
        return Ok(Vec::new());
    }
    let distance = start.abs_diff(end);
    let count = distance.div_ceil(step.unsigned_abs());
    engine.items(usize::try_from(count).unwrap_or(usize::MAX))?;
    let mut next = Some(start);
    Ok(std::iter::from_fn(|| {
        let now = next.filter(|now| if downwards { *now > end } else { *now < end })?;
        next = now.checked_add(step);
        Some(now)
    })
    .collect())
}

fn ints(numbers: Vec<i64>) -> Value {
    let numbers = numbers.into_iter().map(Value::Int).collect();
    Value::List(Items::new(numbers), Elem::Int)
}

fn seq(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let numbers = args.iter().map(int).collect::<Result<Vec<i64>, _>>()?;
    let sign = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, end, step) = match numbers[..] {
        [end] => (1, end, sign(1, end)),
        [start, end] => (start, end, sign(start, end)),
        [start, step, end] if end >= start || step <= 0 => (start, end, step),
        _ => return Ok(Value::text("")),
    };
    let numbers = sequence(engine, start, end.saturating_add(sign(start, end)), step)?;
    engine.text(numbers.len().saturating_mul(20))?;
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(Value::text(texts.join(" ")))
}
