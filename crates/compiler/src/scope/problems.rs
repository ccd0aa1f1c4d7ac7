//! Collects the problems of a Katalog while it is compiled.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::At;
use orkestra_language::{
    diagnostics::{Diagnostic, Diagnostics, FieldPath, MOST_PROBLEMS, Severity},
    tree::Origin,
};
use orkestra_plan::{PlaceRef, PlanPlace};

/// A document, `None` for the Katalog itself, and a path in it.
pub(crate) type Location = (Option<Arc<Origin>>, FieldPath);

/// The problems of a Katalog, collected while it is compiled.
#[derive(Default)]
pub struct Problems {
    found: RefCell<Diagnostics>,
    errors: Cell<usize>,
    /// The first problem beyond the limit.
    left_out: RefCell<Option<Diagnostic>>,
    /// The positions of the places in plans.
    places: RefCell<HashMap<PlanPlace, Location>>,
    /// The problems reported for shared places.
    reported: RefCell<HashSet<String>>,
}

impl Problems {
    /// Returns the problems, in the order they were found.
    pub fn into_inner(self) -> Diagnostics {
        let mut found = self.found.into_inner();
        found.extend(self.left_out.into_inner().map(Diagnostic::left_out));
        found
    }

    /// True if further errors are not reported.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.get() >= MOST_PROBLEMS
    }

    /// Adds a problem, unless there are too many already.
    pub(crate) fn add(&self, problem: Diagnostic) {
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

    /// True if the same problem was not yet reported for the same place.
    pub(crate) fn is_new(&self, problem: &Diagnostic) -> bool {
        let text = format!("{problem} {:?}", problem.text_offset);
        self.reported.borrow_mut().insert(text)
    }

    /// Returns the number of problems so far.
    pub(crate) fn count(&self) -> usize {
        self.found.borrow().0.len()
    }

    /// Turns all except the first `count` into warnings.
    pub(crate) fn demote_from(&self, count: usize) {
        for problem in self.found.borrow_mut().0.iter_mut().skip(count) {
            problem.severity = Severity::Warning;
        }
    }

    /// Stores the position of a place in a plan.
    pub(crate) fn keep(&self, place: &PlanPlace, location: Location) {
        self.places.borrow_mut().insert(place.clone(), location);
    }

    /// Returns the position of a place from [`At::kept`].
    pub(crate) fn place<'p>(&self, place: impl Into<PlaceRef<'p>>) -> At<'_> {
        let PlaceRef { place, field } = place.into();
        // Each place of a plan was kept; one of another compilation would be at the root.
        let (origin, path) = self.places.borrow().get(place).cloned().unwrap_or_default();
        At {
            shared: origin.is_some(),
            origin,
            path: field.map_or_else(|| path.clone(), |field| path.field(field)),
            ..At::root(self)
        }
    }
}
