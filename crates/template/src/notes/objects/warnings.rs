//! The warnings about an object, as added by `enrich`.
//!
//! `_warnings` is a list of maps with `reason` and `message`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{COUNT, Object, joined, text_of, unique};
use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const WARNINGS: &str = "_warnings";

/// Texts from the warnings.
const OF_WARNINGS: BuiltInNote = BuiltInNote {
    reads: &[WARNINGS],
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "hasWarnings",
        doc: "True if there are warnings about an object, if it is enriched with `events`.",
        example: ("{{ hasWarnings .children.deployment }}", "true"),
        result: NoteType::Bool,
        run: NoteBody::Eager(has_warnings),
        ..OF_WARNINGS
    },
    BuiltInNote {
        name: "warningCount",
        doc: "The number of warnings about an object, if it is enriched with `events`.",
        example: ("{{ warningCount .children.deployment }}", "2"),
        reads: &[WARNINGS],
        ..COUNT
    },
    BuiltInNote {
        name: "firstWarning",
        doc: "The message of the first warning about an object, if it is enriched with `events`.",
        example: ("{{ firstWarning .children.deployment }}", "the pump stalls"),
        run: NoteBody::Eager(|call| first_warning(call, "message")),
        ..OF_WARNINGS
    },
    BuiltInNote {
        name: "firstWarningReason",
        doc: "The reason of the first warning about an object, if it is enriched with `events`.",
        example: ("{{ firstWarningReason .children.deployment }}", "BackOff"),
        run: NoteBody::Eager(|call| first_warning(call, "reason")),
        ..OF_WARNINGS
    },
    BuiltInNote {
        name: "warningMessages",
        doc: "The messages of all warnings about an object, if it is enriched with `events`.",
        example: (
            "{{ warningMessages .children.deployment }}",
            "the pump stalls, the pump is hot",
        ),
        run: NoteBody::Eager(warning_messages),
        ..OF_WARNINGS
    },
    BuiltInNote {
        name: "warningReasons",
        doc: "The reasons of the warnings about an object, each once, if it is enriched with `events`.",
        example: ("{{ warningReasons .children.deployment }}", "BackOff"),
        run: NoteBody::Eager(warning_reasons),
        ..OF_WARNINGS
    },
];

fn warnings<'o>(
    object: &'o Object<'_, '_>,
    budget: &mut EvalBudget,
) -> Result<&'o [Node], EvalFailure> {
    object.list(WARNINGS, budget)
}

fn has_warnings<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    Ok((!warnings(&object, call.budget)?.is_empty()).into())
}

fn first_warning<'d>(call: &mut NoteCall<'_, 'd>, key: &str) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let first = warnings(&object, call.budget)?.first();
    joined(first.map(|warning| text_of(warning, key)), call.budget)
}

fn warning_messages<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let warnings = warnings(&object, call.budget)?.iter();
    joined(
        warnings.map(|warning| text_of(warning, "message")),
        call.budget,
    )
}

fn warning_reasons<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let warnings = warnings(&object, call.budget)?.iter();
    let reasons = unique(warnings.map(|warning| text_of(warning, "reason")));
    joined(reasons, call.budget)
}
