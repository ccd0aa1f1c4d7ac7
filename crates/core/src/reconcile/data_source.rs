//! The sources of template data beside the custom resource and its children, in one list.

use jiff::Timestamp;

use super::{
    cross::CrossResources,
    enrich::Additions,
    events::Events,
    introspection::Introspected,
    record::Observed,
    sources::{Read, Sources},
    watched::WatchedObjects,
};
use crate::plan::OperatorPlan;

/// A source of data for templates and conditions.
pub(super) trait DataSource: Sync {
    /// Adds its data, as far as it is known; data that cannot be read becomes unavailable.
    ///
    /// # Errors
    /// The reads that are not answered yet.
    fn fill(&self, input: PassInput<'_>, sources: &mut Sources) -> Result<(), Vec<Read>>;

    /// Makes all its data unavailable, for the reason `why`.
    fn hide(&self, _plan: &OperatorPlan, _sources: &mut Sources, _why: &str) {}
}

/// The input of a pass.
#[derive(Clone, Copy)]
pub(super) struct PassInput<'a> {
    pub(super) plan: &'a OperatorPlan,
    pub(super) observed: &'a Observed,
    pub(super) now: Timestamp,
}

/// The sources whose reads depend on no template: they are read once.
pub(super) const FIXED: [&dyn DataSource; 3] = [&Events, &WatchedObjects, &Introspected];

/// The sources whose reads depend on the custom resource: they are read again after its completion.
pub(super) const SELECTED: [&dyn DataSource; 2] = [&CrossResources, &Additions];

/// Fills `sources` from all of `list`, or returns the reads that are not answered yet. A source that may read another one comes
/// after it, so the first that lacks an answer ends the round.
///
/// # Errors
/// The reads that are not answered yet.
pub(super) fn fill_from(
    list: &[&dyn DataSource],
    input: PassInput<'_>,
    sources: &mut Sources,
) -> Result<(), Vec<Read>> {
    list.iter()
        .try_for_each(|source| source.fill(input, sources))
}

/// Makes the data of all sources unavailable, for the reason `why`.
pub(super) fn hide_all(plan: &OperatorPlan, sources: &mut Sources, why: &str) {
    for source in SELECTED.iter().chain(&FIXED) {
        source.hide(plan, sources, why);
    }
}

/// Returns an error with the reads that are not answered yet, if there are any.
pub(super) fn all_answered(lacking: Vec<Read>) -> Result<(), Vec<Read>> {
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(lacking)
    }
}
