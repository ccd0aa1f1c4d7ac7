//! Finds the comments of a text.

use std::collections::HashMap;
use std::ops::Range;

/// Returns the ranges of the comments in a text, from `#` to the end of the line, in order.
///
/// Each line is parsed separately. A line of a multi-line string that looks like a comment counts as one. This does no harm
/// because the copied text contains it too.
pub(crate) fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(at) = comment(line) {
            found.push(start + at..start + line.trim_end().len());
        }
        start += line.len();
    }
    found
}

/// Returns the offset of the comment in a line.
fn comment(line: &str) -> Option<usize> {
    let (mut quote, mut closed) = (None, false);
    let mut is_escaped = false;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if is_escaped || c != open => {
                is_escaped = open == '"' && c == '\\' && !is_escaped;
            }
            Some(_) => (quote, closed) = (None, true),
            // Two quotes in a row are an escaped quote.
            None if closed && c == '\'' && before == '\'' => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return Some(at),
            None if ['"', '\''].contains(&c) && is_start(before) => quote = Some(c),
            None => closed = false,
        }
        before = c;
    }
    None
}

/// True if a quote after this character begins a string.
fn is_start(before: char) -> bool {
    before.is_whitespace() || ['[', '{', ',', ':'].contains(&before)
}

/// True if the other text contains every comment of a text.
pub(crate) fn are_kept(text: &str, other: &str) -> bool {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for range in comments(other) {
        *counts.entry(&other[range]).or_default() += 1;
    }
    comments(text).into_iter().all(|range| {
        let count = counts.get_mut(&text[range]).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_distinguished_from_texts() {
        let text = "# one\na: 1 # two\nb: \"x # no\" # three\nc: x#no\nd: 'it''s # no'\ne: it's # four\r\n";
        let found: Vec<&str> = comments(text).into_iter().map(|at| &text[at]).collect();
        assert_eq!(found, ["# one", "# two", "# three", "# four"]);
        assert!(are_kept("a: 1 # x\n", "# x\nb: 1\n"));
        assert!(!are_kept("# x\n# x\n", "# x\n"));
    }
}
