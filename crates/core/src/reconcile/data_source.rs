//! The interface of the sources of template data beside the custom resource and its children.

use jiff::Timestamp;

use super::{record::Observed, sources::Read, template_data::TemplateData};
use crate::plan::OperatorPlan;

/// A source of data for templates and conditions.
pub(super) trait DataSource: Sync {
    /// Adds its data, as far as it is known; data that cannot be read becomes unavailable.
    ///
    /// # Errors
    /// The reads that are not answered yet.
    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>>;

    /// Makes all its data unavailable, for the reason `why`.
    fn hide(&self, _plan: &OperatorPlan, _sources: &mut TemplateData, _why: &str) {}
}

/// The input of a pass.
#[derive(Clone, Copy)]
pub(super) struct PassInput<'a> {
    pub(super) plan: &'a OperatorPlan,
    pub(super) observed: &'a Observed,
    pub(super) now: Timestamp,
}

/// Returns an error with the reads that are not answered yet, if there are any.
pub(super) fn all_answered(lacking: Vec<Read>) -> Result<(), Vec<Read>> {
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(lacking)
    }
}
