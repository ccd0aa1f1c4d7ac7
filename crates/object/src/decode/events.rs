//! Decodes watch events from the bytes of their lines; only the needed parts of the object are kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::{
    splitter::{LARGEST_OBJECT, empty},
    version::Version,
};
use crate::value::{Node, Projection, scan};

/// The content of a line of a watch.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// The present state of an object, as far as it was requested and is readable ([`Projection::decode`]).
    Put(Node),
    /// The last state of an object that is deleted, or no longer selected.
    Gone(Node),
    /// The watch has reported everything up to this version.
    Bookmark(Version),
    /// The API server ends the watch: its `Status`.
    Refused(Node),
    /// A line that is not an event: its content is lost.
    Lost,
}

const ERROR: &str = "ERROR";

/// The lines of a watch as they arrive.
#[derive(Default)]
pub struct Lines {
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// Whether that line is too long: its rest is skipped.
    is_large: bool,
}

impl Lines {
    /// Processes received bytes, up to the end of a line. Returns the number of bytes processed, and the event of the line:
    /// `None` if the line is incomplete or empty, or its event type is unknown.
    pub fn feed(&mut self, part: &[u8], projection: &Projection) -> (usize, Option<Event>) {
        let end = memchr::memchr(b'\n', part);
        let text = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
        let used = end.map_or(part.len(), |end| end + 1);
        if end.is_some() && self.line.is_empty() && text.len() <= LARGEST_OBJECT {
            return (used, read(projection, text));
        }
        let room = LARGEST_OBJECT - self.line.len();
        self.is_large |= text.len() > room;
        self.line
            .extend_from_slice(text.get(..room).unwrap_or(text));
        if end.is_none() {
            return (used, None);
        }
        let event = if std::mem::take(&mut self.is_large) {
            read_parts(&self.line, |object| projection.decode_beginning(object))
        } else {
            read(projection, &self.line)
        };
        empty(&mut self.line);
        (used, event)
    }

    /// True if a line is incomplete.
    pub fn is_cut_off(&self) -> bool {
        !self.line.iter().all(u8::is_ascii_whitespace)
    }
}

/// Decodes a line.
fn read(projection: &Projection, line: &[u8]) -> Option<Event> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let reported = Line(projection)
        .deserialize(&mut deserializer)
        .and_then(|reported| deserializer.end().map(|()| reported));
    match reported {
        Ok((kind, object)) => event(&kind, object),
        Err(_) => read_parts(line, |object| projection.decode(object)),
    }
}

/// Decodes a line that is partly unreadable.
fn read_parts(line: &[u8], decode: impl Fn(&[u8]) -> Node) -> Option<Event> {
    let (mut kind, mut object) = (None, None);
    for (key, value) in scan::fields(line) {
        match &*key {
            "type" => kind = serde_json::from_slice::<String>(value).ok(),
            "object" => object = Some(value),
            _ => {}
        }
    }
    match (kind, object) {
        (Some(kind), Some(object)) if kind != ERROR => event(&kind, decode(object)),
        (_, Some(object)) => Some(refused(object)),
        // An error before the first event has no type.
        (_, None) => Some(refused(line)),
    }
}

fn refused(status: &[u8]) -> Event {
    let status = serde_json::from_slice::<Node>(status).unwrap_or_default();
    if status.get("kind").and_then(Node::as_str) == Some("Status") {
        Event::Refused(status)
    } else {
        Event::Lost
    }
}

fn event(kind: &str, object: Node) -> Option<Event> {
    Some(match kind {
        "ADDED" | "MODIFIED" => Event::Put(object),
        "DELETED" => Event::Gone(object),
        "BOOKMARK" => {
            let version = object.meta_text("resourceVersion")?;
            Event::Bookmark(version.into())
        }
        ERROR => Event::Refused(object),
        _ => return None,
    })
}

/// One line: an event's type and its object. The object of an error is kept completely.
struct Line<'s>(&'s Projection);

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = (String, Node);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = (String, Node);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut object) = (None::<String>, None);
        while let Some(key) = map.next_key::<String>()? {
            match (&*key, &kind) {
                ("type", _) => kind = Some(map.next_value()?),
                // Every known server sends the type first. If it does not, the event may be an error.
                ("object", Some(kind)) if kind != ERROR => {
                    object = Some(map.next_value_seed(self.0)?);
                }
                ("object", _) => object = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        let object = object.ok_or_else(|| A::Error::missing_field("object"))?;
        Ok((kind, object))
    }
}
