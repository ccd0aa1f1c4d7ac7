//! What the called notes mean for a whole template.

use std::sync::Arc;

use super::super::functions::{Calls, Function};
use super::super::notes::Note;

/// What a template calls, as far as others have to know.
#[derive(Default)]
pub(in crate::template) struct Marks {
    /// The notes of the user.
    pub(in crate::template) calls: Calls,
    /// Where it first calls a note that gives something else each time, if it does.
    pub(in crate::template) random: Option<usize>,
    /// Whether it asks for the present time.
    pub(in crate::template) clock: bool,
}

impl Marks {
    /// A built-in note is called at this byte.
    pub(super) fn note(&mut self, note: &Note, at: usize) {
        self.add(note.random, note.clock, at);
    }

    /// A note of the user is called at this byte, with everything that it calls.
    pub(super) fn function(&mut self, function: &Arc<Function>, at: usize) {
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
