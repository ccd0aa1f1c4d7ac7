//! Prefixes, suffixes and contents of texts.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

/// A note with two texts as arguments.
const TWO: BuiltInNote = BuiltInNote {
    min_args: 2,
    max_args: Some(2),
    params: &[NoteType::Text],
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "trimSpace",
        doc: "The text without white space at its ends.",
        example: (r#"{{ trimSpace " a b " }}"#, "a b"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(trim_space),
        ..PLAIN
    },
    BuiltInNote {
        name: "trim",
        doc: "The text without the characters of the second one at its ends; without white space if there is no second one.",
        example: (r#"{{ trim "--x-" "-" }}"#, "x"),
        min_args: 1,
        run: NoteBody::Eager(trim),
        ..TWO
    },
    BuiltInNote {
        name: "trimPrefix",
        doc: "The text without the second one at its start.",
        example: (r#"{{ trimPrefix "v1.2" "v" }}"#, "1.2"),
        run: NoteBody::Eager(trim_prefix),
        ..TWO
    },
    BuiltInNote {
        name: "trimSuffix",
        doc: "The text without the second one at its end.",
        example: (r#"{{ trimSuffix "a.git" ".git" }}"#, "a"),
        run: NoteBody::Eager(trim_suffix),
        ..TWO
    },
    BuiltInNote {
        name: "hasPrefix",
        doc: "True if the text starts with the second one.",
        example: (r#"{{ hasPrefix .spec.region "eu" }}"#, "true"),
        result: NoteType::Bool,
        run: NoteBody::Eager(has_prefix),
        ..TWO
    },
    BuiltInNote {
        name: "hasSuffix",
        doc: "True if the text ends with the second one.",
        example: (r#"{{ hasSuffix .spec.region "east" }}"#, "false"),
        result: NoteType::Bool,
        run: NoteBody::Eager(has_suffix),
        ..TWO
    },
    BuiltInNote {
        name: "contains",
        doc: "True if the first text contains the second.",
        example: (r#"{{ contains "us-east" "east" }}"#, "true"),
        result: NoteType::Bool,
        run: NoteBody::Eager(contains),
        ..TWO
    },
];

/// Cuts the first argument with `cut`, which receives all arguments; returns it unchanged if nothing is cut off.
fn cut<'d>(
    call: &mut NoteCall<'_, 'd>,
    cut: impl for<'t> Fn(&'t str, &str) -> &'t str,
) -> Result<Value<'d>, EvalFailure> {
    let left = cut(call.text(0), call.text(1)).len();
    if left == call.text(0).len() {
        return Ok(match call.node(0) {
            Node::Null => Node::from("").into(),
            _ => call.take(0),
        });
    }
    call.budget.text(left)?;
    Ok(Node::from(cut(call.text(0), call.text(1))).into())
}

fn trim_space<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    cut(call, |text, _| text.trim())
}

fn trim<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    if call.len() == 1 {
        return trim_space(call);
    }
    // Each character of the text is searched for in the second argument.
    let steps = call
        .text(0)
        .len()
        .saturating_mul(1 + call.text(1).len() / 16);
    call.budget.step(steps as u64 / 16)?;
    cut(call, |text, set| text.trim_matches(|c| set.contains(c)))
}

fn trim_prefix<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    cut(call, |text, affix| text.strip_prefix(affix).unwrap_or(text))
}

fn trim_suffix<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    cut(call, |text, affix| text.strip_suffix(affix).unwrap_or(text))
}

fn has_prefix<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(call.text(0).starts_with(call.text(1)).into())
}

fn has_suffix<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(call.text(0).ends_with(call.text(1)).into())
}

fn contains<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(call.text(0).contains(call.text(1)).into())
}
