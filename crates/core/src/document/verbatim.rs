//! Which parts of a text stand in the file letter by letter: so that a mistake inside a text of several lines has a place.

use super::tree::{Span, Verbatim};

/// The parts of a text that stand in the document letter by letter, a line each, up to the first that does not.
///
/// White space at both ends of a line is skipped: it is indentation, or folded.
pub(super) fn verbatim(document: &str, span: Span, value: &str) -> Vec<Verbatim> {
    let mut parts = Vec::new();
    let source = usize::try_from(span.offset)
        .ok()
        .and_then(|at| document.get(at..))
        .unwrap_or_default();
    let quote = source.chars().next();
    let (mut place, mut done) = (span, 0);
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let rest = &value[done..];
        let indent = |text: &str| text.len() - text.trim_start().len();
        let (skipped, left) = if number > 0 {
            (indent(line), indent(rest))
        } else {
            // A block begins at its first line that is not empty.
            let empty = rest.len() - rest.trim_start_matches('\n').len();
            (usize::from(line.starts_with(['"', '\''])), empty)
        };
        done += left;
        let Some(found) = same_in_line((place, line), skipped, (value, done), quote) else {
            break;
        };
        parts.extend(found.parts);
        done = found.done;
        if value[done..].trim().is_empty() || !line[found.at..].trim().is_empty() {
            break;
        }
        let Some(next) = below(place, line) else {
            break;
        };
        place = next;
    }
    parts
}

/// How far a line says what the text says.
struct Same {
    parts: Vec<Verbatim>,
    /// Where the line goes on otherwise.
    at: usize,
    /// Where the text does.
    done: usize,
}

/// The parts of a line, from byte `at` on, that the text has from `done` on. A character that is written as two, such as
/// `\"`, is a part of its own.
fn same_in_line(
    (place, line): (Span, &str),
    mut at: usize,
    (value, mut done): (&str, usize),
    quote: Option<char>,
) -> Option<Same> {
    let mut parts = Vec::new();
    loop {
        let (text, rest) = (&line[at..], &value[done..]);
        let exact = same(text, rest, quote);
        let is_escaped = escaped(&text[exact..], &rest[exact..], quote);
        let same = if is_escaped {
            exact
        } else {
            text[..exact].trim_end().len()
        };
        if same > 0 {
            parts.push(part(place, &line[..at], done, same)?);
        }
        (at, done) = (at + same, done + same);
        if !is_escaped {
            return Some(Same { parts, at, done });
        }
        parts.push(part(place, &line[..at], done, 1)?);
        (at, done) = (at + 2, done + 1);
    }
}

/// Whether `text` begins with two characters that stand for the one that `value` begins with.
fn escaped(text: &str, value: &str, quote: Option<char>) -> bool {
    let pairs: &[(&str, char)] = match quote {
        Some('"') => &[("\\\"", '"'), ("\\\\", '\\')],
        Some('\'') => &[("''", '\'')],
        _ => &[],
    };
    let is_it = |(pair, one): &(&str, char)| text.starts_with(pair) && value.starts_with(*one);
    pairs.iter().any(is_it)
}

/// Bytes at the start of both that are the same, up to the end of the line or to what begins an escape.
fn same(line: &str, value: &str, quote: Option<char>) -> usize {
    let escape = match quote {
        Some('"') => '\\',
        Some('\'') => '\'',
        _ => '\n',
    };
    let both = line.chars().zip(value.chars());
    both.take_while(|(a, b)| a == b && !['\n', '\r', escape].contains(a))
        .map(|(a, _)| a.len_utf8())
        .sum()
}

/// The part of a text from byte `start` that stands behind `skipped` at `place`.
fn part(place: Span, skipped: &str, start: usize, len: usize) -> Option<Verbatim> {
    let small = |n: usize| u32::try_from(n).ok();
    Some(Verbatim {
        start: small(start)?,
        span: Span {
            line: place.line,
            column: place.column.checked_add(small(skipped.chars().count())?)?,
            offset: place.offset.checked_add(small(skipped.len())?)?,
            len: small(len)?,
        },
    })
}

/// The start of the line below `line`, which starts at `place`.
fn below(place: Span, line: &str) -> Option<Span> {
    Some(Span {
        line: place.line.checked_add(1)?,
        column: 1,
        offset: place.offset.checked_add(u32::try_from(line.len()).ok()?)?,
        len: 0,
    })
}

#[cfg(test)]
mod tests {
    use crate::{diagnostics::FieldPath, document::parse_stream};

    /// What stands in `source` at byte `offset` of the text of its key `a`.
    fn stands(source: &str, word: &str) -> Option<(u32, u32)> {
        let stream = parse_stream("f", source);
        let tree = &stream.sources.last()?.tree;
        let text = tree.get("a").unwrap().as_str().unwrap().to_owned();
        let offset = text.find(word).unwrap();
        let span = tree.locate_in_text(&FieldPath::root().field("a"), offset)?;
        let at = usize::try_from(span.offset).unwrap();
        source[at..]
            .starts_with(word)
            .then_some((span.line, span.column))
    }

    #[test]
    fn words_are_found_in_texts_of_several_lines() {
        for (source, place) in [
            ("a: |\n  one\n  \u{e9} word\n", (3, 5)),
            ("a: |\r\n  one\r\n  two word\r\n", (3, 7)),
            ("a: |-\n\n    one\n\n      in word\n", (5, 10)),
            ("# x\na: >\n  one\n  two\n\n  word\n", (6, 3)),
            ("x: 1\n---\na: one\n  two\n  word\n", (5, 3)),
            ("a: \"one\n  two   \n  word\"\n", (3, 3)),
            ("a: 'one word'\n", (1, 9)),
            ("x: 1\na: &anchor one word", (2, 16)),
            (r#"a: "{{ eq .x \"y\" }} \\ word""#, (1, 26)),
            ("a: 'it''s a ''word'''", (1, 15)),
        ] {
            assert_eq!(stands(source, "word"), Some(place), "{source:?}");
        }
        assert_eq!(
            stands("a: \"\\tone word\"\n", "word"),
            None,
            "escapes are not followed"
        );
    }
}
