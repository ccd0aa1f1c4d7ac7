//! Splits the text of a list into its items as it arrives, so that at most one item is held.
//!
//! ```text
//!  {"kind":…,"metadata":{…},"items":[ {…} , {…} ]}
//!  └───────── envelope ────────────┘ item   item └┘ envelope
//! ```

/// The largest object that is read, in bytes: etcd accepts 1.5 MiB in one request, and JSON is longer than the stored form.
pub const LARGEST_OBJECT: usize = 16 << 20;
/// The largest list, not counting its items.
const LONGEST_ENVELOPE: usize = 1 << 20;
/// Buffers larger than this are freed once their content is used.
pub(crate) const KEPT_BUFFER: usize = 16 << 10;

/// A part of the text.
#[derive(Clone, Copy)]
pub(crate) enum JsonPart<'t> {
    /// The items begin. This is the text before them, completed to a JSON object.
    Items(&'t [u8]),
    /// The text of one item, with white space around it.
    Item(&'t [u8]),
    /// The beginning of an item that is larger than [`LARGEST_OBJECT`].
    Beginning(&'t [u8]),
}

/// Why a text cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// The end is missing.
    #[error("it was cut off")]
    Short,
    /// It is too large, not counting its items.
    #[error("it is larger than any list may be without its items")]
    TooLarge,
}

/// A list that is being received. Only brackets and quotes are interpreted: the parts are parsed by the caller.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a state of the text, and none follows from another"
)]
#[derive(Default)]
pub(crate) struct Splitter {
    place: JsonPosition,
    /// Open brackets, in the envelope or in the item.
    depth: usize,
    /// Inside a quoted text.
    quoted: bool,
    /// After a backslash.
    escaped: bool,
    envelope: Vec<u8>,
    /// The start and end of the last quoted text in the envelope.
    word: (usize, usize),
    /// Whether that text is a key: a colon followed.
    is_key: bool,
    /// The beginning of an incomplete item.
    item: Vec<u8>,
    /// Whether that item is too large: its rest is skipped.
    is_large: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum JsonPosition {
    #[default]
    Envelope,
    Items,
}

impl Splitter {
    /// Processes received bytes and passes complete parts to `take`.
    ///
    /// # Errors
    /// [`SplitError::TooLarge`]; errors of `take` are returned at once.
    pub(crate) fn feed<E: From<SplitError>>(
        &mut self,
        mut text: &[u8],
        take: &mut impl FnMut(JsonPart<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !text.is_empty() {
            let used = match self.place {
                JsonPosition::Envelope => self.feed_envelope(text, take)?,
                JsonPosition::Items => self.feed_items(text, take)?,
            };
            text = text.get(used..).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the list without its items.
    ///
    /// # Errors
    /// [`SplitError::Short`] if its end is missing.
    pub(crate) fn end(self) -> Result<Vec<u8>, SplitError> {
        let is_whole = self.place == JsonPosition::Envelope && self.depth == 0 && !self.quoted;
        if is_whole {
            Ok(self.envelope)
        } else {
            Err(SplitError::Short)
        }
    }

    /// Processes text until the items begin; returns the number of bytes processed.
    fn feed_envelope<E: From<SplitError>>(
        &mut self,
        text: &[u8],
        take: &mut impl FnMut(JsonPart<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        for (at, byte) in text.iter().enumerate() {
            if self.envelope.len() == LONGEST_ENVELOPE {
                return Err(SplitError::TooLarge.into());
            }
            self.envelope.push(*byte);
            if self.quoted {
                self.in_quotes(*byte);
                self.word.1 = self.envelope.len();
                continue;
            }
            match byte {
                b'"' => {
                    self.quoted = true;
                    self.word.0 = self.envelope.len() - 1;
                    self.is_key = false;
                }
                b':' => self.is_key = true,
                b'[' if self.depth == 1 && self.is_items() => {
                    self.place = JsonPosition::Items;
                    self.depth = 0;
                    let length = self.envelope.len();
                    self.envelope.extend_from_slice(b"]}");
                    take(JsonPart::Items(&self.envelope))?;
                    self.envelope.truncate(length);
                    return Ok(at + 1);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(text.len())
    }

    /// True if the value that begins here belongs to the key `items`: only a colon and white space are between them.
    fn is_items(&self) -> bool {
        let (start, end) = self.word;
        let (word, rest) = (self.envelope.get(start..end), self.envelope.get(end..));
        let plain = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b':' | b'[');
        self.is_key && word == Some(b"\"items\"") && rest.is_some_and(|rest| rest.iter().all(plain))
    }

    /// Processes text to the end of an item or of all items; returns the number of bytes processed.
    fn feed_items<E: From<SplitError>>(
        &mut self,
        text: &[u8],
        take: &mut impl FnMut(JsonPart<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            if self.quoted {
                at += self.pass_quoted(text.get(at..).unwrap_or_default());
                continue;
            }
            match byte {
                b'"' => self.quoted = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => self.depth -= 1,
                b',' | b']' if self.depth == 0 => {
                    self.end_item(text.get(..at).unwrap_or_default(), take)?;
                    if *byte == b']' {
                        self.place = JsonPosition::Envelope;
                        self.depth = 1;
                        self.envelope.push(b']');
                    }
                    return Ok(at + 1);
                }
                _ => {}
            }
            at += 1;
        }
        self.keep(text);
        Ok(text.len())
    }

    /// Keeps a part of an item, up to the limit.
    fn keep(&mut self, text: &[u8]) {
        let room = LARGEST_OBJECT - self.item.len();
        self.is_large |= text.len() > room;
        let kept = text.get(..room).unwrap_or(text);
        self.item.extend_from_slice(kept);
    }

    fn end_item<E: From<SplitError>>(
        &mut self,
        rest: &[u8],
        take: &mut impl FnMut(JsonPart<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let hand_out = |item: &[u8], take: &mut dyn FnMut(JsonPart<'_>) -> Result<(), E>| {
            if item.iter().all(u8::is_ascii_whitespace) {
                Ok(())
            } else {
                take(JsonPart::Item(item))
            }
        };
        if self.item.is_empty() && rest.len() <= LARGEST_OBJECT {
            return hand_out(rest, take);
        }
        self.keep(rest);
        let handed = if std::mem::take(&mut self.is_large) {
            take(JsonPart::Beginning(&self.item))
        } else {
            hand_out(&self.item, take)
        };
        empty(&mut self.item);
        handed
    }

    /// Skips quoted text up to and including the next quote, backslash or escaped character; returns the number of bytes
    /// processed.
    fn pass_quoted(&mut self, text: &[u8]) -> usize {
        let found = if self.escaped {
            Some(0)
        } else {
            memchr::memchr2(b'"', b'\\', text)
        };
        let Some((at, byte)) = found.and_then(|at| Some((at, text.get(at)?))) else {
            return text.len();
        };
        self.in_quotes(*byte);
        at + 1
    }

    /// Inside quotes only a backslash and a quote have a meaning.
    fn in_quotes(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.quoted = false;
        }
    }
}

/// Clears a buffer, and frees a large one: the memory for one huge object must not be kept forever.
pub(crate) fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT_BUFFER);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Splits a text that arrives in parts of `size` bytes into its head, its items and its envelope.
    fn split(text: &str, size: usize) -> Result<(Option<Value>, Vec<Value>, Value), SplitError> {
        let (mut head, mut items) = (None, Vec::new());
        let mut splitter = Splitter::default();
        for part in text.as_bytes().chunks(size) {
            splitter.feed::<SplitError>(part, &mut |found| {
                match found {
                    JsonPart::Items(text) => head = Some(serde_json::from_slice(text).unwrap()),
                    JsonPart::Item(text) => items.push(serde_json::from_slice(text).unwrap()),
                    JsonPart::Beginning(text) => items.push(Value::from(text.len())),
                }
                Ok(())
            })?;
        }
        let envelope = serde_json::from_slice(&splitter.end()?).unwrap();
        Ok((head, items, envelope))
    }

    #[test]
    fn a_list_is_cut_wherever_it_is_parted() {
        let items = json!([
            {"a": "]},{\"items\":[", "b": [[1], {"c": "\\\""}]}, 7, null, "x,]", [], {}
        ]);
        let whole = json!({"kind": "List", "metadata": {"items": [1], "resourceVersion": "5"}, "items": items, "z": {"items": [2]}});
        let text = serde_json::to_string_pretty(&whole).unwrap();
        for text in [text, whole.to_string()] {
            for size in [1, 2, 3, 7, 64, text.len()] {
                let (head, found, envelope) = split(&text, size).unwrap();
                assert_eq!(Value::from(found), items, "{size}");
                let mut without = whole.clone();
                without["items"] = json!([]);
                assert_eq!(envelope, without);
                let head = head.unwrap();
                assert_eq!(head["items"], json!([]));
            }
        }
    }

    #[test]
    fn what_stands_in_front_of_the_items_is_known_when_they_begin() {
        let text = r#"{"metadata":{"resourceVersion":"5","continue":"items"},"items" : [{"a":1}]}"#;
        let (head, items, _) = split(text, 5).unwrap();
        assert_eq!(head.unwrap()["metadata"]["resourceVersion"], "5");
        assert_eq!(items, [json!({"a": 1})]);
        let (head, ..) = split(r#"{"items":[],"metadata":{"resourceVersion":"5"}}"#, 5).unwrap();
        assert_eq!(head, Some(json!({"items": []})));
    }

    #[test]
    fn only_a_list_under_the_key_is_the_list_of_items() {
        for text in [
            r#"{"items":null}"#,
            r#"{"kind":"items","other":[{"a":1}]}"#,
            r#"{"items":{"items":[1]}}"#,
            r#"["items",[1]]"#,
            r#"{"items":"x","y":[1]}"#,
        ] {
            let (head, items, envelope) = split(text, 4).unwrap();
            assert_eq!((head, items.len()), (None, 0), "{text}");
            assert_eq!(envelope, serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn a_text_that_is_cut_off_is_no_list() {
        let text = r#"{"metadata":{},"items":[{"a":"b"},{"a":1}]}"#;
        for end in 1..text.len() {
            assert_eq!(split(&text[..end], 3), Err(SplitError::Short), "{end}");
        }
        assert!(split(text, 3).is_ok());
    }

    #[test]
    fn an_envelope_does_not_grow_without_end() {
        let mut splitter = Splitter::default();
        let mut ignore = |_: JsonPart<'_>| Ok::<(), SplitError>(());
        let part = vec![b'x'; 1 << 20];
        let fed = (0..2).try_for_each(|_| splitter.feed(&part, &mut ignore));
        assert_eq!(fed, Err(SplitError::TooLarge));
    }

    #[test]
    fn of_an_item_that_is_too_large_the_beginning_is_found_and_its_neighbours_are_whole() {
        let large = "x".repeat(LARGEST_OBJECT);
        let text = format!(r#"{{"items":[{{"a":1}},{{"a":"{large}"}},{{"a":2}}]}}"#);
        for size in [1 << 16, text.len()] {
            let (_, items, _) = split(&text, size).unwrap();
            assert_eq!(
                items,
                [json!({"a": 1}), json!(LARGEST_OBJECT), json!({"a": 2})]
            );
        }
    }

    #[test]
    fn a_large_item_leaves_no_large_buffer() {
        let mut splitter = Splitter::default();
        let mut ignore = |_: JsonPart<'_>| Ok::<(), SplitError>(());
        splitter.feed(br#"{"items":["#, &mut ignore).unwrap();
        let large = format!("\"{}\"", "x".repeat(1 << 20));
        for part in large.as_bytes().chunks(1000) {
            splitter.feed(part, &mut ignore).unwrap();
        }
        splitter.feed(b",", &mut ignore).unwrap();
        assert!(splitter.item.capacity() <= KEPT_BUFFER);
    }
}
