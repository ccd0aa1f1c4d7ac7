//! Resource quantities: `250m` of a CPU, `2Gi` of memory.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::{Node, Quantity, QuantityError};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "parseQuantity",
        doc: "The number that a quantity represents.",
        example: (
            r#"{{ parseQuantity "250m" }} {{ parseQuantity "2Gi" }}"#,
            "0.25 2147483648",
        ),
        result: NoteType::Number,
        run: NoteBody::Eager(parse),
        ..PLAIN
    },
    BuiltInNote {
        name: "formatQuantity",
        doc: "A number as a quantity in Kubernetes' canonical form, with a binary suffix if that is shorter.",
        example: (
            "{{ formatQuantity 0.25 }} {{ formatQuantity 2147483648 }}",
            "250m 2Gi",
        ),
        params: &[NoteType::Number],
        result: NoteType::Text,
        run: NoteBody::Eager(format),
        ..PLAIN
    },
    BuiltInNote {
        name: "sumQuantity",
        doc: "The sum of two quantities in Kubernetes' canonical form, with suffixes like those of the first.",
        example: (
            r#"{{ sumQuantity "250m" "750m" }} {{ sumQuantity "1Gi" "512Mi" }}"#,
            "1 1536Mi",
        ),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::Text,
        run: NoteBody::Eager(|call| combine(call, Quantity::plus)),
        ..PLAIN
    },
    BuiltInNote {
        name: "subtractQuantity",
        doc: "The first quantity minus the second, in Kubernetes' canonical form, with suffixes like those of the first.",
        example: (r#"{{ subtractQuantity "2" "500m" }}"#, "1500m"),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::Text,
        run: NoteBody::Eager(|call| combine(call, Quantity::minus)),
        ..PLAIN
    },
];

/// More than the length of any quantity as text.
const TEXT: usize = 64;

/// Parsing and formatting a quantity cost as much as several expressions.
const STEPS_A_QUANTITY: u64 = 16;

fn parse<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let quantity = read(call, 0)?;
    let number = quantity
        .as_i64()
        .map_or_else(|| Node::Float(quantity.as_f64()), Node::Int);
    Ok(number.into())
}

fn format<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.step(STEPS_A_QUANTITY)?;
    call.budget.text(TEXT)?;
    let quantity = match call.node(0) {
        Node::Bool(b) => {
            Quantity::from_float(f64::from(u8::from(*b))).map_err(|e| refused(call, e))?
        }
        _ => read(call, 0)?,
    };
    Ok(Node::from(quantity.shortest().to_string()).into())
}

fn combine<'d>(
    call: &mut NoteCall<'_, 'd>,
    combine: fn(Quantity, Quantity) -> Result<Quantity, QuantityError>,
) -> Result<Value<'d>, EvalFailure> {
    call.budget.step(STEPS_A_QUANTITY)?;
    call.budget.text(TEXT)?;
    let (a, b) = (read(call, 0)?, read(call, 1)?);
    let result = combine(a, b).map_err(|error| refused(call, error))?;
    Ok(Node::from(result.to_string()).into())
}

/// Reads an argument as a quantity: text, or a number of units.
fn read(call: &mut NoteCall<'_, '_>, position: usize) -> Result<Quantity, EvalFailure> {
    call.budget.step(STEPS_A_QUANTITY)?;
    let quantity = match call.node(position) {
        Node::Null => "0".parse(),
        Node::Str(text) => text.trim().parse(),
        Node::Float(number) => Quantity::from_float(*number),
        node @ (Node::Int(_) | Node::UInt(_)) => node.to_text().parse(),
        Node::Bool(_) | Node::List(_) | Node::Map(_) => {
            return Err(call.wrong(position, "a quantity or a number"));
        }
    };
    quantity.map_err(|error| refused(call, error))
}

/// The text is not quoted because it may be secret.
fn refused(call: &NoteCall<'_, '_>, error: QuantityError) -> EvalFailure {
    EvalFailure::refused(format!("`{}`: {error}", call.note.name))
}

#[cfg(test)]
mod tests {
    use crate::tests::{node, text};

    #[test]
    fn numbers_are_quantities_and_other_text_is_refused() {
        let root = node!({"cpu": 2, "half": 0.5, "big": u64::MAX, "list": [1], "inf": "inf"});
        let cases = [
            ("{{ sumQuantity .cpu .half }}", "2500m"),
            ("{{ sumQuantity .nope \"1Gi\" }}", "1Gi"),
            ("{{ subtractQuantity \"1Gi\" \"2Gi\" }}", "-1Gi"),
            ("{{ parseQuantity .cpu }} {{ parseQuantity .nope }}", "2 0"),
            ("{{ parseQuantity .big }}", "18446744073709552000"),
            (
                "{{ formatQuantity \"0.1\" }} {{ formatQuantity true }}",
                "100m 1",
            ),
            ("{{ formatQuantity (parseQuantity \"1500Mi\") }}", "1500Mi"),
        ];
        for (source, expected) in cases {
            assert_eq!(text(source, &root).as_deref(), Ok(expected), "{source}");
        }
        for source in [
            "{{ parseQuantity \"1x\" }}",
            "{{ parseQuantity .list }}",
            "{{ sumQuantity \"9e27\" \"9e27\" }}",
            "{{ formatQuantity .inf }}",
        ] {
            assert!(text(source, &root).is_err(), "{source}");
        }
    }
}
