//! Pages of lists, read item by item while they arrive: a page is never held, neither as text nor as trees.

use serde::Deserialize;

use super::splitter::{Found, Splitter, Uncut};
use crate::value::{Node, Sieve};

/// What comes out of a page.
#[derive(Debug, PartialEq)]
pub enum Listed {
    /// The state that all pages of the list show; comes in front of all objects.
    Version(String),
    /// An object, as far as it was asked for and can be read ([`Sieve::decode`]). The API server leaves `apiVersion` and
    /// `kind` out of the items of built-in kinds.
    Object(Node),
}

/// Why a page ended early.
#[derive(Debug, thiserror::Error)]
pub enum BadPage {
    /// It cannot be taken apart.
    #[error("the list cannot be read: {0}")]
    Uncut(#[from] Uncut),
    /// What is around the items is not a list. The message quotes nothing of it.
    #[error("the answer is not what was asked for (line {}, column {})", .0.line(), .0.column())]
    NoList(#[from] serde_json::Error),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// A page on its way.
pub struct Page<'s> {
    sieve: &'s Sieve,
    splitter: Splitter,
    /// Objects that came in front of the version, which no server sends so.
    early: Option<Vec<Node>>,
}

impl<'s> Page<'s> {
    /// Nothing of it has arrived.
    pub fn new(sieve: &'s Sieve) -> Self {
        Self {
            sieve,
            splitter: Splitter::default(),
            early: Some(Vec::new()),
        }
    }

    /// Takes in what has arrived and hands out what is complete. What was handed out before an error is true all the same.
    ///
    /// # Errors
    /// [`BadPage`]: of an item that cannot be read there is none.
    pub fn feed(&mut self, text: &[u8], take: &mut dyn FnMut(Listed)) -> Result<(), BadPage> {
        let (sieve, early) = (self.sieve, &mut self.early);
        self.splitter.feed(text, &mut |found| {
            let object = match found {
                Found::Items(head) => {
                    let head: Envelope = serde_json::from_slice(head)?;
                    if !head.metadata.resource_version.is_empty() {
                        *early = None;
                        take(Listed::Version(head.metadata.resource_version));
                    }
                    return Ok::<(), BadPage>(());
                }
                Found::Item(text) => sieve.decode(text),
                Found::Beginning(text) => sieve.decode_beginning(text),
            };
            match early {
                Some(early) => early.push(object),
                None => take(Listed::Object(object)),
            }
            Ok(())
        })
    }

    /// Ends it; returns what asks for the next page, or none on the last.
    ///
    /// # Errors
    /// [`Uncut::Short`] where its end has not come.
    pub fn end(self, take: &mut dyn FnMut(Listed)) -> Result<Option<String>, BadPage> {
        let Envelope { metadata } = serde_json::from_slice(&self.splitter.end()?)?;
        if let Some(early) = self.early {
            take(Listed::Version(metadata.resource_version));
            for object in early {
                take(Listed::Object(object));
            }
        }
        Ok(metadata.next.filter(|next| !next.is_empty()))
    }
}
