//! `unique`: checks if another custom resource of the operator has the same text at a path.

use std::collections::BTreeMap;

use super::{
    record::Observed,
    sources::{Answer, Read},
    template_data::TemplateData,
};
use crate::{
    plan::OperatorPlan,
    value::{Node, Path},
};

/// Returns the text of a custom resource at a path that `unique` checks, trimmed for comparison; none if it is empty, which
/// is unique.
pub fn unique_text(view: &Node, path: &Path) -> Option<Box<str>> {
    let text = view.at(path)?.to_text();
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

/// Returns the answers to all `unique` checks of the plan.
pub(super) fn of(
    plan: &OperatorPlan,
    observed: &Observed,
) -> Result<BTreeMap<Path, Answer>, Vec<Read>> {
    let (mut same, mut unknown) = (BTreeMap::new(), Vec::new());
    for path in &plan.reads.unique {
        let Some(text) = unique_text(&observed.cr.view, path) else {
            continue;
        };
        let read = Read::Same(path.clone(), text);
        match observed.answers.get(&read) {
            Some(answer) => {
                same.insert(path.clone(), answer.clone());
            }
            None => unknown.push(read),
        }
    }
    if unknown.is_empty() {
        Ok(same)
    } else {
        Err(unknown)
    }
}

impl TemplateData {
    /// True if no other custom resource has the same text at `path`.
    ///
    /// # Errors
    /// Why that is unknown.
    pub(super) fn is_unique(&self, path: &Path) -> Result<bool, &str> {
        match self.same.get(path) {
            Some(Answer::Ready(_)) => Ok(false),
            Some(Answer::Unavailable(why)) => Err(why),
            Some(Answer::Absent) | None => Ok(true),
        }
    }
}
