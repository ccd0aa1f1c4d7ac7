//! YAML in, as `sigs.k8s.io/yaml` reads it, and out, as it prints.

use std::collections::BTreeMap;
use std::fmt;

use orkestra_core::template::go::Failure;
use orkestra_core::value::{Key, Map, Node};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::engine::Engine;
use crate::value::Value;

/// Nested lists and maps allowed.
const MAX_DEPTH: usize = 64;
/// Values that aliases may stand for, all together.
const MAX_REPLAYED: usize = 100_000;
/// Longer lines are folded.
const WIDTH: usize = 80;
/// Keys beyond this length are written in the form with a question mark.
const LONGEST_KEY: usize = 128;

/// The value of a text: one document; null where there is none.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn read(text: &str) -> Result<Node, String> {
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    };
    if text.lines().all(blank) {
        return Ok(Node::Null);
    }
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: 16,
        },
    };
    serde_saphyr::from_str_with_options::<Document>(text, options)
        .map(|document| document.0)
        .map_err(|error| error.to_string())
}

/// A value whose keys may be of any type, as those of YAML are: `on: 1` has the key `true`.
struct Document(Node);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Document, D::Error> {
        source.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, b: bool) -> Result<Document, E> {
        Ok(Document(Node::Bool(b)))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Document, E> {
        Ok(Document(Node::Int(n)))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Document, E> {
        Ok(Document(Node::from(n)))
    }

    #[expect(clippy::cast_precision_loss, reason = "as encoding/json does")]
    fn visit_i128<E>(self, n: i128) -> Result<Document, E> {
        Ok(Document(Node::Float(n as f64)))
    }

    #[expect(clippy::cast_precision_loss, reason = "as encoding/json does")]
    fn visit_u128<E>(self, n: u128) -> Result<Document, E> {
        Ok(Document(Node::Float(n as f64)))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Document, E> {
        Ok(Document(Node::Float(n)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Document, E> {
        Ok(Document(Node::from(text)))
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document(Node::Null))
    }

    fn visit_none<E>(self) -> Result<Document, E> {
        Ok(Document(Node::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Document, D::Error> {
        source.deserialize_any(Reader)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, source: D) -> Result<Document, D::Error> {
        source.deserialize_any(Reader)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Document, A::Error> {
        let mut items = Vec::new();
        while let Some(Document(item)) = source.next_element()? {
            items.push(item);
        }
        Ok(Document(Node::from(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Document, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(Document(key)) = source.next_key()? {
            let Some(key) = scalar_text(&key) else {
                return Err(A::Error::custom("a key is a list, a map or null"));
            };
            let Document(value) = source.next_value()?;
            entries.insert(key, value);
        }
        let entries = entries
            .into_iter()
            .map(|(key, value)| (Key::new(&key), value));
        Ok(Document(Node::Map(entries.collect::<Map>())))
    }
}

/// A scalar as text, where only text can stand: `1.10` is `1.1`, `on` is `true`.
///
/// Source: sigs.k8s.io/yaml, `convertToJSONableObject`.
pub(crate) fn scalar_text(node: &Node) -> Option<String> {
    match node {
        Node::List(_) | Node::Map(_) | Node::Null => None,
        Node::Float(n) => Some(shortest(*n)),
        node => Some(node.to_text().into_owned()),
    }
}

/// The text of a value, without a line break at its end.
///
/// # Errors
/// The budget is spent.
pub(crate) fn write(value: &Value, engine: &mut Engine<'_>) -> Result<String, Failure> {
    write_with(value, engine, false)
}

/// The same with the items of lists indented: `toYamlPretty`.
///
/// # Errors
/// The budget is spent.
pub(crate) fn write_pretty(value: &Value, engine: &mut Engine<'_>) -> Result<String, Failure> {
    write_with(value, engine, true)
}

fn write_with(value: &Value, engine: &mut Engine<'_>, pretty: bool) -> Result<String, Failure> {
    engine.whole(value)?;
    let node = value.to_node();
    let mut out = Writer {
        out: String::new(),
        pretty,
        engine,
    };
    out.node(&node, 0, Place::Root)?;
    let Writer { mut out, .. } = out;
    if out.ends_with('\n') {
        out.pop();
    }
    Ok(out)
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    /// Behind `key:`
    Key,
    /// Behind `- `
    Item,
}

struct Writer<'w, 'c> {
    out: String,
    /// Whether the items of a list stand deeper than its key.
    pretty: bool,
    engine: &'w mut Engine<'c>,
}

impl Writer<'_, '_> {
    /// Writes a value and a line break. `indent` is the column of its keys or items.
    fn node(&mut self, node: &Node, indent: usize, place: Place) -> Result<(), Failure> {
        match node {
            Node::Map(map) if !map.is_empty() => {
                if place == Place::Key {
                    self.push("\n")?;
                }
                for (at, (key, value)) in map.iter().enumerate() {
                    // The first key of an item stands behind its dash.
                    if at > 0 || place != Place::Item {
                        self.spaces(indent)?;
                    }
                    self.key(key, indent)?;
                    // The items of a list stand below the key, in its column.
                    let deeper = match value {
                        Node::List(_) if !self.pretty => indent,
                        _ => indent + 2,
                    };
                    self.node(value, deeper, Place::Key)?;
                }
                Ok(())
            }
            Node::List(items) if !items.is_empty() => {
                if place == Place::Key {
                    self.push("\n")?;
                }
                for (at, item) in items.iter().enumerate() {
                    if at > 0 || place != Place::Item {
                        self.spaces(indent)?;
                    }
                    self.push("-")?;
                    if is_block(item) {
                        self.push(" ")?;
                    }
                    self.node(item, indent + 2, Place::Item)?;
                }
                Ok(())
            }
            node => {
                if place != Place::Root && !self.out.ends_with("- ") {
                    self.push(" ")?;
                }
                let column = self.column();
                let text = match node {
                    Node::Null => "null".to_owned(),
                    Node::Map(_) => "{}".to_owned(),
                    Node::List(_) => "[]".to_owned(),
                    Node::Float(n) => float(*n),
                    Node::Str(text) => {
                        scalar(text, if place == Place::Root { 2 } else { indent }, column)
                    }
                    node => node.to_text().into_owned(),
                };
                self.push(&text)?;
                if text.ends_with('\n') && text.starts_with('|') {
                    Ok(())
                } else {
                    self.push("\n")
                }
            }
        }
    }

    fn key(&mut self, key: &str, indent: usize) -> Result<(), Failure> {
        let text = inline(key);
        if text.len() > LONGEST_KEY {
            self.push("? ")?;
            self.push(&text)?;
            self.push("\n")?;
            self.spaces(indent)?;
        } else {
            self.push(&text)?;
        }
        self.push(":")
    }

    fn column(&self) -> usize {
        let start = self.out.rfind('\n').map_or(0, |at| at + 1);
        self.out[start..].chars().count()
    }

    fn spaces(&mut self, count: usize) -> Result<(), Failure> {
        self.push(&" ".repeat(count))
    }

    fn push(&mut self, text: &str) -> Result<(), Failure> {
        self.engine.text(text.len())?;
        self.out.push_str(text);
        Ok(())
    }
}

/// Whether a value starts with keys or dashes.
fn is_block(node: &Node) -> bool {
    match node {
        Node::Map(map) => !map.is_empty(),
        Node::List(items) => !items.is_empty(),
        _ => false,
    }
}

/// A float as yaml.v2 writes it after it was JSON: digits for what fits in 64 bits, else Go's `%g`.
fn float(n: f64) -> String {
    const MOST: f64 = 18_446_744_073_709_551_615.0;
    if n.fract() == 0.0 && (0.0..MOST).contains(&n) {
        return format!("{n}");
    }
    shortest(n)
}

/// A float as Go's `%g` has it.
fn shortest(n: f64) -> String {
    let text = format!("{n:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{n}"),
    }
}

/// A text that may go over lines: its lines are indented by `indent`, the first begins at `column`.
fn scalar(text: &str, indent: usize, column: usize) -> String {
    let look = Look::at(text);
    if text.contains('\n') && look.block_allowed {
        return literal(text, indent);
    }
    let quoted = text.contains('\n') || is_other(text);
    if !quoted && look.plain_allowed {
        return folded(text, indent, column, false);
    }
    if !quoted && look.single_allowed {
        return format!(
            "'{}'",
            folded(&text.replace('\'', "''"), indent, column + 1, true)
        );
    }
    double(text, Some((indent, column)))
}

/// A text in one line, as keys are.
fn inline(text: &str) -> String {
    let look = Look::at(text);
    if text.contains('\n') || is_other(text) {
        return double(text, None);
    }
    if look.plain_allowed && !text.is_empty() {
        return text.to_owned();
    }
    if look.single_allowed {
        return format!("'{}'", text.replace('\'', "''"));
    }
    double(text, None)
}

/// What a text looks like to the emitter.
///
/// Source: yaml.v2, `yaml_emitter_analyze_scalar`.
struct Look {
    plain_allowed: bool,
    single_allowed: bool,
    block_allowed: bool,
}

impl Look {
    fn at(text: &str) -> Look {
        let chars: Vec<char> = text.chars().collect();
        let is_break = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let blank = |at: usize| {
            chars
                .get(at)
                .is_none_or(|c| *c == ' ' || *c == '\t' || is_break(*c))
        };
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut break_space, mut space_break) =
            (false, false, false, false);
        let (mut after_space, mut after_break) = (false, false);
        for (at, c) in chars.iter().enumerate() {
            let followed = blank(at + 1);
            indicators |= match c {
                '#' if at > 0 => blank(at - 1),
                ':' => followed,
                '?' | '-' if at == 0 => followed,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' | '#' => at == 0,
                _ => false,
            };
            special |= !is_printable(*c);
            if *c == ' ' {
                break_space |= after_break;
                (after_space, after_break) = (true, false);
            } else if is_break(*c) {
                breaks = true;
                space_break |= after_space;
                (after_space, after_break) = (false, true);
            } else {
                (after_space, after_break) = (false, false);
            }
        }
        let edge = |c: Option<&char>| c.is_some_and(|c| *c == ' ' || is_break(*c));
        let (first, last) = (chars.first(), chars.last());
        let outside = edge(first) || edge(last);
        let unsafe_text = space_break || special;
        Look {
            plain_allowed: !(indicators || outside || break_space || unsafe_text || breaks),
            single_allowed: !(break_space || unsafe_text),
            block_allowed: !(last == Some(&' ') || unsafe_text || chars.is_empty()),
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}

/// Text with line breaks where it is too long: a single space between words may become one.
fn folded(text: &str, indent: usize, column: usize, quoted: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let (mut column, mut spaces) = (column, false);
    for (at, c) in chars.iter().enumerate() {
        let inside = !quoted || at > 0 && at + 1 < chars.len();
        if *c == ' ' {
            let next_is_space = chars.get(at + 1) == Some(&' ');
            if !spaces && column > WIDTH && inside && !next_is_space {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            } else {
                out.push(' ');
                column += 1;
            }
            spaces = true;
        } else {
            out.push(*c);
            column += 1;
            spaces = false;
        }
    }
    out
}

/// `|`, with its lines.
fn literal(text: &str, indent: usize) -> String {
    let mut out = String::from("|");
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = text.trim_end_matches('\n');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 if !body.is_empty() => {}
        _ => out.push('+'),
    }
    let indent = " ".repeat(indent);
    for line in text.split_inclusive('\n') {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        if line != "\n" {
            out.push_str(&indent);
        }
        out.push_str(line);
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// A text between double quotes, folded where lines may break.
fn double(text: &str, place: Option<(usize, usize)>) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::from("\"");
    let mut column = place.map_or(0, |(_, column)| column + 1);
    let mut spaces = false;
    for (at, c) in chars.iter().enumerate() {
        let before = out.len();
        match c {
            ' ' => {
                let breaks =
                    place.filter(|_| !spaces && column > WIDTH && at > 0 && at + 1 < chars.len());
                match breaks {
                    Some((indent, _)) => {
                        out.push('\n');
                        out.push_str(&" ".repeat(indent));
                        if chars.get(at + 1) == Some(&' ') {
                            out.push('\\');
                        }
                        column = 0;
                    }
                    None => out.push(' '),
                }
                spaces = true;
                column += out.len() - before - usize::from(breaks.is_some());
                continue;
            }
            '\0' => out.push_str("\\0"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\x1b' => out.push_str("\\e"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(*c) => out.push(*c),
            c if u32::from(*c) <= 0xff => out.push_str(&format!("\\x{:02X}", u32::from(*c))),
            c if u32::from(*c) <= 0xffff => out.push_str(&format!("\\u{:04X}", u32::from(*c))),
            c => out.push_str(&format!("\\U{:08X}", u32::from(*c))),
        }
        column += out[before..].chars().count();
        spaces = false;
    }
    out.push('"');
    out
}

/// Whether a plain text would read as something else than text.
///
/// Source: yaml.v2, `resolve` and `isBase60Float`.
fn is_other(text: &str) -> bool {
    const WORDS: [&str; 36] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no",
        "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "", "~", "null", "Null",
        "NULL", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "-.inf", "+.Inf",
    ];
    if WORDS.contains(&text) || ["+.INF", "-.Inf", "-.INF"].contains(&text) {
        return true;
    }
    match text.bytes().next() {
        Some(b'.') => go_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => is_date(text) || is_number(text) || is_base_60(text),
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    let plain = text.replace('_', "");
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let radix = |prefix: [&str; 2], radix: u32| {
        let digits = prefix.iter().find_map(|p| unsigned.strip_prefix(p));
        digits.is_some_and(|d| u64::from_str_radix(d, radix).is_ok() && !d.starts_with('+'))
    };
    let octal =
        unsigned.len() > 1 && unsigned.starts_with('0') && u64::from_str_radix(unsigned, 8).is_ok();
    let decimal = unsigned.parse::<u64>().is_ok()
        && !unsigned.starts_with('+')
        && (unsigned == "0" || !unsigned.starts_with('0'));
    octal
        || decimal
        || radix(["0x", "0X"], 16)
        || radix(["0o", "0O"], 8)
        || radix(["0b", "0B"], 2)
        || yaml_float(&plain)
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn yaml_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_exponent = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    is_mantissa && is_exponent
}

/// What Go's `ParseFloat` takes, of texts that begin with a point.
fn go_float(text: &str) -> bool {
    yaml_float(&text.replace('_', "")) && !text.contains('_')
}

fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let is_first = first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut count = 0;
    let others = parts.all(|part| {
        count += 1;
        matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    let fraction = fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    is_first && others && count > 0 && fraction
}

/// Whether a text is one of the timestamps that yaml.v2 knows.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let year = bytes.len() > 4 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-';
    if !year {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let number = |part: Option<&str>| -> Option<i8> {
        let part = part.filter(|p| matches!(p.len(), 1 | 2))?;
        part.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| part.parse().ok())?
    };
    let year: Option<i16> = parts.next().and_then(|year| year.parse().ok());
    let (month, day) = (number(parts.next()), number(parts.next()));
    let valid = match (year, month, day, parts.next()) {
        (Some(year), Some(month), Some(day), None) => {
            jiff::civil::Date::new(year, month, day).is_ok()
        }
        _ => false,
    };
    let Some((separator, time)) = time else {
        return valid;
    };
    let (clock, zone) = match separator {
        " " => (time, "Z"),
        _ => match time.find(['Z', '+', '-']) {
            Some(at) => time.split_at(at),
            None => return false,
        },
    };
    let zone_is_sound = zone == "Z"
        || matches!(zone.as_bytes(), [b'+' | b'-', a, b, b':', c, d]
            if [a, b, c, d].iter().all(|b| b.is_ascii_digit()));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(|part| number(Some(part)));
    let clock = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(Some(h)), Some(Some(m)), Some(Some(s)), None) => h < 24 && m < 60 && s < 60,
        _ => false,
    };
    let fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    valid && clock && zone_is_sound && fraction
}
