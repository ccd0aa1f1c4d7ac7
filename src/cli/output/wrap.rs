//! Text for people, wrapped at the width of the terminal. Results for programs are never wrapped.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm, core::display_width};

/// The narrowest width at which text is wrapped.
const NARROWEST: usize = 20;

/// Returns the text with lines of at most `width` characters, where words permit it. Source lines of diagnostics stay as they are,
/// and so does everything without a width. Continuations are indented as the text of the line: below the last column of a table, and
/// below the text of a remark.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| *width >= NARROWEST) else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        if display_width(line) <= width || is_source(line) {
            out.push_str(line);
        } else {
            out.push_str(&wrap(line, width));
        }
        out.push_str(end);
    }
    out
}

/// Wraps one line.
fn wrap(line: &str, width: usize) -> String {
    let (indent, text) = line.split_at(line.len() - line.trim_start_matches(' ').len());
    let hanging = " ".repeat(hanging(line, width));
    let options = Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(&hanging)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .break_words(false);
    textwrap::fill(text, options)
}

/// Returns the indentation of continuations.
fn hanging(line: &str, width: usize) -> usize {
    let plain = plain(line);
    let indent = plain.len() - plain.trim_start_matches(' ').len();
    let column = plain.rfind("  ").map(|at| plain[..at + 2].chars().count());
    let column = column.filter(|column| *column > indent);
    let remark = plain[indent..].starts_with("= ").then(|| {
        let rest = plain[indent..].find(": ").map_or(2, |at| at + 2);
        indent + rest
    });
    let hanging = column.or(remark).unwrap_or(indent);
    if hanging * 2 > width {
        indent.min(width / 2)
    } else {
        hanging
    }
}

/// True for the lines of a diagnostic that show its source: `12 |   when: …`, `  --> k.yaml:12:3`.
fn is_source(line: &str) -> bool {
    let plain = plain(line);
    let rest = plain.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    rest.starts_with('|') || rest.starts_with("-->") || rest.starts_with("...")
}

/// Returns the text without escape sequences of styles.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_words_below_where_it_began() {
        for (text, width, expected) in [
            ("a short line\n", 20, "a short line\n"),
            (
                "one two three four five six\nseven\n",
                20,
                "one two three four\nfive six\nseven\n",
            ),
            (
                "  an indented line that is long",
                20,
                "  an indented line\n  that is long",
            ),
            (
                "join  str  The items of a list as one text",
                30,
                "join  str  The items of a list\n           as one text",
            ),
            (
                "   = help: did you mean this or that one",
                30,
                "   = help: did you mean this\n           or that one",
            ),
            // A word that is too long, and the source of a diagnostic, stay whole.
            (
                "https://example.org/a/very/long/address is it",
                20,
                "https://example.org/a/very/long/address\nis it",
            ),
            (
                "12 |   when: [{ field: spec.tier, equals: gold }]",
                20,
                "12 |   when: [{ field: spec.tier, equals: gold }]",
            ),
            (
                "  --> a/very/long/folder/katalog.yaml:12:3",
                20,
                "  --> a/very/long/folder/katalog.yaml:12:3",
            ),
            // Styles take no room.
            (
                "\x1b[1m0123456789\x1b[0m 0123456 89",
                20,
                "\x1b[1m0123456789\x1b[0m 0123456\n89",
            ),
        ] {
            assert_eq!(wrapped(text, Some(width)), expected);
            assert_eq!(wrapped(text, None), text, "no terminal");
            assert_eq!(wrapped(text, Some(5)), text, "too narrow");
        }
    }
}
