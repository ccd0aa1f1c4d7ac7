//! A failure of a pass, as reports show it.

use super::reason::Reason;

/// A failure about one child, or about the whole pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// The child, if its name is known; else the path in the Katalog.
    pub at: String,
    /// The problem, and the fix if there is one.
    pub message: String,
}
