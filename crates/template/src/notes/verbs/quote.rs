//! Text, quoted text and hexadecimal text.

use std::fmt::Write;

use super::Printer;
use crate::error::EvalFailure;

impl Printer<'_> {
    /// Prints a text with `s`, `v`, `q`, `x` or `X`.
    pub(crate) fn text(&mut self, text: &str, verb: char) -> Result<(), EvalFailure> {
        match verb {
            'q' => {
                let text = self.cut(text);
                // An escape has at most ten characters.
                self.budget.longer(self.out.len(), text.len() * 2)?;
                let raw =
                    self.flags.sharp && !text.contains(|c| c == '`' || c != '\t' && !printable(c));
                let quoted = if raw {
                    format!("`{text}`")
                } else {
                    quote(text, '"', self.flags.plus)
                };
                self.pad(&quoted)
            }
            'x' | 'X' => self.hexadecimal(text, verb == 'X'),
            _ => {
                let text = self.cut(text);
                self.pad(text)
            }
        }
    }

    /// Truncates the text to the precision, in characters.
    fn cut<'t>(&self, text: &'t str) -> &'t str {
        let end = self
            .flags
            .precision
            .and_then(|most| text.char_indices().nth(most));
        end.map_or(text, |(end, _)| &text[..end])
    }

    /// Prints the bytes of a text, two digits each.
    fn hexadecimal(&mut self, text: &str, upper: bool) -> Result<(), EvalFailure> {
        let most = self.flags.precision.unwrap_or(text.len());
        let bytes = &text.as_bytes()[..text.len().min(most)];
        self.budget.longer(self.out.len(), bytes.len() * 5)?;
        let mut digits = String::new();
        for (at, byte) in bytes.iter().enumerate() {
            if at > 0 && self.flags.space {
                digits.push(' ');
            }
            if self.flags.sharp && (at == 0 || self.flags.space) {
                digits.push_str(if upper { "0X" } else { "0x" });
            }
            // Writing to a string cannot fail.
            let _ = if upper {
                write!(digits, "{byte:02X}")
            } else {
                write!(digits, "{byte:02x}")
            };
        }
        self.pad(&digits)
    }
}

/// Quotes a character in single quotes, with Go's escapes.
pub(crate) fn character(c: char, ascii: bool) -> String {
    quote(c.encode_utf8(&mut [0; 4]), '\'', ascii)
}

/// Quotes a text, with Go's escapes.
///
/// Source: Go's package strconv, `Quote` and `QuoteToASCII`.
fn quote(text: &str, mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if c == mark => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if printable(c) && (c.is_ascii() || !ascii) => out.push(c),
            c => {
                let code = u32::from(c);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..0x80 => write!(out, "\\x{code:02x}"),
                    0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(mark);
    out
}

/// True if a character is printable: letters, marks, digits, punctuation, symbols and the ASCII space.
pub(crate) fn printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // The standard library escapes characters that are not printable. A mark is printable only after a letter.
    let mut shown = String::from("a");
    shown.push(c);
    shown.escape_debug().count() == 2
}
