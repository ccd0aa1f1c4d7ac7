//! Reads below `.events`.

use super::{PlanReads, ReadPosition, children::KnownChildren, without_covered};
use crate::{
    diagnostics::{Code, nearest},
    plan::{EVENTS, observe::EventPlan},
    value::{Path, PathStep},
};

impl PlanReads {
    /// Handles `.events` as a whole.
    pub(super) fn all_events(&mut self, known: &KnownChildren) {
        for name in &known.events {
            let read = self.events.entry(name.clone()).or_default();
            read.push(Path::root());
        }
    }

    pub(super) fn event(
        &mut self,
        below: &[PathStep],
        place: ReadPosition<'_>,
        known: &KnownChildren,
    ) {
        let Some((name, rest)) = below.split_first() else {
            return self.all_events(known);
        };
        let name = match name {
            PathStep::Field(name) => name.clone(),
            PathStep::Index(index) => index.to_string().into(),
        };
        if !known.events.contains(&name) {
            if known.all {
                self.unknown_event(&name, place, known);
            }
            return;
        }
        let read = rest.iter().cloned().collect();
        self.events.entry(name).or_default().push(read);
    }

    fn unknown_event(&mut self, name: &str, place: ReadPosition<'_>, known: &KnownChildren) {
        let names = || known.events.iter().map(|name| &**name);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `.{EVENTS}.{near}`?"),
            None if known.events.is_empty() => {
                "events are declared under `observe.events` of the operatorBox".to_owned()
            }
            None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("`observe.events` has no `{name}`");
        let read = format!("{EVENTS}.{name}");
        self.unreadable(Code::UnknownData, place, &read, message, Some(hint));
    }

    /// Sets the reads of the entries.
    pub(crate) fn report_events(&mut self, entries: &mut [EventPlan]) {
        for entry in entries {
            let read = self.events.remove(&entry.name).unwrap_or_default();
            entry.reads = without_covered(read);
        }
    }
}
