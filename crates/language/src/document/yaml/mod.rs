//! Parses YAML to [`Tree`]s, one document at a time.

mod advice;
mod verbatim;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Options, Spanned};

use crate::diagnostics::Code;
use crate::tree::{FileSpan, Tree, TreeKey, TreeValue, Verbatim};
use advice::advise;
use verbatim::verbatim;

/// The maximum nesting of lists and maps. Katalogs need about fifteen.
pub(crate) const MAX_DEPTH: usize = 64;
/// The maximum number of values in a document, with aliases expanded.
const MAX_VALUES: usize = 100_000;

/// The maximum number of values that aliases expand to, in total.
const MAX_REPLAYED: usize = 10_000;

/// The part of a file that contains one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    /// Its text.
    pub(crate) text: &'a str,
    /// The number of lines of the file before it.
    pub(crate) lines: u32,
    /// The number of bytes of the file before it.
    pub(crate) bytes: u32,
}

/// The reason why a text is not valid YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// [`Code::Syntax`], or [`Code::TooLarge`] for a text beyond a limit.
    pub(crate) code: Code,
    /// The message.
    pub(crate) message: String,
    /// The fix.
    pub(crate) hint: Option<String>,
    /// The position of the error, if known.
    pub(crate) span: Option<FileSpan>,
}

/// Splits a stream at its document markers.
///
/// A line that starts with `---` or `...`, alone or before white space, is always a marker, so no parser is needed. Comments
/// and directives belong to the document after them.
///
/// Source: YAML 1.2.2, section 9.1.4 (Explicit Documents).
pub(crate) fn split(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut has_content) = (0, 0, false);
    let mut at = 0;
    for (number, line) in (0u32..).zip(lines(text)) {
        let ends = is_marker(line, "...");
        if is_marker(line, "---") && has_content {
            chunks.push(chunk(text, start, at, first_line));
            (start, first_line, has_content) = (at, number, false);
        }
        at += line.len();
        let trimmed = line.trim_start();
        has_content |= !(trimmed.is_empty() || trimmed.starts_with('#') || line.starts_with('%'));
        if ends {
            chunks.push(chunk(text, start, at, first_line));
            (start, first_line, has_content) = (at, number + 1, false);
        }
    }
    if has_content {
        chunks.push(chunk(text, start, text.len(), first_line));
    }
    chunks
}

/// Iterates over the lines of a text with their line breaks, as the parser counts them: a single carriage return is also a
/// line break.
///
/// Source: YAML 1.2.2, section 5.4 (Line Break Characters).
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.find(['\n', '\r']).map_or(rest.len(), |at| {
            at + line_break(&rest[at..]).unwrap_or_default()
        });
        let line;
        (line, rest) = rest.split_at(end);
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the length of the line break at the start of a text, in bytes.
pub(crate) fn line_break(text: &str) -> Option<usize> {
    match text.as_bytes() {
        [b'\r', b'\n', ..] => Some(2),
        [b'\r' | b'\n', ..] => Some(1),
        _ => None,
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

fn chunk(text: &str, start: usize, end: usize, lines: u32) -> Chunk<'_> {
    Chunk {
        text: &text[start..end],
        lines,
        bytes: u32::try_from(start).unwrap_or(u32::MAX),
    }
}

/// Parses one document; `Ok(None)` if it is empty.
///
/// Positions are relative to the start of the file that contains `chunk`.
///
/// # Errors
/// The first error of the parser: syntax, a duplicate key, nesting too deep, too many values.
pub(crate) fn parse(chunk: Chunk<'_>) -> Result<Option<Tree>, SyntaxError> {
    let parsed = serde_saphyr::from_str_with_options::<Option<Raw>>(chunk.text, options());
    match parsed {
        Ok(raw) => Ok(raw.map(|Raw(mut tree)| {
            resolve_positions(&mut tree, chunk);
            tree
        })),
        Err(error) => {
            let error = error.without_snippet();
            let span = error.location().and_then(to_span);
            let mut reported = advise(chunk, &error.to_string(), span);
            reported.span = reported.span.map(|span| moved(span, chunk));
            Err(reported)
        }
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_events: MAX_VALUES * 3,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: 16,
        },
    }
}

fn to_span(location: Location) -> Option<FileSpan> {
    let span = location.span();
    let small = |n: u64| u32::try_from(n).ok();
    if location.line() == 0 {
        return None;
    }
    Some(FileSpan {
        line: small(location.line())?,
        column: small(location.column())?,
        offset: span.byte_offset().and_then(small).unwrap_or(0),
        len: span.byte_len().and_then(small).unwrap_or(0),
    })
}

fn moved(span: FileSpan, chunk: Chunk<'_>) -> FileSpan {
    FileSpan {
        line: span.line.saturating_add(chunk.lines),
        offset: span.offset.saturating_add(chunk.bytes),
        ..span
    }
}

/// Moves positions from the document to the file, and finds the texts that appear unchanged in it.
fn resolve_positions(tree: &mut Tree, chunk: Chunk<'_>) {
    if let (Some(span), TreeValue::Str(value)) = (tree.span, &tree.value) {
        let parts = verbatim(chunk.text, span, value).into_iter();
        let in_file = parts.map(|part| Verbatim {
            span: moved(part.span, chunk),
            ..part
        });
        tree.verbatim = in_file.collect();
    }
    tree.span = tree.span.map(|span| moved(span, chunk));
    match &mut tree.value {
        TreeValue::List(items) => {
            for item in items {
                resolve_positions(item, chunk);
            }
        }
        TreeValue::Map(entries) => {
            for (key, value) in entries {
                key.span = key.span.map(|span| moved(span, chunk));
                resolve_positions(value, chunk);
            }
        }
        _ => {}
    }
}

/// A tree from the parser, with positions in the document.
struct Raw(Tree);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<RawValue>::deserialize(deserializer)?;
        Ok(Raw(Tree {
            span: to_span(spanned.defined),
            value: spanned.value.0,
            verbatim: Box::default(),
        }))
    }
}

struct RawValue(TreeValue);

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(RawValue)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = TreeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<TreeValue, E> {
        Ok(TreeValue::Null)
    }

    fn visit_none<E>(self) -> Result<TreeValue, E> {
        Ok(TreeValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<TreeValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, v: bool) -> Result<TreeValue, E> {
        Ok(TreeValue::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<TreeValue, E> {
        Ok(TreeValue::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<TreeValue, E> {
        Ok(i64::try_from(v).map_or(TreeValue::UInt(v), TreeValue::Int))
    }

    fn visit_i128<E: serde::de::Error>(self, v: i128) -> Result<TreeValue, E> {
        Err(E::custom(format_args!("the number {v} is too large")))
    }

    fn visit_u128<E: serde::de::Error>(self, v: u128) -> Result<TreeValue, E> {
        Err(E::custom(format_args!("the number {v} is too large")))
    }

    fn visit_f64<E>(self, v: f64) -> Result<TreeValue, E> {
        Ok(TreeValue::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<TreeValue, E> {
        Ok(TreeValue::Str(v.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TreeValue, A::Error> {
        let mut items = Vec::new();
        while let Some(Raw(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(TreeValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TreeValue, A::Error> {
        let mut entries: Vec<(TreeKey, Tree)> = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let Raw(value) = map.next_value()?;
            let key = TreeKey {
                span: to_span(name.defined),
                name: name.value,
            };
            entries.push((key, value));
        }
        if let Some(twice) = repeated(&entries) {
            return Err(A::Error::custom(format_args!("duplicate key `{twice}`")));
        }
        Ok(TreeValue::Map(entries))
    }
}

fn repeated(entries: &[(TreeKey, Tree)]) -> Option<&str> {
    let mut seen = std::collections::HashSet::with_capacity(entries.len());
    let twice = entries.iter().find(|(key, _)| !seen.insert(&key.name));
    twice.map(|(key, _)| key.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        parse(split(text)[0]).unwrap().unwrap()
    }

    #[test]
    fn streams_are_cut_at_markers_only() {
        let text = "# top\n---\na: 1\n---\n---\nb: |\n  ---\n  x\n...\n# end\n";
        let chunks: Vec<_> = split(text).iter().map(|c| (c.lines, c.text)).collect();
        assert_eq!(
            chunks,
            [
                (0, "# top\n---\na: 1\n"),
                (3, "---\n"),
                (4, "---\nb: |\n  ---\n  x\n...\n"),
            ]
        );
        assert!(split("# only a comment\n\n").is_empty());
    }

    #[test]
    fn values_are_read_as_kubectl_reads_them() {
        let text =
            "a: 0644\nb: yes\nc: \"yes\"\nd: 1.5\ne: ~\nf: 18446744073709551615\ng: -3\nh: off";
        assert_eq!(
            tree(text).to_json(),
            serde_json::json!({
                "a": 420, "b": true, "c": "yes", "d": 1.5, "e": null, "f": 18_446_744_073_709_551_615_u64,
                "g": -3, "h": false,
            })
        );
    }

    #[test]
    fn keys_stay_text() {
        assert_eq!(
            tree("1: a\non: b\n\"x y\": c").to_json(),
            serde_json::json!({"1": "a", "on": "b", "x y": "c"})
        );
    }

    #[test]
    fn anchors_and_merge_keys_are_expanded() {
        let text = "base: &b {x: 1, y: 2}\nall:\n  <<: *b\n  y: 3\nlist: [*b]";
        assert_eq!(
            tree(text).to_json(),
            serde_json::json!({"base": {"x": 1, "y": 2}, "all": {"x": 1, "y": 3}, "list": [{"x": 1, "y": 2}]})
        );
    }

    #[test]
    fn positions_count_from_the_start_of_the_file() {
        let text = "a: 1\n---\nb:\n  - \u{e9}: \"x\"\n";
        let chunk = split(text)[1];
        let tree = parse(chunk).unwrap().unwrap();
        let item = &tree.get("b").unwrap();
        let TreeValue::List(items) = &item.value else {
            panic!()
        };
        let (key, value) = &items[0].as_map().unwrap()[0];
        assert_eq!(key.span.map(|s| (s.line, s.column)), Some((4, 5)));
        let span = value.span.unwrap();
        assert_eq!((span.line, span.column), (4, 8));
        assert_eq!(&text[span.offset as usize..][..span.len as usize], "\"x\"");
    }
}
