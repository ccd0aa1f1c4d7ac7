//! List pages and watch events: bytes as they arrive to objects, of which no more is kept than a [`Sieve`] asks for.
//!
//! ```text
//!  page ──── Splitter ──► text of one item ─┐
//!                                           ├─► Sieve::decode ──► Node, marked where a part cannot be read
//!  watch ─── Lines ─────► text of one event ┘
//! ```
//!
//! An object that cannot be read is that object's trouble: the objects beside it, before it and after it are read. Its name is
//! read from its metadata whatever the rest is like.

mod events;
mod page;
mod splitter;
mod version;

#[cfg(test)]
mod tests;

pub use self::{
    events::{Event, Lines},
    page::{BadPage, Listed, Page},
    splitter::{LARGEST_OBJECT, Uncut},
    version::Version,
};
#[cfg(doc)]
use crate::value::Sieve;
