//! Events with the same text are one Event with a count.

use std::{borrow::Cow, collections::HashMap, hash::BuildHasher as _, time::Duration};

use orkestra_language::api::conditions;
use tokio::time::Instant;

use super::{Event, NOTE_BYTES, Severity};

/// How long after its last repetition an Event's count may still be incremented. Source: kube-runtime and client-go.
const SERIES: Duration = Duration::from_mins(6);
/// The number of Events remembered for series.
const REMEMBERED: usize = 4096;

/// The text that identifies a series.
#[derive(Hash)]
pub(crate) struct SeriesText {
    uid: Option<String>,
    kind: Option<String>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    severity: Severity,
    reason: Cow<'static, str>,
    pub(crate) note: String,
}

impl SeriesText {
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            uid: event.regarding.uid.clone(),
            kind: event.regarding.kind.clone(),
            namespace: event.namespace().to_owned(),
            name: event.regarding.name.clone().unwrap_or_default(),
            severity: event.severity,
            reason: event.reason.clone(),
            note: conditions::cut(&event.note, NOTE_BYTES),
        }
    }
}

/// An Event that was sent.
pub(crate) struct EventSeries {
    /// The Event's name.
    pub(crate) name: String,
    /// How often it occurred.
    pub(crate) count: i32,
    last: Instant,
}

/// The recent Events.
///
/// By the hash of their text, since the texts of thousands of Events would take megabytes: a collision, which counts one Event
/// for another, happens once in 2^40 runs.
#[derive(Default)]
pub(crate) struct AllEventSeries(HashMap<u64, EventSeries>);

impl AllEventSeries {
    fn key(&self, words: &SeriesText) -> u64 {
        self.0.hasher().hash_one(words)
    }

    /// Returns the Event with this text, if its count may still be incremented.
    pub(crate) fn of(&self, words: &SeriesText) -> Option<&EventSeries> {
        let series = self.0.get(&self.key(words))?;
        (series.last.elapsed() < SERIES).then_some(series)
    }

    pub(crate) fn forget(&mut self, words: &SeriesText) {
        let key = self.key(words);
        self.0.remove(&key);
    }

    /// Counts an Event that was accepted under this name.
    pub(crate) fn remember(&mut self, words: &SeriesText, name: String) {
        let (key, now) = (self.key(words), Instant::now());
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&key) {
            self.0.retain(|_, series| series.last.elapsed() < SERIES);
            if self.0.len() >= REMEMBERED {
                self.0.clear();
            }
        }
        let series = self.0.entry(key).or_insert(EventSeries {
            name,
            count: 0,
            last: now,
        });
        series.count = series.count.saturating_add(1);
        series.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ObjectReference;

    #[test]
    fn notes_are_cut_between_characters() {
        let note = SeriesText::of(&Event {
            regarding: ObjectReference::default(),
            severity: Severity::Normal,
            reason: "Applied".into(),
            note: "é".repeat(600),
        })
        .note;
        assert!(note.len() <= NOTE_BYTES && note.ends_with("é..."), "{note}");
    }
}
