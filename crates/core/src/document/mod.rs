//! Files and streams to typed documents.
//!
//! ```text
//! text ─ split, parse ─► Tree (values with positions) ─ normalise ─► Tree in today's spelling
//!      ─ check against the schema of the API types ─► KatalogSpec, or every problem with its place
//! ```
//!
//! Objects from a cluster take the same way without positions.

mod tree;
mod yaml;

pub use tree::{Key, Span, Tree, TreeValue, Verbatim};
