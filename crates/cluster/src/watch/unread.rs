//! Objects that are watched and cannot be read: each is named in the log, in an Event and in the metrics.
//!
//! An object is reported once for each resourceVersion; one that changes all the time is reported again after a while only, and
//! of many at once no more than a few: the metrics count them all.

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

/// How soon an object that changes all the time is reported again.
const REST: Duration = Duration::from_mins(1);
/// How many reports of one kind are made in [`REST`].
const MOST_REPORTS: usize = 30;

/// Receives reports of unreadable objects, besides the log.
pub trait Report: Send + Sync {
    /// An object that cannot be read: its kind, what identifies it, and why. Called once for each of its states at most.
    fn unreadable(&self, served: &Served, object: &Identity, why: &str);

    /// How many unreadable objects an informer has changes from `before` to `after`.
    fn count(&self, before: usize, after: usize);
}

/// Where unreadable objects are reported besides the log. The default is nowhere.
#[derive(Clone, Default)]
pub struct Reports(Option<Arc<dyn Report>>);

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reports")
    }
}

impl Reports {
    /// To `report`.
    pub fn new(report: impl Report + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }
}

/// The unreadable objects of one informer.
pub(super) struct Unread {
    served: Served,
    reports: Reports,
    /// How many there are, to be asked without the lock.
    count: AtomicUsize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    objects: HashMap<ObjectKey, Told>,
    /// Number of the current or last list.
    list: u32,
    /// When the reports that are counted began, and how many there were.
    recent: Option<(Instant, usize)>,
}

/// What was last reported of an object.
struct Told {
    version: Version,
    at: Option<Instant>,
    /// The last list that had it.
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

    /// Takes in an object that cannot be read.
    pub(super) fn add(&self, id: &Identity, why: &str) {
        if self.is_reported(id) {
            self.log(&id.key.to_string(), why);
            self.publish(id, why);
        }
    }

    /// Reports an object of which not all can be read that tells it from others.
    pub(super) fn add_nameless(&self, object: &Node, why: &str) {
        let has_room = self.known().has_room(Instant::now());
        if has_room {
            let metadata = object.get("metadata");
            let name = metadata.and_then(|metadata| metadata.get("name")?.as_str());
            self.log(name.unwrap_or_default(), why);
        }
    }

    /// An object can be read, or is gone.
    pub(super) fn remove(&self, key: &ObjectKey) {
        if self.count.load(Ordering::Relaxed) > 0 {
            let mut known = self.known();
            known.objects.remove(key);
            self.recount(&known);
        }
    }

    /// A list begins.
    pub(super) fn list_begin(&self) {
        self.known().list += 1;
    }

    /// A list is complete: what it did not have is gone.
    pub(super) fn list_end(&self) {
        let mut known = self.known();
        let list = known.list;
        known.objects.retain(|_, told| told.list == list);
        self.recount(&known);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recount(&self, known: &Known) {
        let count = known.objects.len();
        let before = self.count.swap(count, Ordering::Relaxed);
        if let Some(reports) = &self.reports.0 {
            reports.count(before, count);
        }
    }

    /// Notes that state of an object; whether it is to be reported.
    fn is_reported(&self, id: &Identity) -> bool {
        let now = Instant::now();
        let mut known = self.known();
        let listing = known.list;
        let mut reported = None;
        if let Some(told) = known.objects.get_mut(&id.key) {
            told.list = listing;
            if told.version == id.resource_version {
                return false;
            }
            reported = told.at;
        }
        let is_due = reported.is_none_or(|at| now - at >= REST) && known.has_room(now);
        let told = Told {
            version: id.resource_version.clone(),
            at: if is_due { Some(now) } else { reported },
            list: listing,
        };
        known.objects.insert(id.key.clone(), told);
        self.recount(&known);
        is_due
    }

    fn log(&self, object: &str, why: &str) {
        let kind = self.served.group_kind();
        tracing::warn!(%kind, object, error = why, "an object cannot be read; the others of its kind are not affected");
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
        self.recount(&Known::default());
    }
}

impl Known {
    /// Counts a report, if there may be another now.
    fn has_room(&mut self, now: Instant) -> bool {
        let (since, count) = self.recent.get_or_insert((now, 0));
        if now - *since >= REST {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= MOST_REPORTS
    }
}
