//! Objects: identifiers, kinds, and the required parts of commits, tags and trees.

use std::{fmt, str::FromStr};

/// The identifier of an object: the SHA-1 digest of its header and content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId([u8; 20]);

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    pub(crate) data: Vec<u8>,
}

/// A source of objects.
pub(crate) trait Objects {
    /// Returns an object.
    ///
    /// # Errors
    /// A sentence with the reason, if it is missing or exceeds a limit.
    fn object(&mut self, id: ObjectId) -> Result<Object, String>;
}

impl ObjectId {
    /// The identifier of an object with that content.
    pub(crate) fn of(kind: ObjectKind, data: &[u8]) -> Self {
        let mut context = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
        context.update(format!("{} {}\0", kind.name(), data.len()).as_bytes());
        context.update(data);
        let mut bytes = [0; 20];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }

    /// The identifier with these bytes, if they are 20.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.try_into().ok()?))
    }
}

impl FromStr for ObjectId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.as_bytes();
        if digits.len() != 40 {
            return Err(());
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(());
            // Two hexadecimal digits are a byte.
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).map_err(|_| ())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the identifier in a header of a commit (`tree`) or a tag (`object`).
pub(crate) fn header(data: &[u8], name: &str) -> Option<ObjectId> {
    let mut lines = data.split(|byte| *byte == b'\n');
    let value = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b" "))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// An entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: EntryKind,
    pub(crate) id: ObjectId,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Folder,
    File,
    /// A symbolic link or a submodule, which is not followed.
    Other,
}

/// Parses a tree. Names that could lead out of a folder make it invalid.
pub(crate) fn entries(data: &[u8]) -> Result<Vec<Entry>, String> {
    let broken = || "a tree is malformed".to_owned();
    let mut rest = data;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let space = rest
            .iter()
            .position(|byte| *byte == b' ')
            .ok_or_else(broken)?;
        let zero = rest.iter().position(|byte| *byte == 0).ok_or_else(broken)?;
        if zero < space || rest.len() < zero + 21 {
            return Err(broken());
        }
        let kind = match &rest[..space] {
            b"40000" | b"040000" => EntryKind::Folder,
            mode if mode.starts_with(b"100") => EntryKind::File,
            _ => EntryKind::Other,
        };
        let name = String::from_utf8_lossy(&rest[space + 1..zero]).into_owned();
        if name.is_empty() || [".", "..", ".git"].contains(&&*name) || name.contains(['/', '\\']) {
            let shown: String = name.chars().take(100).collect();
            return Err(format!(
                "a tree has the entry {shown:?}, which is not a file name"
            ));
        }
        let id = ObjectId::from_bytes(&rest[zero + 1..zero + 21]).ok_or_else(broken)?;
        found.push(Entry { name, kind, id });
        rest = &rest[zero + 21..];
    }
    Ok(found)
}
