//! Permissions that a new revision of a source adds: pure.

use std::fmt;

use orkestra_core::{
    compose::{SourceRecord, claims::Claims},
    plan::Plan,
};

/// How many rules a message names.
const NAMED: usize = 10;

/// A revision of a source that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unapproved {
    /// The identity of the source.
    pub(crate) source: String,
    /// The digest to approve.
    pub(crate) digest: String,
    /// The permissions that it adds, a line for each resource.
    pub(crate) rules: Vec<String>,
}

impl fmt::Display for Unapproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.rules.iter().take(NAMED).cloned();
        let named = named.collect::<Vec<_>>().join("; ");
        write!(
            f,
            "the new revision of source {} needs additional permissions: {named}",
            self.source
        )?;
        if self.rules.len() > NAMED {
            write!(f, "; and {} more", self.rules.len() - NAMED)?;
        }
        write!(f, "; add {} to `spec.approve` to approve it", self.digest)
    }
}

/// Returns the permissions that the operators of a source need in `new` and did not need in `old`, a line for each resource.
pub(crate) fn added(
    source: &str,
    new: (&Plan, &[SourceRecord]),
    old: (&Plan, &[SourceRecord]),
) -> Vec<String> {
    claims(source, new).added(&claims(source, old)).lines()
}

/// Returns the permissions that the operators of a source need.
fn claims(source: &str, (plan, records): (&Plan, &[SourceRecord])) -> Claims {
    let record = records.iter().find(|record| record.source == source);
    let is_of = |name: &str| {
        let operators = record.map(|record| &*record.operators).unwrap_or_default();
        operators.iter().any(|operator| operator == name)
    };
    Claims::of(plan, is_of)
}
