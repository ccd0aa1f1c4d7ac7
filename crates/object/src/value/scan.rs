//! The parts of a JSON text, found only by brackets and quotes: iterative, so the depth is not limited, and tolerant, so that an
//! invalid part does not hide others.

use std::borrow::Cow;

/// A text that is being split.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Scan<'t> {
    /// Returns a scan that starts after the bracket that opens `text`; `None` if it opens with another.
    fn inside(text: &'t [u8], bracket: u8) -> Option<Self> {
        let mut scan = Self { text, at: 0 };
        (scan.peek()? == bracket).then(|| scan.at += 1)?;
        Some(scan)
    }

    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.text.get(self.at).copied()
    }

    /// Skips the next byte if it is `byte`.
    fn pass(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    /// Skips a quoted text, or the rest if its end is missing.
    fn quoted(&mut self) {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at) {
            self.at += match byte {
                b'\\' => 2,
                b'"' => {
                    self.at += 1;
                    return;
                }
                _ => 1,
            };
        }
        self.at = self.text.len();
    }

    /// Skips a value and returns its text, or the rest if its end is missing.
    fn value(&mut self) -> Option<&'t [u8]> {
        let first = self.peek()?;
        let start = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'"' => self.quoted(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b'}' | b']' if depth == 0 => break,
                _ => self.at += 1,
            }
            if depth == 0 && matches!(first, b'"' | b'{' | b'[') {
                break;
            }
        }
        (self.at > start).then(|| self.text.get(start..self.at))?
    }
}

/// Returns how deeply a JSON text is nested: 0 for a scalar.
pub(crate) fn levels(text: &[u8]) -> usize {
    let mut scan = Scan { text, at: 0 };
    let (mut depth, mut most) = (0_usize, 0);
    while let Some(byte) = text.get(scan.at) {
        match byte {
            b'"' => {
                scan.quoted();
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        scan.at += 1;
    }
    most
}

/// Returns the keys and values of a JSON map; empty for anything else. A key that is not valid text is empty.
pub(crate) fn fields(text: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, &[u8])> {
    let mut scan = Scan::inside(text, b'{');
    std::iter::from_fn(move || {
        let scan = scan.as_mut()?;
        if scan.peek()? != b'"' {
            return None;
        }
        let start = scan.at;
        scan.quoted();
        let key = scan.text.get(start..scan.at)?;
        if !scan.pass(b':') {
            return None;
        }
        let value = scan.value()?;
        scan.pass(b',');
        Some((key_text(key), value))
    })
}

/// Returns the items of a JSON list; empty for anything else.
pub(crate) fn items(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut scan = Scan::inside(text, b'[');
    std::iter::from_fn(move || {
        let scan = scan.as_mut()?;
        let value = scan.value()?;
        scan.pass(b',');
        Some(value)
    })
}

/// True if a text opens a map.
pub(crate) fn is_map(text: &[u8]) -> bool {
    Scan::inside(text, b'{').is_some()
}

/// True if a text opens a list.
pub(crate) fn is_list(text: &[u8]) -> bool {
    Scan::inside(text, b'[').is_some()
}

/// Returns the text of a quoted key.
fn key_text(quoted: &[u8]) -> Cow<'_, str> {
    let plain = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    if plain.contains(&b'\\') {
        return serde_json::from_slice::<String>(quoted).map_or(Cow::Borrowed(""), Cow::Owned);
    }
    str::from_utf8(plain).map_or(Cow::Borrowed(""), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(String, String)> {
        let text_of = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        fields(text.as_bytes())
            .map(|(key, value)| (key.into_owned(), text_of(value)))
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        expected.iter().map(own).collect()
    }

    #[test]
    fn the_fields_of_a_map_are_found_whatever_their_values_are() {
        let text =
            r#" { "a" : 1e400 , "b\u0041":[{"x":"]}\""}],"c":"\ud800","d":{},"":nonsense }x"#;
        let expected = [
            ("a", "1e400 "),
            ("bA", r#"[{"x":"]}\""}]"#),
            ("c", r#""\ud800""#),
            ("d", "{}"),
            ("", "nonsense "),
        ];
        assert_eq!(parts(text), pairs(&expected));
        assert_eq!(parts("[1]"), []);
        assert_eq!(parts(""), []);
    }

    #[test]
    fn of_a_text_that_is_cut_off_the_rest_is_a_part() {
        let expected = [("a", "1"), ("b", r#"{"c":[1"#)];
        assert_eq!(parts(r#"{"a":1,"b":{"c":[1"#), pairs(&expected));
        assert_eq!(parts(r#"{"a":1,"b"#), pairs(&expected[..1]));
        assert_eq!(parts(r#"{"a":"x\"#), pairs(&[("a", r#""x\"#)]));
    }

    #[test]
    fn a_key_that_is_not_text_is_empty() {
        let found: Vec<_> = fields(b"{\"\xff\":1,\"\\ud800\":2,\"k\":3}").collect();
        let keys: Vec<_> = found.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["", "", "k"]);
    }

    #[test]
    fn items_are_found_and_no_depth_is_too_deep() {
        let deep = "[".repeat(1_000_000);
        let text = format!("[1,{{\"a\":[]}},\"x\",{deep}");
        let found: Vec<usize> = items(text.as_bytes()).map(<[u8]>::len).collect();
        assert_eq!(found, [1, 8, 3, 1_000_000]);
    }
}
