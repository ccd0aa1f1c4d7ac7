//! An index of readers: which custom resources have a pass when an object that they read changes.
//!
//! ```text
//!  a pass asks ── note ──► index ◄── changed ── an answer has changed
//!  a pass is decided ─ settle ┘ └──► the queue, for each reader
//! ```
//!
//! A read is recorded before it is answered, so that no change in between is missed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Weak},
};

use orkestra_cluster::watch::{Change, Subscriber};
use orkestra_engine::reconcile::{
    record::CrRecord,
    sources::{CrossBy, CrossRead, Read},
};
use orkestra_object::value::project;
use orkestra_plan::{
    ObjectKey,
    cross::{CrossPlan, CrossSelectorPlan},
};
use parking_lot::Mutex;

use crate::queue::{Lane, WorkQueue};

/// The readers of one operator.
pub(crate) struct Readers {
    index: Mutex<Index>,
    queue: WorkQueue<ObjectKey>,
}

#[derive(Default)]
struct Index {
    readers: BTreeMap<Read, BTreeSet<ObjectKey>>,
    reads: BTreeMap<ObjectKey, BTreeSet<Read>>,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

impl Readers {
    /// Creates readers whose custom resources are queued in `queue`.
    pub(crate) fn new(queue: WorkQueue<ObjectKey>) -> Self {
        Self {
            index: Mutex::default(),
            queue,
        }
    }

    /// Records that a pass over `key` asks for `read`: from now on changes queue it.
    pub(crate) fn note(&self, key: &ObjectKey, read: &Read) {
        self.index.lock().note(key, read);
    }

    /// Records that a pass over `key` has read exactly these. Returns the reads without any reader left.
    pub(crate) fn settle<'r>(
        &self,
        key: &ObjectKey,
        reads: impl IntoIterator<Item = &'r Read>,
    ) -> Vec<Read> {
        let now: BTreeSet<Read> = reads.into_iter().cloned().collect();
        let mut index = self.index.lock();
        let before = index.reads.get(key).cloned().unwrap_or_default();
        for read in now.difference(&before) {
            index.note(key, read);
        }
        let gone: Vec<Read> = before.difference(&now).cloned().collect();
        index.drop_reads(key, gone)
    }

    /// Removes `key`. Returns the reads without any reader left.
    pub(crate) fn forget(&self, key: &ObjectKey) -> Vec<Read> {
        let mut index = self.index.lock();
        let gone = index.reads.remove(key).into_iter().flatten().collect();
        index.drop_reads(key, gone)
    }

    /// Queues the readers of `read`, whose answer has changed.
    pub(crate) fn changed(&self, read: &Read) {
        let readers = self.index.lock().readers.get(read).cloned();
        for key in readers.into_iter().flatten() {
            self.queue.add(key, Lane::Changed);
        }
    }

    /// Queues the readers of all matching reads, whose answers have changed.
    pub(crate) fn changed_like(&self, is_meant: impl Fn(&Read) -> bool) {
        let index = self.index.lock();
        let meant = index.readers.iter().filter(|(read, _)| is_meant(read));
        let keys: BTreeSet<ObjectKey> = meant.flat_map(|(_, keys)| keys.clone()).collect();
        drop(index);
        for key in keys {
            self.queue.add(key, Lane::Changed);
        }
    }

    /// True if any read matches.
    pub(crate) fn any(&self, is_meant: impl Fn(&Read) -> bool) -> bool {
        self.index.lock().readers.keys().any(is_meant)
    }
}

impl Index {
    fn note(&mut self, key: &ObjectKey, read: &Read) {
        let readers = self.readers.entry(read.clone()).or_default();
        if readers.insert(key.clone()) {
            let reads = self.reads.entry(key.clone()).or_default();
            reads.insert(read.clone());
        }
    }

    /// Removes `key` from the readers of `gone`; returns the reads without any reader left.
    fn drop_reads(&mut self, key: &ObjectKey, gone: Vec<Read>) -> Vec<Read> {
        if let Some(reads) = self.reads.get_mut(key) {
            reads.retain(|read| !gone.contains(read));
            if reads.is_empty() {
                self.reads.remove(key);
            }
        }
        let is_unread = |read: &Read| {
            let Some(readers) = self.readers.get_mut(read) else {
                return true;
            };
            readers.remove(key);
            let is_unread = readers.is_empty();
            if is_unread {
                self.readers.remove(read);
            }
            is_unread
        };
        gone.into_iter().filter(is_unread).collect()
    }
}

/// Returns a subscriber that queues the readers of a custom resource of another operator when fields that the entry of `cross`
/// reads changed.
pub(crate) fn queue_cross(readers: Weak<Readers>, entry: &CrossPlan) -> Subscriber<CrRecord> {
    let (name, paths) = (entry.name.clone(), entry.kept_paths());
    let by_name = matches!(entry.selector, CrossSelectorPlan::Name(_));
    Arc::new(move |change: &Change<CrRecord>| {
        let Some(readers) = readers.upgrade() else {
            return;
        };
        if let (Some(before), Some(after)) = (&change.before, &change.after)
            && !Arc::ptr_eq(before, after)
            && project(&before.view, &paths) == project(&after.view, &paths)
        {
            return;
        }
        // Readers of a namespaced resource by name are found by the read itself.
        if by_name && change.key.namespace.is_some() {
            readers.changed(&Read::Cross(CrossRead {
                name: name.clone(),
                namespace: change.key.namespace.clone(),
                by: CrossBy::Name(change.key.name.clone()),
            }));
            return;
        }
        readers.changed_like(|read| match read {
            Read::Cross(read) => read.name == name && may_choose(&read.by, &change.key.name),
            _ => false,
        });
    })
}

/// True if a read by `by` may choose the changed custom resource.
fn may_choose(by: &CrossBy, changed: &str) -> bool {
    match by {
        CrossBy::Name(name) => **name == *changed,
        CrossBy::Labels(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use orkestra_plan::{ChildKey, GroupKind};

    use super::*;
    use orkestra_ground::Entropy;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Some("shop".into()),
            name: name.into(),
        }
    }

    fn secret(name: &str) -> Read {
        Read::Object(ChildKey {
            kind: GroupKind::parse("Secret"),
            object: key(name),
        })
    }

    #[tokio::test]
    async fn a_change_queues_its_readers_and_nobody_else() {
        let queue = WorkQueue::new(Entropy::seeded(1));
        let readers = Readers::new(queue.clone());
        readers.note(&key("web"), &secret("a"));
        readers.note(&key("db"), &secret("b"));
        readers.changed(&secret("a"));
        readers.changed(&secret("c"));
        assert_eq!(queue.take().await.unwrap().key, key("web"));
        assert_eq!(queue.depth(), 0);
    }

    #[test]
    fn what_the_last_reader_leaves_is_reported() {
        let readers = Readers::new(WorkQueue::new(Entropy::seeded(1)));
        let (a, b) = (secret("a"), secret("b"));
        assert_eq!(readers.settle(&key("web"), [&a, &b]), []);
        assert_eq!(readers.settle(&key("db"), [&b]), []);
        assert_eq!(readers.settle(&key("web"), [&b]), std::slice::from_ref(&a));
        assert_eq!(readers.forget(&key("web")), []);
        assert!(readers.any(|read| *read == b) && !readers.any(|read| *read == a));
        assert_eq!(readers.forget(&key("db")), [b]);
        assert_eq!(readers.index.lock().reads.len(), 0);
    }
}
