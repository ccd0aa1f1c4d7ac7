//! Go's functions that write texts: the print family, and escapes for HTML and for addresses.
//!
//! Source: Go's text/template, "Functions", and package fmt, "Printing".

use super::verbs::{Arg, Printer};
use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use crate::print;
use orkestra_object::value::Node;

/// A note that accepts and prints any values.
const WRITES: BuiltInNote = BuiltInNote {
    min_args: 0,
    max_args: None,
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "printf",
        doc: "A format with its verbs filled in, as Go's fmt.Sprintf does.",
        example: (r#"{{ printf "%s-%03d" "web" 7 }}"#, "web-007"),
        min_args: 1,
        params: &[NoteType::Text, NoteType::Any],
        run: NoteBody::Eager(printf),
        ..WRITES
    },
    BuiltInNote {
        name: "print",
        doc: "All arguments as text, with a space between two arguments that are both not text, as Go's fmt.Sprint does.",
        example: (r#"{{ print 1 2 "a" 3 }}"#, "1 2a3"),
        run: NoteBody::Eager(print_all),
        ..WRITES
    },
    BuiltInNote {
        name: "println",
        doc: "All arguments as text, with spaces between them and a line break at the end, as Go's fmt.Sprintln does.",
        example: (r#"{{ println "a" 1 | trimSpace }}"#, "a 1"),
        run: NoteBody::Eager(print_line),
        ..WRITES
    },
    BuiltInNote {
        name: "html",
        doc: "All arguments as one text, escaped for HTML.",
        example: (r#"{{ html "<koi & carp>" }}"#, "&lt;koi &amp; carp&gt;"),
        run: NoteBody::Eager(html),
        ..WRITES
    },
    BuiltInNote {
        name: "urlquery",
        doc: "All arguments as one text, escaped for the query of a URL.",
        example: (r#"{{ urlquery "a b/c" }}"#, "a+b%2Fc"),
        run: NoteBody::Eager(url_query),
        ..WRITES
    },
];

/// A value that a chart's template formats: the node, and true if its integers are of Go's type `int`.
pub(crate) type GoArg<'a> = (&'a Node, bool);

/// Formats arguments as Go's own `Sprintf` (with a format), `Sprint` or `Sprintln`.
pub(crate) fn go_text(
    format: Option<&str>,
    args: &[GoArg<'_>],
    line: bool,
    budget: &mut EvalBudget,
) -> Result<String, EvalFailure> {
    let args = args.iter().map(|(node, constant)| Arg {
        node,
        constant: *constant,
    });
    let args: Vec<Arg<'_>> = args.collect();
    let printer = Printer::new(&args, budget).like_go();
    match format {
        Some(format) => printer.printf(format),
        None => printer.print(line),
    }
}

/// Returns the arguments after the first `skipped`, in the form that verbs take.
fn args<'a>(values: &'a [Value<'_>], skipped: usize) -> Vec<Arg<'a>> {
    let arg = |value: &'a Value<'_>| Arg {
        node: value.node(),
        constant: !matches!(value, Value::Data(_)),
    };
    values.iter().skip(skipped).map(arg).collect()
}

fn printf<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let format = call.take(0);
    let args = args(call.args, 1);
    let format = format.node().as_str().unwrap_or_default();
    let text = Printer::new(&args, call.budget).printf(format)?;
    Ok(Node::from(text).into())
}

fn print_all<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let args = args(call.args, 0);
    let text = Printer::new(&args, call.budget).print(false)?;
    Ok(Node::from(text).into())
}

fn print_line<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let args = args(call.args, 0);
    let text = Printer::new(&args, call.budget).print(true)?;
    Ok(Node::from(text).into())
}

/// Joins the arguments into the text to escape. A single missing value is empty.
fn plain(call: &mut NoteCall<'_, '_>) -> Result<String, EvalFailure> {
    if let [only] = &*call.args {
        let mut out = String::new();
        print::print(&mut out, only.node(), call.budget)?;
        return Ok(out);
    }
    let args = args(call.args, 0);
    Printer::new(&args, call.budget).print(false)
}

/// Replaces each character for which `escape` has another form.
fn escaped<'d>(
    text: &str,
    budget: &mut EvalBudget,
    escape: impl Fn(char, &mut String) -> bool,
) -> Result<Value<'d>, EvalFailure> {
    budget.step(text.len() as u64 / 4)?;
    let mut out = String::new();
    let mut escape_of = String::new();
    for c in text.chars() {
        escape_of.clear();
        if !escape(c, &mut escape_of) {
            escape_of.push(c);
        }
        print::append(&mut out, &escape_of, budget)?;
    }
    Ok(Node::from(out).into())
}

/// Source: Go's text/template, `HTMLEscape`.
fn html<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let text = plain(call)?;
    escaped(&text, call.budget, |c, out| {
        out.push_str(match c {
            '\0' => "\u{fffd}",
            '"' => "&#34;",
            '\'' => "&#39;",
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            _ => return false,
        });
        true
    })
}

/// Source: Go's net/url, `QueryEscape`.
fn url_query<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let text = plain(call)?;
    escaped(&text, call.budget, |c, out| {
        if c.is_ascii_alphanumeric() || "-_.~".contains(c) {
            return false;
        }
        if c == ' ' {
            out.push('+');
            return true;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
        true
    })
}
