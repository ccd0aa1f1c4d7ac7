//! Finds the parts of a text that appear unchanged in the file, so that an error inside a multi-line text has a position.

use super::line_break;
use crate::tree::{FileSpan, Verbatim};

/// The maximum number of parts of one text. A text of escapes has as many parts as characters.
const MOST_PARTS: usize = 1000;

/// Returns the parts of a text that appear unchanged in the document, one per line, up to the first that does not.
///
/// White space at both ends of a line is skipped: it is indentation, or folded. The walk reads no more of the document than
/// the text takes: in flow style, one line holds thousands of texts.
pub(crate) fn verbatim(document: &str, span: FileSpan, value: &str) -> Vec<Verbatim> {
    let source = usize::try_from(span.offset).ok();
    let source = source.and_then(|at| document.get(at..)).unwrap_or_default();
    let mut walk = VerbatimWalk {
        source,
        place: span,
        value,
        done: 0,
        quote: source.chars().next(),
        parts: Vec::new(),
    };
    // A position beyond the range of a span ends the walk.
    let _ = walk.lines();
    walk.parts
}

/// A walk over a document and a text side by side.
struct VerbatimWalk<'a> {
    /// The rest of the document.
    source: &'a str,
    /// Its position.
    place: FileSpan,
    value: &'a str,
    /// The number of bytes of the text found so far.
    done: usize,
    /// The first character of the text, which may be a quote.
    quote: Option<char>,
    parts: Vec<Verbatim>,
}

impl VerbatimWalk<'_> {
    fn lines(&mut self) -> Option<()> {
        if self.source.starts_with(['"', '\'']) {
            self.skip(1)?;
        }
        // A block begins at its first non-empty line.
        let empty = self.value.trim_start_matches('\n');
        self.done = self.value.len() - empty.len();
        loop {
            self.line()?;
            if self.rest().trim().is_empty() {
                return None;
            }
            self.skip(blank(self.source))?;
            self.below()?;
            self.skip(blank(self.source))?;
            self.done += self.rest().len() - self.rest().trim_start().len();
        }
    }

    /// Finds the parts of a line that come next in the text. A character that is written as two, such as `\"`, is a separate
    /// part.
    fn line(&mut self) -> Option<()> {
        loop {
            let (text, rest) = (self.source, self.rest());
            let exact = same(text, rest, self.quote);
            let is_escaped = escaped(&text[exact..], &rest[exact..], self.quote);
            let same = if is_escaped {
                exact
            } else {
                text[..exact].trim_end().len()
            };
            if same > 0 {
                self.part(same)?;
                self.skip(same)?;
                self.done += same;
            }
            if !is_escaped {
                return Some(());
            }
            self.part(1)?;
            self.skip(2)?;
            self.done += 1;
        }
    }

    /// Returns the rest of the text.
    fn rest(&self) -> &str {
        &self.value[self.done..]
    }

    fn part(&mut self, len: usize) -> Option<()> {
        let part = Verbatim {
            start: u32::try_from(self.done).ok()?,
            span: FileSpan {
                len: u32::try_from(len).ok()?,
                ..self.place
            },
        };
        self.parts.push(part);
        (self.parts.len() < MOST_PARTS).then_some(())
    }

    /// Advances by bytes of this line.
    fn skip(&mut self, bytes: usize) -> Option<()> {
        let (skipped, source) = self.source.split_at_checked(bytes)?;
        let characters = u32::try_from(skipped.chars().count()).ok()?;
        self.place.column = self.place.column.checked_add(characters)?;
        self.place.offset = self.place.offset.checked_add(u32::try_from(bytes).ok()?)?;
        self.source = source;
        Some(())
    }

    /// Advances past the break that ends this line; `None` if the line continues.
    fn below(&mut self) -> Option<()> {
        let bytes = line_break(self.source)?;
        self.skip(bytes)?;
        self.place.line = self.place.line.checked_add(1)?;
        self.place.column = 1;
        Some(())
    }
}

/// Returns the number of bytes of white space at the start of a text, on its first line.
fn blank(text: &str) -> usize {
    let is_blank = |c: char| c.is_whitespace() && !['\n', '\r'].contains(&c);
    text.len() - text.trim_start_matches(is_blank).len()
}

/// True if `text` begins with two characters that are the escape of the first character of `value`.
fn escaped(text: &str, value: &str, quote: Option<char>) -> bool {
    let pairs: &[(&str, char)] = match quote {
        Some('"') => &[("\\\"", '"'), ("\\\\", '\\')],
        Some('\'') => &[("''", '\'')],
        _ => &[],
    };
    let is_it = |(pair, one): &(&str, char)| text.starts_with(pair) && value.starts_with(*one);
    pairs.iter().any(is_it)
}

/// Returns the length of the common prefix, in bytes, up to the end of the line or the start of an escape.
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

#[cfg(test)]
mod tests {
    use crate::{diagnostics::FieldPath, document::parse_stream};

    /// Returns the position in `source` of the first `word` in the text of key `a`.
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
            ("a: |\r  one\r  two word\r", (3, 7)),
            ("x: 1\ra: \"one\r\r  word\"\r", (4, 3)),
            ("a: >\n  one\r  two\r\n\n  word\n", (5, 3)),
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
            "a position in a text with escapes"
        );
    }
}
