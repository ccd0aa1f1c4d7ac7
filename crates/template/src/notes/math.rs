//! Arithmetic. It is exact on integers, and a whole result is an integer.

use std::cmp::Ordering;

use super::number::Number;
use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;

/// A note with two numbers as arguments.
const TWO: BuiltInNote = BuiltInNote {
    min_args: 2,
    max_args: Some(2),
    params: &[NoteType::Number],
    result: NoteType::Number,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "add",
        doc: "The sum of two numbers.",
        example: (r#"{{ add "2" 3 }} {{ add 0.5 1 }}"#, "5 1.5"),
        run: NoteBody::Eager(add),
        ..TWO
    },
    BuiltInNote {
        name: "sub",
        doc: "The first number minus the second.",
        example: ("{{ sub .spec.replicas 5 }}", "-2"),
        run: NoteBody::Eager(sub),
        ..TWO
    },
    BuiltInNote {
        name: "mul",
        doc: "The product of two numbers.",
        example: ("{{ mul .spec.replicas 4 }}", "12"),
        run: NoteBody::Eager(mul),
        ..TWO
    },
    BuiltInNote {
        name: "div",
        doc: "The first number divided by the second, which must not be 0; decimals are kept.",
        example: ("{{ div 7 2 }} {{ div 8 2 }}", "3.5 4"),
        run: NoteBody::Eager(div),
        ..TWO
    },
    BuiltInNote {
        name: "mod",
        doc: "The remainder of the first number divided by the second, which must not be 0; both are truncated.",
        example: ("{{ mod 17 5 }}", "2"),
        result: NoteType::Int,
        run: NoteBody::Eager(modulo),
        ..TWO
    },
    BuiltInNote {
        name: "min",
        doc: "The smaller of two numbers.",
        example: ("{{ min 1 .spec.replicas }}", "1"),
        run: NoteBody::Eager(min),
        ..TWO
    },
    BuiltInNote {
        name: "max",
        doc: "The greater of two numbers.",
        example: ("{{ max 1 .spec.replicas }}", "3"),
        run: NoteBody::Eager(max),
        ..TWO
    },
    BuiltInNote {
        name: "clamp",
        doc: "The first number, limited to at least the second and at most the third.",
        example: ("{{ clamp 30 1 20 }} {{ clamp 0 1 20 }}", "20 1"),
        min_args: 3,
        max_args: Some(3),
        run: NoteBody::Eager(clamp),
        ..TWO
    },
    BuiltInNote {
        name: "abs",
        doc: "The absolute value of a number.",
        example: ("{{ abs -4 }}", "4"),
        min_args: 1,
        max_args: Some(1),
        run: NoteBody::Eager(abs),
        ..TWO
    },
];

/// Returns an argument as a number.
fn number(call: &NoteCall<'_, '_>, position: usize) -> Result<Number, EvalFailure> {
    Number::read(call.node(position)).ok_or_else(|| call.wrong(position, "a number"))
}

/// Returns the value of a result, or fails if it cannot be represented.
fn representable<'d>(call: &NoteCall<'_, 'd>, result: Number) -> Result<Value<'d>, EvalFailure> {
    if !result.float().is_finite() {
        let name = call.note.name;
        let message = format!("`{name}` gives a number that is too large");
        return Err(EvalFailure::refused(message));
    }
    Ok(result.into_node().into())
}

/// Computes integers exactly up to 128 bits, everything else as floats.
fn compute<'d>(
    call: &mut NoteCall<'_, 'd>,
    exact: fn(i128, i128) -> Option<i128>,
    rounded: fn(f64, f64) -> f64,
) -> Result<Value<'d>, EvalFailure> {
    let (a, b) = (number(call, 0)?, number(call, 1)?);
    let result = match (a, b) {
        (Number::Int(a), Number::Int(b)) => exact(a, b).map(Number::Int),
        _ => None,
    };
    representable(
        call,
        result.unwrap_or(Number::Float(rounded(a.float(), b.float()))),
    )
}

fn add<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    compute(call, i128::checked_add, |a, b| a + b)
}

fn sub<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    compute(call, i128::checked_sub, |a, b| a - b)
}

fn mul<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    compute(call, i128::checked_mul, |a, b| a * b)
}

fn div<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    if number(call, 1)?.float() == 0.0 {
        return Err(by_zero(call));
    }
    let whole = |a: i128, b: i128| (a.checked_rem(b)? == 0).then(|| a.checked_div(b))?;
    compute(call, whole, |a, b| a / b)
}

fn modulo<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let whole = |position| {
        let cut = number(call, position)?.truncated();
        cut.ok_or_else(|| EvalFailure::refused("`mod` was given a number of more than 64 bits"))
    };
    let (a, b) = (whole(0)?, whole(1)?);
    let rest = a.checked_rem(b).ok_or_else(|| by_zero(call))?;
    representable(call, Number::Int(rest))
}

fn by_zero(call: &NoteCall<'_, '_>) -> EvalFailure {
    EvalFailure::refused(format!("`{}` cannot divide by zero", call.note.name))
}

fn min<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (a, b) = (number(call, 0)?, number(call, 1)?);
    representable(call, lesser(a, b))
}

fn max<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (a, b) = (number(call, 0)?, number(call, 1)?);
    representable(call, greater(a, b))
}

fn clamp<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (value, low, high) = (number(call, 0)?, number(call, 1)?, number(call, 2)?);
    representable(call, lesser(greater(value, low), high))
}

fn abs<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let result = match number(call, 0)? {
        Number::Int(n) => Number::Int(n.abs()),
        Number::Float(n) => Number::Float(n.abs()),
    };
    representable(call, result)
}

fn lesser(a: Number, b: Number) -> Number {
    if b.order(a) == Some(Ordering::Less) {
        b
    } else {
        a
    }
}

fn greater(a: Number, b: Number) -> Number {
    if b.order(a) == Some(Ordering::Greater) {
        b
    } else {
        a
    }
}
