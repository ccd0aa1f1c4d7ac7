//! List pages and watch events: decodes bytes as they arrive into objects, of which only the parts that a [`Projection`] selects are
//! kept.
//!
//! ```text
//!  page ──── Splitter ──► text of one item ─┐
//!                                           ├─► Projection::decode ──► Node, marked where a part cannot be read
//!  watch ─── Lines ─────► text of one event ┘
//! ```
//!
//! An unreadable object affects only itself: the other objects of its page or watch are decoded. Its name is read from its
//! metadata, whatever the rest contains.

mod events;
mod page;
mod splitter;
mod version;

pub use self::{
    events::{Event, Lines},
    page::{BadPage, Listed, Page},
    splitter::{LARGEST_OBJECT, SplitError},
    version::Version,
};
#[cfg(doc)]
use crate::value::Projection;
