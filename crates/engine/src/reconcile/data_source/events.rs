//! `.events`: the latest Events of a custom resource, as template data of a pass.

use super::{
    super::{
        observe::with_kind,
        sources::{Answer, Read},
        template_data::TemplateData,
    },
    DataSource, Given, PassInput, ReadsDependOn, all_answered,
};
use orkestra_object::value::{Key, Map, Node, project};
use orkestra_plan::{
    OperatorPlan,
    observe::{EVENTS, EventPlan, event_kind},
};

/// `.events`. Entries that no template reads are not requested.
pub(crate) struct ObservedEvents;

impl DataSource for ObservedEvents {
    fn depends_on(&self) -> ReadsDependOn {
        ReadsDependOn::Plan
    }

    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>> {
        let PassInput { plan, observed, .. } = input;
        let mut lacking = Vec::new();
        let read = plan.observe.events.iter();
        for entry in read.filter(|entry| !entry.reads.is_empty()) {
            let read = Read::Event(entry.name.clone());
            match observed.answers.get(&read) {
                None => lacking.push(read),
                Some(Answer::Ready(event)) => put(sources, entry, view(entry, event)),
                Some(Answer::Absent) => put(sources, entry, Node::Map(Map::default())),
                Some(Answer::Unavailable(why)) => hide(sources, entry, why),
            }
        }
        all_answered(lacking)
    }

    fn hide(&self, plan: &OperatorPlan, sources: &mut TemplateData, why: &str) {
        for entry in &plan.observe.events {
            hide(sources, entry, why);
        }
    }

    /// No Events are given.
    fn assumed(&self, read: &Read, _given: Given<'_>) -> Option<Answer> {
        matches!(read, Read::Event(_)).then_some(Answer::Absent)
    }
}

/// Returns an Event as templates see it: only the fields that they read, so that equal reads compare equal.
fn view(entry: &EventPlan, event: &Node) -> Node {
    project(&with_kind(event, &event_kind()), &entry.reads)
}

fn put(sources: &mut TemplateData, entry: &EventPlan, seen: Node) {
    sources.put(EVENTS, &entry.name, seen);
}

fn hide(sources: &mut TemplateData, entry: &EventPlan, why: &str) {
    sources.hide([Key::from(EVENTS), entry.name.clone()], why);
}
