//! The `resourceVersion` of objects.

use std::fmt;

use crate::value::Node;

/// A resourceVersion: a number on all known servers, opaque otherwise.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(VersionForm);

#[derive(Clone, PartialEq, Eq, Hash)]
enum VersionForm {
    Number(u64),
    Text(Box<str>),
}

/// Parses a number, if formatting it gives the same text.
fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self(plain_number(text).map_or_else(|| VersionForm::Text(text.into()), VersionForm::Number))
    }
}

impl Version {
    /// True if this version is newer than another. If either is not a number, any difference counts as newer.
    ///
    /// Source: KEP-5504, comparable resource versions.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(one), Some(other)) => one > other,
            _ => self != other,
        }
    }

    /// True if this version is certainly older than another: both are numbers.
    pub fn is_behind(&self, other: &Self) -> bool {
        let numbers = self.number().zip(other.number());
        numbers.is_some_and(|(one, other)| one < other)
    }

    fn number(&self) -> Option<u64> {
        match &self.0 {
            VersionForm::Number(number) => Some(*number),
            VersionForm::Text(text) => text.parse().ok(),
        }
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            VersionForm::Number(_) => 0,
            VersionForm::Text(text) => text.len(),
        }
    }
}

impl PartialEq<str> for Version {
    fn eq(&self, text: &str) -> bool {
        match &self.0 {
            VersionForm::Number(number) => plain_number(text) == Some(*number),
            VersionForm::Text(own) => **own == *text,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            VersionForm::Number(number) => number.fmt(f),
            VersionForm::Text(text) => f.write_str(text),
        }
    }
}

impl From<&Version> for Node {
    fn from(version: &Version) -> Self {
        Self::from(version.to_string())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_where_they_are() {
        let version = Version::from;
        assert!(version("10").is_newer_than(&version("9")));
        assert!(!version("9").is_newer_than(&version("10")));
        assert!(!version("9").is_newer_than(&version("9")));
        assert!(version("a").is_newer_than(&version("9")));
        assert!(version("9").is_newer_than(&version("a")));
        assert!(!version("a").is_newer_than(&version("a")));
        assert!(version("9").is_behind(&version("10")) && !version("10").is_behind(&version("9")));
        assert!(!version("a").is_behind(&version("9")) && !version("9").is_behind(&version("a")));
        // Leading zeros are kept, but have no effect.
        assert!(!version("009").is_newer_than(&version("10")));
        assert_eq!(size_of::<Version>(), 16);
    }
}
