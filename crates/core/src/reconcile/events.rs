//! `.events`: the latest Events of a custom resource, as a pass sees them.

use super::{
    observe::with_kind,
    record::Observed,
    sources::{Answer, Read, Sources},
};
use crate::{
    plan::{
        EVENTS, OperatorPlan,
        observe::{EventPlan, event_kind},
    },
    value::{Key, Map, Node, Path, Step, project},
};

/// Adds `.events` to the sources, as far as it is known; Events that cannot be read become unavailable. Entries that no
/// template reads are not requested.
///
/// # Errors
/// The reads that are not answered yet.
pub(super) fn fill(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &mut Sources,
) -> Result<(), Vec<Read>> {
    let mut lacking = Vec::new();
    let read = plan.observe.events.iter();
    for entry in read.filter(|entry| !entry.reads.is_empty()) {
        let read = Read::Event(entry.name.clone());
        match observed.answers.get(&read) {
            None => lacking.push(read),
            Some(Answer::Ready(event)) => put(sources, entry, seen(entry, event)),
            Some(Answer::Absent) => put(sources, entry, Node::Map(Map::default())),
            Some(Answer::Unavailable(why)) => hide(sources, entry, why),
        }
    }
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(lacking)
    }
}

/// Returns an Event as templates see it: only the fields that they read, so that equal reads compare equal.
fn seen(entry: &EventPlan, event: &Node) -> Node {
    project(&with_kind(event, &event_kind()), &entry.reads)
}

fn put(sources: &mut Sources, entry: &EventPlan, seen: Node) {
    if !matches!(sources.events, Node::Map(_)) {
        sources.events = Node::Map(Map::default());
    }
    if let Node::Map(all) = &mut sources.events {
        all.insert(entry.name.clone(), seen);
    }
}

pub(super) fn hide(sources: &mut Sources, entry: &EventPlan, why: &str) {
    let steps = [Key::from(EVENTS), entry.name.clone()];
    let path: Path = steps.map(Step::Field).into_iter().collect();
    sources.unavailable.push((path, why.into()));
}
