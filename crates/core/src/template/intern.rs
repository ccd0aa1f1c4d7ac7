//! Templates of one source are one allocation in the process.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use super::template::Inner;

/// The table is not swept before it holds so many templates.
const SWEEP_FROM: usize = 256;

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Templates by the hash of their source; dead ones are swept as the table grows.
#[derive(Default)]
struct Table {
    state: RandomState,
    known: HashMap<u64, Vec<Weak<Inner>>>,
    sweep_at: usize,
}

/// The template of this source that calls no note of a user, if one is alive.
pub(super) fn find(source: &str) -> Option<Arc<Inner>> {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.find(source, None)
}

/// Makes a template known, and returns the one to use: an equal one may have come first.
pub(super) fn share(template: Inner) -> Arc<Inner> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.share(template)
}

impl Table {
    /// The template of this source and of these notes of a user.
    fn find(&self, source: &str, functions: Option<&str>) -> Option<Arc<Inner>> {
        let known = self.known.get(&self.state.hash_one(source))?;
        known.iter().filter_map(Weak::upgrade).find(|template| {
            *template.source == *source && template.functions.as_deref() == functions
        })
    }

    fn share(&mut self, template: Inner) -> Arc<Inner> {
        if let Some(known) = self.find(&template.source, template.functions.as_deref()) {
            return known;
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, templates| {
                templates.retain(|template| template.strong_count() > 0);
                !templates.is_empty()
            });
            self.sweep_at = SWEEP_FROM.max(self.known.len() * 2);
        }
        let hash = self.state.hash_one(&*template.source);
        let template = Arc::new(template);
        let known = self.known.entry(hash).or_default();
        known.push(Arc::downgrade(&template));
        template
    }
}
