//! The sources of template data other than the custom resource and its children.
//!
//! Each source has a file here, with its `mod` and its line in [`ALL`]. Its request to the runtime is a variant of [`Read`].

mod cross;
pub mod enrich;
mod events;
mod introspection;
mod watched;

use jiff::Timestamp;

use super::{
    record::Observed,
    sources::{Answer, Read},
    template_data::TemplateData,
};
use orkestra_object::value::Node;
use orkestra_plan::OperatorPlan;

/// All sources. A source that may read another one comes after it, so the first that lacks an answer ends the round.
static ALL: [&dyn DataSource; 5] = [
    &cross::CrossResources,
    &enrich::Additions,
    &events::ObservedEvents,
    &watched::WatchedObjects,
    &introspection::Introspected,
];

/// A source of data for templates and conditions.
trait DataSource: Sync {
    /// Returns what determines its reads.
    fn depends_on(&self) -> ReadsDependOn;

    /// Adds its data, as far as it is known; data that cannot be read becomes unavailable.
    ///
    /// # Errors
    /// The reads that are not answered yet.
    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>>;

    /// Makes all its data unavailable, for the reason `why`.
    fn hide(&self, plan: &OperatorPlan, sources: &mut TemplateData, why: &str);

    /// Returns the answer to its read where no operator runs, as in `ork render`; none if the read belongs to another source.
    fn assumed(&self, read: &Read, given: Given<'_>) -> Option<Answer>;
}

/// What determines the reads of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadsDependOn {
    /// The plan: they are read once.
    Plan,
    /// The custom resource: they are read again after its completion.
    Resource,
}

/// The input of a pass.
#[derive(Clone, Copy)]
pub(crate) struct PassInput<'a> {
    pub(crate) plan: &'a OperatorPlan,
    pub(crate) observed: &'a Observed,
    pub(crate) now: Timestamp,
}

/// The data that is given where no operator runs.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) plan: &'a OperatorPlan,
    /// Custom resources of other operators.
    pub(crate) others: &'a [&'a Node],
}

/// Fills `sources` from all sources whose reads depend on `on`.
///
/// # Errors
/// The reads that are not answered yet.
pub(crate) fn fill(
    on: ReadsDependOn,
    input: PassInput<'_>,
    sources: &mut TemplateData,
) -> Result<(), Vec<Read>> {
    let mut meant = ALL.iter().filter(|source| source.depends_on() == on);
    meant.try_for_each(|source| source.fill(input, sources))
}

/// Makes the data of all sources unavailable, for the reason `why`.
pub(crate) fn hide(plan: &OperatorPlan, sources: &mut TemplateData, why: &str) {
    for source in ALL {
        source.hide(plan, sources, why);
    }
}

/// Returns the answer to a read of a source where no operator runs.
pub(crate) fn assumed(read: &Read, given: Given<'_>) -> Answer {
    let answer = ALL.iter().find_map(|source| source.assumed(read, given));
    answer.unwrap_or(Answer::Absent)
}

/// Returns an error with the reads that are not answered yet, if there are any.
fn all_answered(lacking: Vec<Read>) -> Result<(), Vec<Read>> {
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(lacking)
    }
}
