//! Finds reads that are impossible or always empty, with their positions.

use orkestra_language::diagnostics::{Code, Severity};
use orkestra_plan::{PlaceRef, PlanPlace};

/// A read that is impossible, or always empty.
pub(crate) struct Unreadable {
    /// The place that contains the read.
    pub(crate) place: PlanPlace,
    /// The field of the place, unless it is the place itself.
    pub(crate) field: Option<&'static str>,
    /// The byte offset of the read in the field's text, if known.
    pub(crate) offset: Option<usize>,
    /// Whether it is an error or a warning.
    pub(crate) severity: Severity,
    /// The kind of problem.
    pub(crate) code: Code,
    /// The problem.
    pub(crate) message: String,
    /// The fix.
    pub(crate) hint: Option<String>,
}

impl Unreadable {
    /// Returns the place of the read.
    pub(crate) fn at(&self) -> PlaceRef<'_> {
        PlaceRef {
            place: &self.place,
            field: self.field,
        }
    }
}
