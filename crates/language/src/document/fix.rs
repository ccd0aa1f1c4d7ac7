//! Finds mistakes that the YAML parser reports badly, with the fix.

use super::yaml::{self, Chunk};
use crate::tree::FileSpan;

/// A double-quoted text that ends too early, at a quote inside a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokenQuotes {
    /// The position of the inner quote.
    pub(crate) span: FileSpan,
    /// The corrected text.
    pub(crate) fixed: String,
    /// The first byte of the text in the chunk: its opening quote.
    pub(crate) start: usize,
    /// The byte after its closing quote.
    pub(crate) end: usize,
}

/// Finds texts such as `"{{ get .children.job "status" }}"`: the quotes inside the template end the text. The corrected text
/// has single quotes outside, or `\"` inside if it contains single quotes itself.
pub(crate) fn broken_quotes(chunk: Chunk<'_>) -> Vec<BrokenQuotes> {
    let mut found = Vec::new();
    let mut at = 0;
    for (number, line) in (1u32..).zip(yaml::lines(chunk.text)) {
        if let Some((start, inner, end)) = broken_in(line) {
            let text = &line[start + 1..end - 1];
            let fixed = if text.contains(['\'', '\\']) {
                format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            } else {
                format!("'{text}'")
            };
            let columns = line[..inner].chars().count();
            found.push(BrokenQuotes {
                span: FileSpan {
                    line: number + chunk.lines,
                    column: u32::try_from(columns + 1).unwrap_or(u32::MAX),
                    offset: u32::try_from(at + inner)
                        .unwrap_or(u32::MAX)
                        .saturating_add(chunk.bytes),
                    len: 1,
                },
                fixed,
                start: at + start,
                end: at + end,
            });
        }
        at += line.len();
    }
    found
}

/// Returns the chunk's text with every broken text corrected if that takes the same number of bytes; the others stay
/// unchanged. Positions stay valid.
pub(crate) fn fix_chunk(text: &str, broken: &[BrokenQuotes]) -> Option<String> {
    let mut fixed = text.to_owned();
    for one in broken {
        if one.fixed.len() != one.end - one.start {
            return None;
        }
        fixed.replace_range(one.start..one.end, &one.fixed);
    }
    Some(fixed)
}

/// Returns the offsets of the opening quote, of the first inner quote, and after the closing quote.
fn broken_in(line: &str) -> Option<(usize, usize, usize)> {
    let line = line.trim_end();
    let value = line
        .find(": \"")
        .map(|at| at + 2)
        .or_else(|| line.find("- \"").map(|at| at + 2))?;
    let before = line[..value].trim_start();
    if before.starts_with('#') || before.contains(['"', '\'']) {
        return None;
    }
    let end = line.rfind('"')? + 1;
    let tail = line[end..].trim_start();
    if end <= value + 1 || !(tail.is_empty() || tail.starts_with('#')) {
        return None;
    }
    let (mut is_escaped, mut open) = (false, 0_usize);
    let mut bytes = line
        .bytes()
        .enumerate()
        .skip(value + 1)
        .take(end - 1 - (value + 1))
        .peekable();
    while let Some((at, byte)) = bytes.next() {
        let pair = bytes.peek().is_some_and(|(_, next)| *next == byte);
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'{' if pair => open += 1,
            b'}' if pair => open = open.saturating_sub(1),
            b'"' if open > 0 => return Some((value, at, end)),
            b'"' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, u32, String)> {
        let chunk = Chunk {
            text,
            lines: 0,
            bytes: 0,
        };
        broken_quotes(chunk)
            .into_iter()
            .map(|one| (one.span.line, one.span.column, one.fixed))
            .collect()
    }

    #[test]
    fn inner_quotes_of_templates_are_found() {
        assert_eq!(
            found("a: 1\nvalue: \"{{ get .x \"y\" }}\"  # why\n"),
            [(2, 19, "'{{ get .x \"y\" }}'".to_owned())]
        );
        assert_eq!(
            found("- \"{{ f \"y\" }}'s\""),
            [(1, 9, "\"{{ f \\\"y\\\" }}'s\"".to_owned())]
        );
    }

    #[test]
    fn sound_texts_are_left_alone() {
        for text in [
            "a: \"{{ f \\\"y\\\" }}\"",
            "a: '{{ f \"y\" }}'",
            "# a: \"{{ f \"y\" }}\"",
            "a: {b: \"{{ .x }}\", c: \"{{ .y }}\"}",
            "a: \"x\" # \"{{ \"",
            "a: \"",
            "a: \"{{",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
