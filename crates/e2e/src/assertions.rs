//! Assertions on a text.

use regex::{Regex, RegexBuilder};

use orkestra_language::api::e2e::Assertions;
use orkestra_language::api::scalar::{Scalar, Text, Texts};
use orkestra_object::value::MASK;

/// The maximum memory of a compiled regular expression, in bytes.
const REGEX_BYTES: usize = 1 << 20;
/// The maximum length of an output in a diff, in bytes.
const SHOWN_BYTES: usize = 2000;

/// Returns the problems in the operands of assertions, each with its field.
pub fn wrong_assertions(assertions: &Assertions) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if let Some(pattern) = &assertions.regex
        && let Err(why) = regex(pattern)
    {
        wrong.push(("regex", why));
    }
    for (name, operand) in numbers(assertions) {
        if let Some(operand) = operand
            && number(&operand.to_string()).is_none()
        {
            wrong.push((name, format!("`{operand}` is not a number")));
        }
    }
    for (name, operand) in [
        ("between", &assertions.between),
        ("notBetween", &assertions.not_between),
    ] {
        let Some(operand) = operand else { continue };
        match range(operand) {
            Some((from, to)) if from <= to => {}
            Some((from, to)) => {
                wrong.push((
                    name,
                    format!("the range ends at {to}, before it begins at {from}"),
                ));
            }
            None => {
                let message = "expected two numbers: `1,5`, or a list of two";
                wrong.push((name, message.to_owned()));
            }
        }
    }
    wrong
}

/// Adds a line for each failed assertion, then the output, or a mask for it if `is_hidden`.
pub(crate) fn check(
    assertions: &Assertions,
    output: &str,
    is_hidden: bool,
    diff: &mut Vec<String>,
) {
    let output = output.trim();
    let failed = failed(assertions, output);
    if failed.is_empty() {
        return;
    }
    diff.extend(failed.into_iter().map(|what| format!("- {what}")));
    diff.extend(diff_form(output, is_hidden));
}

/// Returns an output in the form that a diff shows.
pub(crate) fn diff_form(output: &str, is_hidden: bool) -> Vec<String> {
    if output.is_empty() {
        return vec!["+ no output".to_owned()];
    }
    if is_hidden {
        return vec![format!("+ {MASK}")];
    }
    let end = (0..=SHOWN_BYTES.min(output.len()))
        .rev()
        .find(|at| output.is_char_boundary(*at))
        .unwrap_or_default();
    let (head, rest) = output.split_at(end);
    let mut lines: Vec<String> = head.lines().map(|line| format!("+ {line}")).collect();
    if !rest.is_empty() {
        lines.push(format!("  and {} bytes more", rest.len()));
    }
    lines
}

/// Returns the failed assertions, in words.
fn failed(assertions: &Assertions, output: &str) -> Vec<String> {
    let mut failed = Vec::new();
    let mut add = |holds: bool, what: String| {
        if !holds {
            failed.push(what);
        }
    };
    let is = |text: &str| output == text.trim();
    if let Some(text) = &assertions.equals {
        let text = text.to_string();
        add(is(&text), text.trim().to_owned());
    }
    if let Some(text) = &assertions.not_equals {
        let text = text.to_string();
        add(!is(&text), format!("anything but {}", text.trim()));
    }
    if let Some(texts) = &assertions.one_of {
        let texts = items(texts);
        add(
            texts.iter().any(|text| is(text)),
            format!("one of {}", texts.join(", ")),
        );
    }
    if let Some(texts) = &assertions.not_one_of {
        let texts = items(texts);
        add(
            !texts.iter().any(|text| is(text)),
            format!("none of {}", texts.join(", ")),
        );
    }
    for text in assertions
        .output_contains
        .iter()
        .flat_map(|texts| texts.texts())
    {
        add(output.contains(text), format!("contains `{text}`"));
    }
    for text in assertions
        .output_not_contains
        .iter()
        .flat_map(|texts| texts.texts())
    {
        add(!output.contains(text), format!("does not contain `{text}`"));
    }
    if let Some(pattern) = &assertions.regex {
        let matches = regex(pattern).is_ok_and(|regex| regex.is_match(output));
        add(matches, format!("matches `{pattern}`"));
    }
    if let Some(wanted) = assertions.exists {
        let what = if wanted { "some output" } else { "no output" };
        add(output.is_empty() != wanted, what.to_owned());
    }
    if let Some(wanted) = assertions.not_exists {
        let what = if wanted { "no output" } else { "some output" };
        add(output.is_empty() == wanted, what.to_owned());
    }
    failed.extend(failed_numbers(assertions, output));
    failed
}

/// Returns the failed numeric assertions. They all fail for an output that is not a number.
fn failed_numbers(assertions: &Assertions, output: &str) -> Vec<String> {
    let seen = number(output);
    let mut failed = Vec::new();
    for (name, operand) in numbers(assertions) {
        let Some(operand) = operand else { continue };
        let wanted = number(&operand.to_string());
        let holds = seen.zip(wanted).is_some_and(|(seen, wanted)| match name {
            "greaterThan" => seen > wanted,
            "greaterThanOrEqual" => seen >= wanted,
            "lessThan" => seen < wanted,
            _ => seen <= wanted,
        });
        if !holds {
            let sign = match name {
                "greaterThan" => ">",
                "greaterThanOrEqual" => ">=",
                "lessThan" => "<",
                _ => "<=",
            };
            failed.push(format!("a number {sign} {operand}"));
        }
    }
    for (operand, is_inside) in [
        (&assertions.between, true),
        (&assertions.not_between, false),
    ] {
        let Some((from, to)) = operand.as_ref().and_then(range) else {
            continue;
        };
        if seen.is_none_or(|seen| (from..=to).contains(&seen) != is_inside) {
            let place = if is_inside { "from" } else { "outside of" };
            failed.push(format!("a number {place} {from} to {to}"));
        }
    }
    failed
}

/// Returns the assertions that compare numbers.
fn numbers(assertions: &Assertions) -> [(&'static str, Option<&Scalar>); 4] {
    [
        ("greaterThan", assertions.greater_than.as_ref()),
        (
            "greaterThanOrEqual",
            assertions.greater_than_or_equal.as_ref(),
        ),
        ("lessThan", assertions.less_than.as_ref()),
        ("lessThanOrEqual", assertions.less_than_or_equal.as_ref()),
    ]
}

/// Parses a finite number.
fn number(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

fn range(texts: &Texts) -> Option<(f64, f64)> {
    match &items(texts)[..] {
        [from, to] => number(from).zip(number(to)),
        _ => None,
    }
}

/// Returns the texts of a list, or those between commas.
fn items(texts: &Texts) -> Vec<String> {
    match texts {
        Texts::List(list) => list.iter().map(|text| text.trim().to_owned()).collect(),
        Texts::Template(text) => text.split(',').map(|text| text.trim().to_owned()).collect(),
    }
}

fn regex(pattern: &Text) -> Result<Regex, String> {
    let regex = RegexBuilder::new(pattern).size_limit(REGEX_BYTES).build();
    regex.map_err(|why| match why {
        regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
        _ => format!("`{pattern}` is not a regular expression"),
    })
}
