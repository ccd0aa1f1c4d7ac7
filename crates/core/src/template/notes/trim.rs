//! Prefixes, suffixes and contents of texts.

use super::{Call, Note, PLAIN, Run, Type, Value};
use crate::template::error::Failure;
use crate::value::Node;

/// A note with two texts as arguments.
const TWO: Note = Note {
    min_args: 2,
    max_args: Some(2),
    params: &[Type::Text],
    result: Type::Text,
    ..PLAIN
};

pub(super) static NOTES: &[Note] = &[
    Note {
        name: "trimSpace",
        doc: "The text without white space at its ends.",
        example: (r#"{{ trimSpace " a b " }}"#, "a b"),
        params: &[Type::Text],
        result: Type::Text,
        run: Run::Eager(trim_space),
        ..PLAIN
    },
    Note {
        name: "trim",
        doc: "The text without the characters of the second one at its ends; without white space if there is no second one.",
        example: (r#"{{ trim "--x-" "-" }}"#, "x"),
        min_args: 1,
        run: Run::Eager(trim),
        ..TWO
    },
    Note {
        name: "trimPrefix",
        doc: "The text without the second one at its start.",
        example: (r#"{{ trimPrefix "v1.2" "v" }}"#, "1.2"),
        run: Run::Eager(trim_prefix),
        ..TWO
    },
    Note {
        name: "trimSuffix",
        doc: "The text without the second one at its end.",
        example: (r#"{{ trimSuffix "a.git" ".git" }}"#, "a"),
        run: Run::Eager(trim_suffix),
        ..TWO
    },
    Note {
        name: "hasPrefix",
        doc: "True if the text starts with the second one.",
        example: (r#"{{ hasPrefix .spec.region "eu" }}"#, "true"),
        result: Type::Bool,
        run: Run::Eager(has_prefix),
        ..TWO
    },
    Note {
        name: "hasSuffix",
        doc: "True if the text ends with the second one.",
        example: (r#"{{ hasSuffix .spec.region "east" }}"#, "false"),
        result: Type::Bool,
        run: Run::Eager(has_suffix),
        ..TWO
    },
    Note {
        name: "contains",
        doc: "True if the first text contains the second.",
        example: (r#"{{ contains "us-east" "east" }}"#, "true"),
        result: Type::Bool,
        run: Run::Eager(contains),
        ..TWO
    },
];

/// Cuts the first argument with `cut`, which receives all arguments; returns it unchanged if nothing is cut off.
fn cut<'d>(
    call: &mut Call<'_, 'd>,
    cut: impl for<'t> Fn(&'t str, &str) -> &'t str,
) -> Result<Value<'d>, Failure> {
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

fn trim_space<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    cut(call, |text, _| text.trim())
}

fn trim<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
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

fn trim_prefix<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    cut(call, |text, affix| text.strip_prefix(affix).unwrap_or(text))
}

fn trim_suffix<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    cut(call, |text, affix| text.strip_suffix(affix).unwrap_or(text))
}

fn has_prefix<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    Ok(call.text(0).starts_with(call.text(1)).into())
}

fn has_suffix<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    Ok(call.text(0).ends_with(call.text(1)).into())
}

fn contains<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    Ok(call.text(0).contains(call.text(1)).into())
}
