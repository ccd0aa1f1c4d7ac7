//! The compact object tree that all other parts use.
//!
//! ```text
//!  JSON / YAML ── serde ──► Node ──┬── at(Path)          one value
//!                                  ├── project(&[Path])   only the parts that are read: a record
//!                                  ├── hash               the `applied` annotation, revisions
//!                                  └── serde / to_json ── JSON out
//!  JSON ── Projection ──► the Node that project returns, without building the rest of the tree
//! ```
//!
//! A [`Node`] takes 24 bytes plus its heap data; short texts are stored inline, keys are shared by the whole process ([`Key`]),
//! and integers are exact over the whole range that Kubernetes writes.

mod edit;
mod fault;
mod hash;
pub mod intern;
mod key;
pub mod nesting;
mod network;
mod node;
mod path;
mod projection;
mod quantity;
pub(crate) mod scan;

pub use edit::{project, set};
pub use fault::{Cause, Fault};
pub use hash::{hash, hash_text, hex_digits};
pub use key::Key;
pub use network::Network;
pub use node::{Node, map::Map};
pub use node::{float_text, serde::PlainNumbers};
pub use path::pointer_token;
pub use path::{BadPath, Path, PathStep};
pub use projection::Projection;
pub use quantity::{Quantity, QuantityError};

/// Replaces a hidden value in output. It is not base64, so an API server does not accept it in a Secret.
pub const MASK: &str = "***";
