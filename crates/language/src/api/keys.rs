//! The keys that identify Katalogs.

use std::fmt;

pub use orkestra_object::{ChildKey, GroupKind, ObjectKey, ResourceType};

/// The Katalog or Komposer that declares something. Those from files live in namespace `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KatalogRef {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// Its kind.
    pub kind: Declaring,
}

/// The kinds that declare operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Declaring {
    /// It declares them itself.
    #[default]
    Katalog,
    /// It composes them from sources.
    Komposer,
}

impl Declaring {
    /// Returns the kind, as in a manifest.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Katalog => "Katalog",
            Self::Komposer => "Komposer",
        }
    }

    /// Returns its plural in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Katalog => "katalogs",
            Self::Komposer => "komposers",
        }
    }
}

/// What stands before the namespace of a Komposer.
const KOMPOSER: &str = "komposer/";

impl KatalogRef {
    /// The Katalog of that namespace and name.
    pub fn new(namespace: String, name: String) -> Self {
        Self {
            namespace,
            name,
            kind: Declaring::Katalog,
        }
    }

    /// Returns that of the same namespace and name with this kind.
    #[must_use]
    pub fn of(mut self, kind: Declaring) -> Self {
        self.kind = kind;
        self
    }

    /// The reverse of `Display`.
    pub fn parse(text: &str) -> Self {
        let (kind, text) = match text.strip_prefix(KOMPOSER) {
            Some(rest) if rest.contains('/') => (Declaring::Komposer, rest),
            _ => (Declaring::Katalog, text),
        };
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self::new(namespace.to_owned(), name.to_owned()).of(kind)
    }

    /// Returns it with its kind, for messages: `Komposer shop/waters`.
    pub fn titled(&self) -> String {
        format!("{} {}/{}", self.kind.kind(), self.namespace, self.name)
    }
}

/// `shop/waters` for a Katalog, `komposer/shop/waters` for a Komposer.
impl fmt::Display for KatalogRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == Declaring::Komposer {
            f.write_str(KOMPOSER)?;
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
