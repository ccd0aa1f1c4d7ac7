//! Rewrites errors of the YAML parser, with the fix.
//!
//! The parser stops where it cannot continue, which is often a line after the mistake. The most frequent mistakes are
//! searched for in the text and reported at their position.

mod parser_messages;

use super::{Chunk, SyntaxError};
use crate::diagnostics::Code;
use crate::tree::FileSpan;
use parser_messages::{TABS, say};

/// Rewrites an error and finds its position in the file.
///
/// `message` and `span` are the parser's; the span counts from the start of `chunk`.
pub(crate) fn advise(chunk: Chunk<'_>, message: &str, span: Option<FileSpan>) -> SyntaxError {
    let reported = say(message);
    let lines: Vec<&str> = super::lines(chunk.text)
        .map(|line| line.trim_end_matches(['\n', '\r']))
        .collect();
    let stopped = span.map_or((0, 0), |span| {
        let index = |n: u32| usize::try_from(n.saturating_sub(1)).unwrap_or(0);
        (index(span.line), index(span.column))
    });
    let found = match reported.code {
        Code::Syntax => flat(&lines).or_else(|| plain(&lines, stopped, message)),
        _ => None,
    };
    let Some(found) = found else {
        return SyntaxError { span, ..reported };
    };
    let before = &lines[found.line][..found.byte];
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let start: usize = super::lines(chunk.text)
        .take(found.line)
        .map(str::len)
        .sum();
    SyntaxError {
        code: found.code,
        message: found.message.to_owned(),
        hint: Some(found.hint),
        span: Some(FileSpan {
            line: small(found.line + 1),
            column: small(before.chars().count() + 1),
            offset: small(start + found.byte),
            len: 0,
        }),
    }
}

/// A mistake found in the text.
struct Mistake {
    code: Code,
    /// The line, from 0.
    line: usize,
    /// The byte in the line, from 0.
    byte: usize,
    message: &'static str,
    hint: String,
}

/// Finds a text without indentation although keys in it have nested content.
fn flat(lines: &[&str]) -> Option<Mistake> {
    let written = || {
        let lines = lines.iter().enumerate();
        lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with(['#', '%']))
    };
    if written().any(|(_, line)| line.starts_with(char::is_whitespace)) {
        return None;
    }
    let is_parent = |line: &str| line.trim_end().ends_with(':');
    let parents = written().filter(|(_, line)| is_parent(line)).count();
    let (first, _) = written().find(|(_, line)| is_parent(line))?;
    let (line, _) = written().find(|(at, _)| *at > first)?;
    (parents > 1).then(|| Mistake {
        code: Code::LostIndentation,
        line,
        byte: 0,
        message: "the indentation is lost",
        hint: "indent the fields of a key by two spaces".to_owned(),
    })
}

/// Finds an obvious mistake on the line where the parser stopped, or shortly before it.
fn plain(lines: &[&str], (stopped, column): (usize, usize), message: &str) -> Option<Mistake> {
    let last = stopped.min(lines.len().checked_sub(1)?);
    let near = || (last.saturating_sub(1)..=last).rev();
    if message.contains("quote") {
        let open = (0..=last)
            .rev()
            .find_map(|line| open_quote(lines[line], line));
        return open.filter(|_| !message.contains("trailing") && !message.contains("escape"));
    }
    if message.starts_with("tabs") || message.contains("found a tab") {
        // A tab that indents a later line makes the parser report the line where the value began.
        let is_indented = |line: &str| {
            let indent = line.len() - line.trim_start().len();
            line[..indent].contains('\t')
        };
        let after = lines.iter().skip(last).position(|line| is_indented(line));
        let last = last + after.unwrap_or_default();
        let byte = lines[last].find('\t')?;
        let (_, code, message, hint) = TABS;
        return Some(Mistake {
            code,
            line: last,
            byte,
            message,
            hint: hint.to_owned(),
        });
    }
    if message.starts_with("expected string scalar")
        && let Some(found) = braces_at(lines[last], last, column)
    {
        return Some(found);
    }
    near()
        .find_map(|line| bare_template(lines[line], line))
        .or_else(|| near().find_map(|line| no_space(lines[line], line)))
}

/// Returns the offset of the value in a line, after `- ` and `key: `.
fn value_at(line: &str) -> usize {
    let mut at = line.len() - line.trim_start().len();
    while let Some(rest) = line[at..].strip_prefix("- ") {
        at = line.len() - rest.trim_start().len();
    }
    let is_key = |key: &str| !key.is_empty() && !key.contains(['"', '\'', '{', '[', '#']);
    match line[at..].find(": ") {
        Some(colon) if is_key(&line[at..at + colon]) => {
            line.len() - line[at + colon + 2..].trim_start().len()
        }
        _ => at,
    }
}

/// Finds a value that begins with a quote and does not end with one.
fn open_quote(line: &str, number: usize) -> Option<Mistake> {
    let byte = value_at(line);
    let quote = line[byte..]
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\''))?;
    let mut is_escaped = false;
    let closes = |c: char| {
        let closes = c == quote && !is_escaped;
        is_escaped = c == '\\' && quote == '"' && !is_escaped;
        closes
    };
    if line[byte + 1..].chars().any(closes) {
        return None;
    }
    Some(Mistake {
        code: Code::Syntax,
        line: number,
        byte,
        message: "the quote is not closed",
        hint: format!("add `{quote}` at the end of the text"),
    })
}

/// Finds an unquoted value that begins with a template. YAML parses the braces as maps.
fn bare_template(line: &str, number: usize) -> Option<Mistake> {
    let byte = value_at(line);
    let value = line[byte..].trim_end();
    if !value.starts_with("{{") {
        return None;
    }
    let (message, hint) = match (value.contains('"'), value.contains('\'')) {
        _ if value.ends_with(':') || value.contains("}}: ") => (
            "a template cannot be a key",
            "write the key out; only values are rendered".to_owned(),
        ),
        (false, _) => (NEEDS_QUOTES, format!("write \"{value}\"")),
        (true, false) => (NEEDS_QUOTES, format!("write '{value}'")),
        (true, true) => (NEEDS_QUOTES, "put it in quotes".to_owned()),
    };
    Some(Mistake {
        code: Code::Syntax,
        line: number,
        byte,
        message,
        hint,
    })
}

/// The message for templates that YAML parses as maps.
const NEEDS_QUOTES: &str = "a template that begins a value needs quotes around the value";

/// Finds a template inside a map in braces. The parser stops at its second brace, the character `column` (from 0).
fn braces_at(line: &str, number: usize, column: usize) -> Option<Mistake> {
    let (byte, _) = line.char_indices().nth(column.checked_sub(1)?)?;
    let value = line[byte..].strip_prefix("{{")?;
    let end = value
        .find("}}")
        .filter(|end| !value[*end..].starts_with("}}:"))?;
    (byte != value_at(line)).then(|| Mistake {
        code: Code::Syntax,
        line: number,
        byte,
        message: NEEDS_QUOTES,
        hint: format!("write '{{{{{}}}}}'", &value[..end]),
    })
}

/// Finds a `:` or a `-` without the space after it.
fn no_space(line: &str, number: usize) -> Option<Mistake> {
    let indent = line.len() - line.trim_start().len();
    let is_key = |key: &str| {
        let mut chars = key.chars();
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.all(legal)
    };
    let found = |byte, message, hint| Mistake {
        code: Code::Syntax,
        line: number,
        byte,
        message,
        hint,
    };
    if let Some(rest) = line[indent..].strip_prefix('-')
        && rest.split_once(':').is_some_and(|(key, _)| is_key(key))
    {
        let hint = format!("write `- {}`", rest.trim_end());
        return Some(found(indent, "a space is missing after the `-`", hint));
    }
    let at = indent + line[indent..].len() - line[indent..].trim_start_matches("- ").len();
    let (key, rest) = line[at..].split_once(':')?;
    if is_key(key) && rest.starts_with(['"', '\'', '{', '[']) {
        let hint = format!("write `{key}: {}`", rest.trim_end());
        return Some(found(
            at + key.len(),
            "a space is missing after the `:`",
            hint,
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(text: &str) -> (u32, u32, String, Option<String>) {
        let chunk = Chunk {
            text,
            lines: 0,
            bytes: 0,
        };
        let error = super::super::parse(chunk).unwrap_err();
        let span = error.span.unwrap();
        (span.line, span.column, error.message, error.hint)
    }

    #[test]
    fn the_line_of_the_mistake_is_reported_and_not_the_one_where_the_parser_stops() {
        let (line, column, _, hint) = reported("a:\n  - b: \"x\n    c: 1\n");
        assert_eq!((line, column), (2, 8));
        assert_eq!(hint.as_deref(), Some("add `\"` at the end of the text"));
        let (line, column, _, hint) = reported("a:\n  - b:\"x\"\n    c: 1\n");
        assert_eq!((line, column), (2, 6));
        assert_eq!(hint.as_deref(), Some("write `b: \"x\"`"));
        let (line, column, _, hint) = reported("a:\n  b: {{ .x | f \"y\" }}z\n");
        assert_eq!((line, column), (2, 6));
        assert_eq!(hint.as_deref(), Some("write '{{ .x | f \"y\" }}z'"));
    }

    #[test]
    fn a_tab_is_reported_on_its_own_line() {
        for text in [
            "a:\n  b: c\n\td: e\n",
            "a:\n  b: long\n  \ttext\n",
            "a: b\n\tc: d\n",
        ] {
            let (line, _, message, hint) = reported(text);
            let tab = text.lines().position(|line| line.contains('\t')).unwrap() + 1;
            assert_eq!(
                (line as usize, &*message),
                (tab, "a tab indents the line"),
                "{text:?}"
            );
            assert_eq!(hint.as_deref(), Some("indent with spaces"));
        }
    }

    #[test]
    fn sound_lines_are_not_blamed() {
        for line in [
            "  - b: \"x\"",
            "  b: 'it''s'",
            "  url: http://x.example",
            "  \"{{ .x }}\": y",
            "",
            "  - -1",
        ] {
            assert!(open_quote(line, 0).is_none(), "{line}");
            assert!(bare_template(line, 0).is_none(), "{line}");
            assert!(no_space(line, 0).is_none(), "{line}");
        }
    }
}
