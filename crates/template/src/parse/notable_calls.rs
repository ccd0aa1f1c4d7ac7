//! Properties of a whole template that follow from the notes it calls.

use std::sync::Arc;

use super::super::functions::{Calls, Function};
use super::super::notes::BuiltInNote;

/// The calls of a template that matter to its callers.
#[derive(Default)]
pub(crate) struct NotableCalls {
    /// The notes of the user.
    pub(crate) calls: Calls,
    /// The offset of the first call of a note that returns another value each time, if any.
    pub(crate) random: Option<usize>,
    /// True if it reads the present time.
    pub(crate) clock: bool,
}

impl NotableCalls {
    /// Records a call of a built-in note at this byte.
    pub(crate) fn note(&mut self, note: &BuiltInNote, at: usize) {
        self.add(note.random, note.clock, at);
    }

    /// Records a call of a user's note at this byte, including everything that it calls.
    pub(crate) fn function(&mut self, function: &Arc<Function>, at: usize) {
        let known = || (Arc::clone(function), at);
        self.calls
            .entry(function.name.clone())
            .or_insert_with(known);
        let template = &function.template;
        self.add(template.is_random(), template.reads_clock(), at);
    }

    fn add(&mut self, random: bool, clock: bool, at: usize) {
        if random {
            self.random.get_or_insert(at);
        }
        self.clock |= clock;
    }
}
