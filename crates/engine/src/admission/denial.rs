//! Messages about Katalogs, Komposers and Motifs that are written.

use serde_json::Value;

use super::outline::outline;
use orkestra_language::diagnostics::{Diagnostic, Diagnostics, Severity};

/// The most problems that a denial names.
const MOST_NAMED: usize = 5;

/// The most bytes of a warning: the API server drops longer ones in part.
///
/// Source: Kubernetes, "Dynamic Admission Control", warnings of at most 120 characters are advised, and 4096 in total kept.
pub const WARNING_BYTES: usize = 256;

/// The end of a denial: the API server sends objects without the file that they came from.
const LINES: &str = "run `ork validate` on the file to see these errors with their lines";

/// Returns the message that refuses `object`: the first five errors with their paths, as `ork validate` prints them, each with
/// the keys that lead to it in a file; and the number of others. `None` without an error.
pub fn denial(problems: &Diagnostics, object: &Value) -> Option<String> {
    let errors = || {
        let all = problems.iter();
        all.filter(|problem| problem.severity == Severity::Error)
    };
    let count = errors().count();
    if count == 0 {
        return None;
    }
    let mut lines = Vec::new();
    for error in errors().take(MOST_NAMED) {
        lines.push(error.to_string());
        // A problem with a file or a line is about another document, such as a Motif.
        if error.file.is_none() && error.line.is_none() {
            lines.extend(outline(object, &error.path));
        }
    }
    match count.saturating_sub(MOST_NAMED) {
        0 => {}
        1 => lines.push("and 1 more error".to_owned()),
        more => lines.push(format!("and {more} more errors")),
    }
    lines.push(LINES.to_owned());
    Some(lines.join("\n"))
}

/// Returns the warnings among the problems, each on one line of at most [`WARNING_BYTES`].
pub fn warnings<'a>(problems: impl IntoIterator<Item = &'a Diagnostic>) -> Vec<String> {
    let warnings = problems.into_iter();
    let warnings = warnings.filter(|problem| problem.severity == Severity::Warning);
    fitting(&warnings.map(ToString::to_string).collect::<Vec<_>>())
}

/// Returns the texts without line breaks, each at most [`WARNING_BYTES`].
pub(crate) fn fitting(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| shortened(text)).collect()
}

/// Returns the text without line breaks, cut at a character if it is longer than [`WARNING_BYTES`].
pub(crate) fn shortened(text: &str) -> String {
    const ELLIPSIS: char = '…';
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(clean).collect();
    if text.len() <= WARNING_BYTES {
        return text;
    }
    let room = WARNING_BYTES - ELLIPSIS.len_utf8();
    let starts = text.char_indices().map(|(start, _)| start);
    let end = starts.take_while(|start| *start <= room).last();
    let mut text = text;
    text.truncate(end.unwrap_or(0));
    text.push(ELLIPSIS);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use orkestra_language::diagnostics::{Code, FieldPath};

    #[test]
    fn a_denial_names_five_errors_and_counts_the_others() {
        let error = |item: usize| {
            let path = FieldPath::root().field("spec").index(item);
            Diagnostic::error(Code::Empty, path, "the value is empty")
        };
        let warning = Diagnostic::warning(Code::NoEffect, FieldPath::root(), "x".repeat(400));
        let problems = |count| {
            let errors = (0..count).map(error);
            Diagnostics(std::iter::once(warning.clone()).chain(errors).collect())
        };
        let object = json!({ "spec": [{ "name": "first" }] });
        assert_eq!(denial(&problems(0), &object), None);
        assert_eq!(
            denial(&problems(1), &object)
                .unwrap()
                .lines()
                .collect::<Vec<_>>(),
            [
                "error[ORK0022]: spec[0]: the value is empty",
                "| spec:",
                "| - name: first",
                "|   ^^^^^^^^^^^",
                LINES,
            ]
        );
        // A problem in another document is reported with the position in that document.
        let mut located = error(0);
        (located.file, located.line, located.column) =
            (Some("Motif m".to_owned()), Some(2), Some(3));
        assert_eq!(
            denial(&Diagnostics(vec![located]), &object).unwrap(),
            format!("Motif m:2:3: error[ORK0022]: spec[0]: the value is empty\n{LINES}")
        );
        let message = denial(&problems(7), &json!({})).unwrap();
        assert_eq!(message.lines().count(), 7);
        assert!(message.contains("\nand 2 more errors\n"));
        let message = denial(&problems(6), &json!({})).unwrap();
        assert!(message.contains("\nand 1 more error\n"));
        let warned = warnings(&problems(7));
        assert!(warned.len() == 1 && warned[0].len() <= WARNING_BYTES);
    }

    #[test]
    fn warnings_are_cut_between_characters() {
        let long = shortened(&"ü\n".repeat(200));
        assert!(long.len() <= WARNING_BYTES && long.ends_with('…') && !long.contains('\n'));
    }
}
