//! The identity and version of an object. The type is small, since stores hold one for each object.

use std::fmt;

use crate::{
    decode::Version,
    keys::ObjectKey,
    value::{Key, Node, Path, Projection, hex_digits},
};

/// Why an object from the API server could not be recorded: required metadata, this field, is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an object without {0} came from the API server")]
pub struct Malformed(pub &'static str);

/// The part that every record has: the identity and version of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub resource_version: Version,
}

impl Identity {
    /// The fields of `metadata` that are read.
    pub const FIELDS: [&str; 4] = ["namespace", "name", "uid", "resourceVersion"];

    /// Reads it from an object's metadata.
    ///
    /// # Errors
    /// [`Malformed`] if name, uid or resourceVersion is absent.
    pub fn read(object: &Node) -> Result<Self, Malformed> {
        let text = |field: &'static str| object.meta_text(field).ok_or(Malformed(field));
        Ok(Self {
            key: ObjectKey {
                namespace: object
                    .meta_text("namespace")
                    .filter(|text| !text.is_empty())
                    .map(Key::from),
                name: text("name")?.into(),
            },
            uid: text("uid")?.into(),
            resource_version: text("resourceVersion")?.into(),
        })
    }

    /// Returns the fields that [`Identity::read`] reads.
    pub fn projection() -> Projection {
        let paths = Self::FIELDS.map(|field| Path::of_fields(["metadata", field]));
        Projection::new(&paths)
    }

    /// Returns the bytes on the heap, without the key, which is shared.
    pub fn heap_bytes(&self) -> usize {
        self.uid.heap_bytes() + self.resource_version.heap_bytes()
    }
}

/// A uid: 16 bytes if it is a UUID in the form of Kubernetes, which it is on all known servers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    Uuid([u8; 16]),
    Text(Box<str>),
}

/// The positions of dashes in a UUID's text.
const DASHES: [usize; 4] = [8, 13, 18, 23];
/// The length of a UUID's text.
const UUID_LENGTH: usize = 36;

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| Form::Text(text.into()), Form::Uuid))
    }
}

/// Returns the bytes of a UUID in its canonical form, so that the text can be restored exactly.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; UUID_LENGTH] = text.as_bytes().try_into().ok()?;
    let has_dashes = DASHES.iter().all(|at| text[*at] == b'-');
    let digits = text.iter().copied().filter(|byte| *byte != b'-');
    // An additional dash leaves too few digits.
    if has_dashes { from_hex(digits) } else { None }
}

/// Returns the canonical form of a UUID.
fn uuid_text(bytes: &[u8; 16]) -> [u8; UUID_LENGTH] {
    let mut digits = hex_digits(bytes);
    let mut text = [b'-'; UUID_LENGTH];
    let places = text.iter_mut().enumerate();
    for (_, place) in places.filter(|(at, _)| !DASHES.contains(at)) {
        *place = digits.next().unwrap_or_default();
    }
    text
}

/// Parses 32 lower-case hexadecimal digits into 16 bytes.
pub fn from_hex(digits: impl Iterator<Item = u8>) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut count = 0;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        let byte = bytes.get_mut(count / 2)?;
        *byte = *byte << 4 | value;
        count += 1;
    }
    (count == 32).then_some(bytes)
}

impl Uid {
    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Uuid(_) => 0,
            Form::Text(text) => text.len(),
        }
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, text: &str) -> bool {
        match &self.0 {
            Form::Uuid(bytes) => uuid_text(bytes) == *text.as_bytes(),
            Form::Text(own) => **own == *text,
        }
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Text(text) => f.write_str(text),
            Form::Uuid(bytes) => f.write_str(str::from_utf8(&uuid_text(bytes)).unwrap_or_default()),
        }
    }
}

impl From<&Uid> for Node {
    fn from(uid: &Uid) -> Self {
        Self::from(uid.to_string())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_a_uuid_takes_no_heap_and_what_is_none_stays_what_it_is() {
        let uid = Uid::from("0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4d");
        assert_eq!(uid.to_string(), "0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4d");
        assert_eq!((uid.heap_bytes(), size_of::<Uid>()), (0, 24));
        for text in [
            "",
            "uid-1",
            "0B0C5FD1-8E3C-4C9A-9D4E-2F1A7E6B5C4D",
            "0b0c5fd18-e3c-4c9a-9d4e-2f1a7e6b5c4d",
            "0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4d ",
            "0b0c5fd1-8e3c-4c9a-9d4e-2f1a7e6b5c4g",
        ] {
            let uid = Uid::from(text);
            assert_eq!(
                (uid.to_string(), uid.heap_bytes()),
                (text.to_owned(), text.len())
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in prop_oneof![".*", "[0-9]{1,22}", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"]) {
            prop_assert_eq!(Uid::from(&*text).to_string(), text.clone());
            prop_assert_eq!(Version::from(&*text).to_string(), text);
        }
    }
}
