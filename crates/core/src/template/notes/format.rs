//! `printf`.

use super::verbs::{Arg, Printer};
use super::{Call, Note, PLAIN, Run, Type, Value};
use crate::template::error::Failure;
use crate::value::Node;

pub(super) static NOTES: &[Note] = &[Note {
    name: "printf",
    doc: "The text of a format with its verbs filled in, as Go's fmt.Sprintf does.",
    example: (r#"{{ printf "%s-%03d" "web" 7 }}"#, "web-007"),
    min_args: 1,
    max_args: None,
    params: &[Type::Text, Type::Any],
    result: Type::Text,
    run: Run::Eager(printf),
    ..PLAIN
}];

fn printf<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let format = call.take(0);
    let args: Vec<Arg<'_>> = call
        .args
        .iter()
        .skip(1)
        .map(|value| Arg {
            node: value.node(),
            constant: !matches!(value, Value::Data(_)),
        })
        .collect();
    let format = format.node().as_str().unwrap_or_default();
    let text = Printer::new(&args, call.budget).printf(format)?;
    Ok(Node::from(text).into())
}
