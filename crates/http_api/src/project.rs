//! Parts of JSON documents: the parts that a page shows are kept while a text is parsed, everything else is skipped.
//!
//! The size of the result is limited, whatever the text contains: a part that is too large or too deep is null, and counted.
//! Skipping does not recurse, so its depth does not matter.

use std::{cell::Cell, collections::BTreeMap, fmt};

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The greatest depth of a kept part. JSON that is deeper than 127 is not parsed.
const DEEPEST: usize = 64;
/// The overhead of a list item or a key beside its text, in bytes.
const OVERHEAD: usize = 16;

/// The parts that are kept.
#[derive(Clone, Debug)]
pub(crate) enum WantedParts {
    /// A complete value, if it has at most so many bytes.
    All(usize),
    /// Some fields of an object, or items of a list by their index; the result is an object.
    Fields(BTreeMap<String, WantedParts>),
    /// The same of each item of a list, up to so many items.
    Each(Box<WantedParts>, usize),
    /// A list of two: the wanted part, and whether a part of it was too large.
    Judged(Box<WantedParts>),
}

impl WantedParts {
    /// Selects fields.
    pub(crate) fn fields<'a>(fields: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let fields = fields.into_iter();
        Self::Fields(fields.map(|(key, want)| (key.to_owned(), want)).collect())
    }

    /// The value at `path`, of at most so many bytes; numbers index lists.
    pub(crate) fn at(path: &[&str], bytes: usize) -> Self {
        let (want, path) = (Self::All(bytes), path.iter().rev());
        path.fold(want, |want, part| Self::fields([(*part, want)]))
    }

    /// Parses a text; also returns how many parts were too large to be kept.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(crate) fn read(&self, text: &[u8]) -> serde_json::Result<(Value, usize)> {
        let cut = Cell::new(0);
        let mut reader = serde_json::Deserializer::from_slice(text);
        let value = PartReader {
            want: self,
            cut: &cut,
        }
        .deserialize(&mut reader)?;
        reader.end()?;
        Ok((value, cut.get()))
    }
}

/// Reads the wanted parts of a value.
#[derive(Clone, Copy)]
struct PartReader<'w> {
    want: &'w WantedParts,
    /// Parts that were too large.
    cut: &'w Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for PartReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        let bytes = match self.want {
            WantedParts::All(bytes) => bytes,
            WantedParts::Fields(_) | WantedParts::Each(..) => return reader.deserialize_any(self),
            WantedParts::Judged(want) => {
                let before = self.cut.get();
                let value = PartReader { want, ..self }.deserialize(reader)?;
                let is_cut = self.cut.get() > before;
                return Ok(Value::Array(vec![value, is_cut.into()]));
            }
        };
        let whole = WholeReader {
            left: &Cell::new(Some(*bytes)),
            depth: 0,
        };
        let value = whole.deserialize(reader)?;
        if whole.left.get().is_some() {
            return Ok(value);
        }
        self.cut.set(self.cut.get() + 1);
        Ok(Value::Null)
    }
}

/// A value that is neither an object nor a list has no parts.
macro_rules! no_parts {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<Value, E> {
            Ok(Value::Null)
        })*
    };
}

impl<'de> Visitor<'de> for PartReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    no_parts!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        match self.want {
            WantedParts::Each(want, most) => {
                let part = PartReader { want, ..self };
                while items.len() < *most {
                    match list.next_element_seed(part)? {
                        Some(item) => items.push(item),
                        None => return Ok(Value::Array(items)),
                    }
                }
                if list.next_element::<IgnoredAny>()?.is_some() {
                    self.cut.set(self.cut.get() + 1);
                }
            }
            WantedParts::Fields(wanted) => {
                let indexes = wanted.keys().filter_map(|key| key.parse::<usize>().ok());
                let highest = indexes.max().unwrap_or(0);
                let mut kept = Map::new();
                for index in 0..=highest {
                    let key = index.to_string();
                    let Some(want) = wanted.get(&key) else {
                        match list.next_element::<IgnoredAny>()? {
                            Some(_) => continue,
                            None => return Ok(Value::Object(kept)),
                        }
                    };
                    match list.next_element_seed(PartReader { want, ..self })? {
                        Some(item) => kept.insert(key, item),
                        None => return Ok(Value::Object(kept)),
                    };
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Value::Object(kept));
            }
            // These read a value before its type is known.
            WantedParts::All(_) | WantedParts::Judged(_) => {}
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let want = match self.want {
                WantedParts::Fields(wanted) => wanted.get(&key),
                _ => None,
            };
            match want {
                Some(want) => {
                    let value = map.next_value_seed(PartReader { want, ..self })?;
                    kept.insert(key, value);
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(kept))
    }
}

/// Reads a complete value, up to a number of bytes.
#[derive(Clone, Copy)]
struct WholeReader<'b> {
    /// The remaining bytes; `None` once they were not enough.
    left: &'b Cell<Option<usize>>,
    depth: usize,
}

impl WholeReader<'_> {
    /// Takes bytes; false if too few remain.
    fn take(self, bytes: usize) -> bool {
        let left = self.left.get().and_then(|left| left.checked_sub(bytes));
        self.left.set(left);
        left.is_some()
    }

    /// One level deeper.
    fn below(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

impl<'de> DeserializeSeed<'de> for WholeReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if !self.take(OVERHEAD) || self.depth > DEEPEST {
            self.left.set(None);
            return IgnoredAny::deserialize(reader).map(|_| Value::Null);
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for WholeReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        let fits = self.take(value.len());
        Ok(if fits { value.into() } else { Value::Null })
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while self.left.get().is_some() {
            match list.next_element_seed(self.below())? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while self.left.get().is_some() {
            let Some(key) = map.next_key::<String>()? else {
                return Ok(Value::Object(kept));
            };
            self.take(key.len());
            let value = map.next_value_seed(self.below())?;
            kept.insert(key, value);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(want: &WantedParts, text: &str) -> (Value, usize) {
        want.read(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_the_parts_that_are_wanted_are_kept() {
        let want = WantedParts::fields([
            ("a", WantedParts::All(100)),
            ("c", WantedParts::All(100)),
            ("d", WantedParts::at(&["1", "x"], 100)),
            ("s", WantedParts::at(&["below", "text"], 100)),
        ]);
        let text = r#"{"a": [1, {"k": null}], "b": {"c": 1}, "d": [{"x": 1}, {"x": 2, "y": 3}, {"x": 4}], "s": "text"}"#;
        let (value, cut) = read(&want, text);
        let expected = json!({"a": [1, {"k": null}], "d": {"1": {"x": 2}}, "s": null});
        assert_eq!((value, cut), (expected, 0));
        let each = WantedParts::Each(
            Box::new(WantedParts::fields([("n", WantedParts::All(20))])),
            2,
        );
        let (value, cut) = read(&each, r#"[{"n": 1, "m": 2}, {}, {"n": 3}, {"n": 4}]"#);
        assert_eq!((value, cut), (json!([{"n": 1}, {}]), 1));
        let judged = WantedParts::Each(
            Box::new(WantedParts::Judged(Box::new(WantedParts::at(&["n"], 20)))),
            9,
        );
        let text = r#"[{"n": 1}, {"n": "too long a text"}, {}]"#;
        let (value, _) = read(&judged, text);
        assert_eq!(
            value,
            json!([[{"n": 1}, false], [{"n": null}, true], [{}, false]])
        );
        // The index is beyond the end of every list.
        let far = WantedParts::at(&["4000000000", "x"], 20);
        assert_eq!(read(&far, "[1, 2]").0, json!({}));
    }

    #[test]
    fn a_part_that_is_too_large_or_too_deep_is_null_and_the_rest_is_kept() {
        let want = WantedParts::fields([
            ("big", WantedParts::All(64)),
            ("small", WantedParts::All(64)),
        ]);
        let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
        for big in [
            format!("{:?}", "x".repeat(65)),
            format!("[{}1]", "1,".repeat(64)),
            format!("{{{}\"z\":1}}", "\"k\":1,".repeat(64)),
            deep,
        ] {
            let (value, cut) = read(&want, &format!(r#"{{"big": {big}, "small": [true]}}"#));
            assert_eq!((value, cut), (json!({"big": null, "small": [true]}), 1));
        }
    }

    #[test]
    fn what_is_skipped_may_be_as_deep_as_it_likes() {
        let want = WantedParts::fields([("name", WantedParts::All(64))]);
        let depth = 100_000;
        let (open, close) = ("{\"x\":[".repeat(depth), "]}".repeat(depth));
        let (value, _) = read(
            &want,
            &format!(r#"{{"junk": {open}{close}, "name": "one"}}"#),
        );
        assert_eq!(value, json!({"name": "one"}));
        for bad in ["", "{", r#"{"name": 1} 2"#, "nul"] {
            assert!(want.read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
