//! Unreadable objects of watches: each is reported in the log, in an Event and in the metrics.
//!
//! An object is reported once per resourceVersion; an object that changes often is reported again only after a while. Of many
//! objects at once only a few are reported, and the others later, a few at a time: the metrics count all of them.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orkestra_object::{
    Identity, ObjectKey, Uid,
    decode::Version,
    value::{Key, Node},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::requests::Served;

/// The shortest interval between reports of an object that changes often.
const REST: Duration = Duration::from_mins(1);
/// The most reports of one kind per [`REST`].
pub(crate) const MOST_REPORTS: usize = 30;
/// The most of them about one namespace, so that it leaves room for others.
pub(crate) const MOST_OF_NAMESPACE: usize = 10;

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
pub(crate) struct Unread {
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
    /// The reports of the current interval.
    recent: Option<Interval>,
    /// When there is room for objects that found none.
    room_at: Option<Instant>,
    /// The namespace of the last of them that was reported.
    last: Option<Key>,
}

/// The last report of an object.
struct LastReport {
    version: Version,
    at: Option<Instant>,
    /// The last list that contained it.
    list: u32,
    /// Its next report, if it found no room.
    waiting: Option<Box<Waiting>>,
}

/// A report that waits for room.
struct Waiting {
    uid: Uid,
    why: String,
}

/// The reports of an interval of [`REST`].
struct Interval {
    since: Instant,
    reports: usize,
    of_namespace: HashMap<Key, usize>,
}

impl Unread {
    pub(crate) fn new(served: Served, reports: Reports) -> Self {
        Self {
            served,
            reports,
            count: AtomicUsize::new(0),
            known: Mutex::default(),
        }
    }

    /// Adds an unreadable object.
    pub(crate) fn add(&self, id: &Identity, why: &str) {
        if self.is_reported(id, why) {
            self.report(id, why);
        }
    }

    /// Reports objects that found no room, once there is room; returns when there is room for the next ones. It reads
    /// nothing but an atomic while there are no unreadable objects.
    pub(crate) fn report_waiting(&self) -> Option<Instant> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut known = self.known.lock();
        let due = known.take_waiting(Instant::now());
        let room_at = known.room_at;
        drop(known);
        for (id, why) in due {
            self.report(&id, &why);
        }
        room_at
    }

    /// Reports an object whose identity is not completely readable.
    pub(crate) fn add_nameless(&self, object: &Node, why: &str) {
        let namespace = object.meta_text("namespace").map(Key::from);
        let has_room = self
            .known
            .lock()
            .has_room(Instant::now(), namespace.as_ref());
        if has_room {
            self.log(object.meta_text("name").unwrap_or_default(), why);
        }
    }

    /// Removes an object that is readable again, or gone.
    pub(crate) fn remove(&self, key: &ObjectKey) {
        if self.count.load(Ordering::Relaxed) > 0 {
            let mut known = self.known.lock();
            known.objects.remove(key);
            self.recount(&known);
        }
    }

    /// Starts a list.
    pub(crate) fn list_begin(&self) {
        self.known.lock().list += 1;
    }

    /// Ends a list: objects that it lacks are gone.
    pub(crate) fn list_end(&self) {
        let mut known = self.known.lock();
        let list = known.list;
        known.objects.retain(|_, last| last.list == list);
        self.recount(&known);
    }

    fn recount(&self, known: &UnreadState) {
        let count = known.objects.len();
        let before = self.count.swap(count, Ordering::Relaxed);
        if let Some(reports) = &self.reports.0 {
            reports.count(before, count);
        }
    }

    /// Records that state of an object; true if it has to be reported.
    fn is_reported(&self, id: &Identity, why: &str) -> bool {
        let now = Instant::now();
        let mut known = self.known.lock();
        let listing = known.list;
        let mut reported = None;
        if let Some(last) = known.objects.get_mut(&id.key) {
            last.list = listing;
            if last.version == id.resource_version {
                return false;
            }
            reported = last.at;
        }
        let has_rested = reported.is_none_or(|at| now - at >= REST);
        let is_due = has_rested && known.has_room(now, id.key.namespace.as_ref());
        let waiting = (has_rested && !is_due).then(|| {
            Box::new(Waiting {
                uid: id.uid.clone(),
                why: why.to_owned(),
            })
        });
        if waiting.is_some() {
            known.wait_for_room(now);
        }
        let last = LastReport {
            version: id.resource_version.clone(),
            at: if is_due { Some(now) } else { reported },
            list: listing,
            waiting,
        };
        known.objects.insert(id.key.clone(), last);
        self.recount(&known);
        is_due
    }

    fn report(&self, id: &Identity, why: &str) {
        self.log(&id.key.to_string(), why);
        self.publish(id, why);
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
        self.known.lock().objects.clear();
        self.recount(&UnreadState::default());
    }
}

impl UnreadState {
    /// Counts a report about that namespace, if it may be made now.
    fn has_room(&mut self, now: Instant, namespace: Option<&Key>) -> bool {
        let recent = self.recent.get_or_insert_with(|| Interval::new(now));
        if now - recent.since >= REST {
            *recent = Interval::new(now);
        }
        if recent.reports >= MOST_REPORTS {
            return false;
        }
        // Without a namespace there are no others to leave room for.
        if let Some(namespace) = namespace {
            let reports = recent.of_namespace.entry(namespace.clone()).or_default();
            if *reports >= MOST_OF_NAMESPACE {
                return false;
            }
            *reports += 1;
        }
        recent.reports += 1;
        true
    }

    /// Records that an object found no room.
    fn wait_for_room(&mut self, now: Instant) {
        let since = self.recent.as_ref().map_or(now, |recent| recent.since);
        self.room_at = Some(since + REST);
    }

    /// Returns the objects that found no room before and find it now, with their causes.
    fn take_waiting(&mut self, now: Instant) -> Vec<(Identity, String)> {
        if self.room_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.room_at = None;
        let mut reports = Vec::new();
        for key in self.waiting() {
            if !self.has_room(now, key.namespace.as_ref()) {
                self.wait_for_room(now);
                continue;
            }
            let Some(last) = self.objects.get_mut(&key) else {
                continue;
            };
            if let Some(waiting) = last.waiting.take() {
                last.at = Some(now);
                self.last.clone_from(&key.namespace);
                let Waiting { uid, why } = *waiting;
                let resource_version = last.version.clone();
                let id = Identity {
                    key,
                    uid,
                    resource_version,
                };
                reports.push((id, why));
            }
        }
        reports
    }

    /// Returns the objects that wait for room: one of each namespace in turn, beginning after the last one that had room.
    fn waiting(&self) -> Vec<ObjectKey> {
        let waiting = self.objects.iter();
        let waiting = waiting.filter(|(_, last)| last.waiting.is_some());
        let mut keys: Vec<ObjectKey> = waiting.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        keys.sort_by_key(|key| key.namespace <= self.last);
        let mut turns: HashMap<Option<Key>, usize> = HashMap::new();
        keys.sort_by_cached_key(|key| {
            let turn = turns.entry(key.namespace.clone()).or_default();
            *turn += 1;
            *turn
        });
        keys
    }
}

impl Interval {
    fn new(since: Instant) -> Self {
        Self {
            since,
            reports: 0,
            of_namespace: HashMap::new(),
        }
    }
}
