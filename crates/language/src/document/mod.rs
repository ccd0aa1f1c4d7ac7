//! Reads files and streams into typed documents.
//!
//! ```text
//! text ─ split, parse ─► Tree (values with positions) ─ normalise ─► Tree in the present spelling
//!      ─ check against the shape of the API types ─► KatalogSpec or MotifSpec, or every problem with its position
//! ```
//!
//! Objects from a cluster follow the same steps without positions: [`Source::from_object`].

pub mod aliases;
mod check;
mod convert;
mod depends;
mod e2e;
mod edit;
mod fix;
mod hints;
mod kinds;
mod komposer;
mod lists;
mod normalise;
mod read;
mod rules;
mod simulate;
mod source;
mod stream;
mod yaml;

pub use crate::tree::{FileSpan, Tree, TreeKey, TreeValue, Verbatim};
pub use convert::{Converted, convert};
pub use depends::check as check_dependencies;
pub use e2e::old_calls;
pub use kinds::DocumentKind;
pub use read::{
    Document, E2eDocument, KatalogDocument, KomposerDocument, MotifDocument, SimulateDocument,
    read_katalog, read_komposer, read_motif, read_ops, read_simulate, read_what_can_be,
};
pub use read::{read_included, read_partly, read_present};
pub use simulate::check_resources;
pub use source::{Source, Stream, parse_stream};
pub use stream::{Documents, read_stream};

pub use normalise::applies as alias_applies;
