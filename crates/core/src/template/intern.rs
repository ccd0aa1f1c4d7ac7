//! Shares one allocation between templates of the same source.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use super::template::Inner;

/// The minimum number of templates before the table is swept.
const SWEEP_FROM: usize = 256;

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Templates by the hash of their source. Entries without a live template are swept as the table grows.
#[derive(Default)]
struct Table {
    state: RandomState,
    known: HashMap<u64, Vec<Weak<Inner>>>,
    sweep_at: usize,
}

/// Returns the live template of this source that calls no user's note, if any.
pub(super) fn find(source: &str) -> Option<Arc<Inner>> {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.find(source, None)
}

/// Registers a template and returns the one to use. An equal one may have been registered before.
pub(super) fn share(template: Inner) -> Arc<Inner> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.share(template)
}

impl Table {
    /// Returns the template of this source and these notes.
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
