//! Unreadable objects of watches: each is reported in the log, in an Event and in the metrics.
//!
//! An object is reported once per resourceVersion; an object that changes often is reported again only after a while, and of many
//! objects at once only a few are reported: the metrics count all of them.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orkestra_core::{decode::Version, plan::ObjectKey, reconcile::record::Identity, value::Node};
use tokio::time::Instant;

use crate::wire::Served;

/// The shortest interval between reports of an object that changes often.
const REST: Duration = Duration::from_mins(1);
/// The most reports of one kind per [`REST`].
const MOST_REPORTS: usize = 30;

/// Receives reports of unreadable objects, besides the log.
pub trait Report: Send + Sync {
    /// Reports an unreadable object: its kind, its identity, and the cause. Called at most once for each of its states.
    fn unreadable(&self, served: &Served, object: &Identity, why: &str);

    /// The number of an informer's unreadable objects changes from `before` to `after`.
    fn count(&self, before: usize, after: usize);
}

/// Where unreadable objects are reported besides the log. By default nowhere.
#[derive(Clone, Default)]
pub struct Reports(Option<Arc<dyn Report>>);

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reports")
    }
}

impl Reports {
    /// Reports to `report`.
    pub fn new(report: impl Report + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }
}

/// The unreadable objects of one informer.
pub(super) struct Unread {
    served: Served,
    reports: Reports,
    /// The number of objects, readable without the lock.
    count: AtomicUsize,
    known: Mutex<UnreadState>,
}

#[derive(Default)]
struct UnreadState {
    objects: HashMap<ObjectKey, LastReport>,
    /// Number of the current or last list.
    list: u32,
    /// When the current reporting interval began, and the number of reports in it.
    recent: Option<(Instant, usize)>,
}

/// The last report of an object.
struct LastReport {
    version: Version,
    at: Option<Instant>,
    /// The last list that contained it.
    list: u32,
}

impl Unread {
    pub(super) fn new(served: Served, reports: Reports) -> Self {
        Self {
            served,
            reports,
            count: AtomicUsize::new(0),
            known: Mutex::default(),
        }
    }

    /// Adds an unreadable object.
    pub(super) fn add(&self, id: &Identity, why: &str) {
        if self.is_reported(id) {
            self.log(&id.key.to_string(), why);
            self.publish(id, why);
        }
    }

    /// Reports an object whose identity is not completely readable.
    pub(super) fn add_nameless(&self, object: &Node, why: &str) {
        let has_room = self.known().has_room(Instant::now());
        if has_room {
            let metadata = object.get("metadata");
            let name = metadata.and_then(|metadata| metadata.get("name")?.as_str());
            self.log(name.unwrap_or_default(), why);
        }
    }

    /// Removes an object that is readable again, or gone.
    pub(super) fn remove(&self, key: &ObjectKey) {
        if self.count.load(Ordering::Relaxed) > 0 {
            let mut known = self.known();
            known.objects.remove(key);
            self.recount(&known);
        }
    }

    /// Starts a list.
    pub(super) fn list_begin(&self) {
        self.known().list += 1;
    }

    /// Ends a list: objects that it lacks are gone.
    pub(super) fn list_end(&self) {
        let mut known = self.known();
        let list = known.list;
        known.objects.retain(|_, last| last.list == list);
        self.recount(&known);
    }

    fn known(&self) -> MutexGuard<'_, UnreadState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recount(&self, known: &UnreadState) {
        let count = known.objects.len();
        let before = self.count.swap(count, Ordering::Relaxed);
        if let Some(reports) = &self.reports.0 {
            reports.count(before, count);
        }
    }

    /// Records that state of an object; true if it has to be reported.
    fn is_reported(&self, id: &Identity) -> bool {
        let now = Instant::now();
        let mut known = self.known();
        let listing = known.list;
        let mut reported = None;
        if let Some(last) = known.objects.get_mut(&id.key) {
            last.list = listing;
            if last.version == id.resource_version {
                return false;
            }
            reported = last.at;
        }
        let is_due = reported.is_none_or(|at| now - at >= REST) && known.has_room(now);
        let last = LastReport {
            version: id.resource_version.clone(),
            at: if is_due { Some(now) } else { reported },
            list: listing,
        };
        known.objects.insert(id.key.clone(), last);
        self.recount(&known);
        is_due
    }

    fn log(&self, object: &str, why: &str) {
        let kind = self.served.group_kind();
        tracing::warn!(%kind, object, error = why, "cannot decode an object; other objects of its kind are not affected");
    }

    fn publish(&self, id: &Identity, why: &str) {
        if let Some(reports) = &self.reports.0 {
            reports.unreadable(&self.served, id, why);
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.known().objects.clear();
        self.recount(&UnreadState::default());
    }
}

impl UnreadState {
    /// Counts a report; true if it may be made now.
    fn has_room(&mut self, now: Instant) -> bool {
        let (since, count) = self.recent.get_or_insert((now, 0));
        if now - *since >= REST {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= MOST_REPORTS
    }
}
