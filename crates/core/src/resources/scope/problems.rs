//! What is wrong with a Katalog, gathered while it is read.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::At;
use crate::{
    diagnostics::{Diagnostic, Diagnostics, FieldPath, MOST_PROBLEMS, Severity},
    plan::Origin,
};

/// A document, none for the Katalog itself, and a path in it.
pub(super) type Location = (Option<Arc<Origin>>, FieldPath);

/// What is wrong with a Katalog, gathered while it is read.
#[derive(Default)]
pub(crate) struct Problems {
    found: RefCell<Diagnostics>,
    errors: Cell<usize>,
    /// The first problem that is not told, since there are too many.
    left_out: RefCell<Option<Diagnostic>>,
    /// The places that plans name, by their text.
    places: RefCell<HashMap<Box<str>, Location>>,
    /// What was told of places that are looked at more than once.
    told: RefCell<HashSet<String>>,
}

impl Problems {
    /// What was found, in the order it was found.
    pub(crate) fn into_inner(self) -> Diagnostics {
        let mut found = self.found.into_inner();
        found.extend(self.left_out.into_inner().map(Diagnostic::left_out));
        found
    }

    /// Whether further errors are not told.
    pub(super) fn is_full(&self) -> bool {
        self.errors.get() >= MOST_PROBLEMS
    }

    /// Takes in a problem, unless there are too many already.
    pub(super) fn add(&self, problem: Diagnostic) {
        let mut found = self.found.borrow_mut();
        let full = match problem.severity {
            Severity::Error => self.is_full(),
            Severity::Warning => found.0.len() >= MOST_PROBLEMS,
        };
        if full {
            self.left_out.borrow_mut().get_or_insert(problem);
            return;
        }
        if problem.severity == Severity::Error {
            self.errors.set(self.errors.get() + 1);
        }
        found.push(problem);
    }

    /// Whether the same was not told of the same place before.
    pub(super) fn is_new(&self, problem: &Diagnostic) -> bool {
        let text = format!("{problem} {:?}", problem.text_offset);
        self.told.borrow_mut().insert(text)
    }

    /// How many there are so far.
    pub(super) fn count(&self) -> usize {
        self.found.borrow().0.len()
    }

    /// Makes warnings of all but the first `count`.
    pub(super) fn demote_from(&self, count: usize) {
        for problem in self.found.borrow_mut().0.iter_mut().skip(count) {
            problem.severity = Severity::Warning;
        }
    }

    /// Remembers where the place is that plans name `text`.
    pub(super) fn keep(&self, text: &str, location: Location) {
        self.places.borrow_mut().insert(text.into(), location);
    }

    /// A place that was read before, by its [`At::text`].
    pub(crate) fn place(&self, text: &str) -> At<'_> {
        let (origin, path) = self.places.borrow().get(text).cloned().unwrap_or_default();
        At {
            shared: origin.is_some(),
            origin,
            path,
            ..At::root(self)
        }
    }
}
