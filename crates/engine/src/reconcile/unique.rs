//! `unique`: checks if another custom resource of the operator had the same text at a path first.
//!
//! The first holder of a text keeps it: a newcomer fails only itself. While an operator runs, the order is that of the events; the
//! inventory of a custom resource records which texts it holds, so that the order outlives the process.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    record::Observed,
    sources::{Answer, Read},
    template_data::TemplateData,
};
use orkestra_object::value::{Node, Path, hash_text};
use orkestra_plan::OperatorPlan;

/// Returns the text of a custom resource at a path that `unique` checks, trimmed for comparison; none if it is empty, which
/// is unique.
pub fn unique_text(view: &Node, path: &Path) -> Option<Box<str>> {
    let text = view.at(path)?.to_text();
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

/// Returns the record of a text at a path, for an inventory.
pub fn unique_record(path: &Path, text: &str) -> Box<str> {
    let mut hash = hash_text(&format!("{path}={text}"));
    hash.truncate(RECORD_LENGTH);
    hash.into()
}

/// The length of a record: the texts of one operator are not so many that two have the same by chance.
const RECORD_LENGTH: usize = 16;

/// Returns the records of the texts that the custom resource holds. One whose answer is unknown stays as it was.
pub(crate) fn held(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &TemplateData,
) -> BTreeSet<Box<str>> {
    let record = |path: &Path| {
        let record = unique_record(path, &unique_text(&observed.cr.view, path)?);
        let is_held = match sources.is_unique(path) {
            Ok(is_unique) => is_unique,
            Err(_) => observed.inventory.held.contains(&record),
        };
        is_held.then_some(record)
    };
    plan.reads.unique.iter().filter_map(record).collect()
}

/// Returns the answers to all `unique` checks of the plan.
pub(crate) fn of(
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
    /// True if no other custom resource had the same text at `path` first.
    ///
    /// # Errors
    /// Why that is unknown.
    pub(crate) fn is_unique(&self, path: &Path) -> Result<bool, &str> {
        match self.same.get(path) {
            Some(Answer::Ready(_)) => Ok(false),
            Some(Answer::Unavailable(why)) => Err(why),
            Some(Answer::Absent) | None => Ok(true),
        }
    }
}
