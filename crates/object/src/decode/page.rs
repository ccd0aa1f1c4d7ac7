//! List pages, decoded item by item as they arrive: a page is never held completely, neither as text nor as trees.

use serde::Deserialize;

use super::splitter::{JsonPart, SplitError, Splitter};
use crate::value::{Node, Projection};

/// A part of a page.
#[derive(Debug, PartialEq)]
pub enum Listed {
    /// The resourceVersion of all pages of the list; precedes all objects.
    Version(String),
    /// An object, as far as it was requested and is readable ([`Projection::decode`]). The API server omits `apiVersion` and `kind` in
    /// the items of built-in kinds.
    Object(Node),
}

/// Why a page ended early.
#[derive(Debug, thiserror::Error)]
pub enum BadPage {
    /// The text cannot be split.
    #[error("the list cannot be read: {0}")]
    Uncut(#[from] SplitError),
    /// The text around the items is not a list. The message does not quote it.
    #[error("unexpected response (line {}, column {})", .0.line(), .0.column())]
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

/// A page that is being received.
pub struct Page<'s> {
    projection: &'s Projection,
    splitter: Splitter,
    /// Objects that precede the version, which no known server sends.
    early: Option<Vec<Node>>,
}

impl<'s> Page<'s> {
    /// A page of which nothing was received.
    pub fn new(projection: &'s Projection) -> Self {
        Self {
            projection,
            splitter: Splitter::default(),
            early: Some(Vec::new()),
        }
    }

    /// Processes received bytes and passes complete parts to `take`. Parts that were passed on before an error are still valid.
    ///
    /// # Errors
    /// [`BadPage`]; an unreadable item is not an error.
    pub fn feed(&mut self, text: &[u8], take: &mut dyn FnMut(Listed)) -> Result<(), BadPage> {
        let (projection, early) = (self.projection, &mut self.early);
        self.splitter.feed(text, &mut |found| {
            let object = match found {
                JsonPart::Items(head) => {
                    let head: Envelope = serde_json::from_slice(head)?;
                    if !head.metadata.resource_version.is_empty() {
                        *early = None;
                        take(Listed::Version(head.metadata.resource_version));
                    }
                    return Ok::<(), BadPage>(());
                }
                JsonPart::Item(text) => projection.decode(text),
                JsonPart::Beginning(text) => projection.decode_beginning(text),
            };
            match early {
                Some(early) => early.push(object),
                None => take(Listed::Object(object)),
            }
            Ok(())
        })
    }

    /// Ends the page; returns the continue token of the next page, or `None` on the last.
    ///
    /// # Errors
    /// [`SplitError::Short`] if the end of the page is missing.
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
