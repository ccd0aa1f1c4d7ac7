//! The records of one informer and the rules by which they change; no lock, no task, no clock.
//!
//! The newest resourceVersion determines an object's state, whatever its source: a list, an event, or the response to our own
//! write. Responses are remembered until the watch has echoed them, for one reason: an event that is older than such a response
//! and not an echo is a change by another client. The record includes it already, but no subscriber was notified of it.
//!
//! One file: every rule changes the same records, echoes and position of the watch.

use std::{
    borrow::Borrow,
    cell::Cell,
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::Arc,
};

use hashbrown::HashSet;
use orkestra_object::{Identity, ObjectKey, Uid, decode::Version};

use super::{Change, Record, owned::Owned};

/// Echoes awaited per object; beyond that the oldest is dropped, which costs an unnecessary notification.
const MOST_ECHOES: usize = 8;

/// The records, and the position of the watch.
pub(crate) struct Records<R> {
    entries: HashSet<StoreEntry<R>>,
    /// The records with an owner, by owner.
    owned: Owned<R>,
    /// Bytes of all records.
    bytes: usize,
    /// Everything up to this resourceVersion was reported by list or watch.
    progress: Option<Version>,
    /// resourceVersions of responses that the watch has not reported yet.
    echoes: HashMap<ObjectKey, Vec<Version>>,
    /// Objects whose next change is reported even if the record does not differ, with the last state that is known to the caller.
    expected: HashMap<ObjectKey, Version>,
    listing: Option<Listing>,
    /// Number of the current or last list.
    epoch: u32,
}

struct Listing {
    version: Version,
    /// The server is behind what it reported before (restored from a backup): its present state counts.
    rewound: bool,
    /// The list had an object without a readable name: objects that are missing in it may exist.
    blind: bool,
}

/// A record, indexed by its own key: the key is held once.
struct StoreEntry<R> {
    record: Arc<R>,
    /// The last list that contained it.
    epoch: Cell<u32>,
}

impl<R: Record> Borrow<ObjectKey> for StoreEntry<R> {
    fn borrow(&self) -> &ObjectKey {
        &self.record.identity().key
    }
}

impl<R: Record> Hash for StoreEntry<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.record.identity().key.hash(state);
    }
}

impl<R: Record> PartialEq for StoreEntry<R> {
    fn eq(&self, other: &Self) -> bool {
        self.record.identity().key == other.record.identity().key
    }
}

impl<R: Record> Eq for StoreEntry<R> {}

/// The relation of a resourceVersion to the known one.
#[derive(PartialEq, Eq)]
enum Age {
    Newer,
    Same,
    Older,
}

fn age(version: &Version, known: &Version) -> Age {
    if version == known {
        Age::Same
    } else if version.is_newer_than(known) {
        Age::Newer
    } else {
        Age::Older
    }
}

impl<R: Record> Records<R> {
    pub(crate) fn new() -> Self {
        Self {
            entries: HashSet::new(),
            owned: Owned::new(),
            bytes: 0,
            progress: None,
            echoes: HashMap::new(),
            expected: HashMap::new(),
            listing: None,
            epoch: 0,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<R>> {
        self.entries.get(key).map(|entry| entry.record.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn all(&self) -> Vec<Arc<R>> {
        self.entries
            .iter()
            .map(|entry| entry.record.clone())
            .collect()
    }

    pub(crate) fn owned_by(&self, uid: &Uid) -> Vec<Arc<R>> {
        self.owned.of(uid)
    }

    /// Bytes of the records and their indexes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Applies an event with the object's present state.
    pub(crate) fn put(&mut self, record: R) -> Option<Change<R>> {
        let Identity {
            key,
            resource_version,
            ..
        } = record.identity();
        self.advance(resource_version);
        let overtaken = self.hear(key, resource_version);
        let Some(known) = self.get(key) else {
            return self.enter(record);
        };
        match age(resource_version, &known.identity().resource_version) {
            Age::Newer => self.enter(record),
            Age::Older if overtaken => Some(reported_late(known)),
            Age::Same | Age::Older => None,
        }
    }

    /// Applies an event that reports that the object is deleted, or no longer selected.
    pub(crate) fn delete(&mut self, gone: &Identity) -> Option<Change<R>> {
        self.advance(&gone.resource_version);
        let overtaken = self.hear(&gone.key, &gone.resource_version);
        let known = self.get(&gone.key)?;
        match age(&gone.resource_version, &known.identity().resource_version) {
            Age::Older => overtaken.then(|| reported_late(known)),
            Age::Newer | Age::Same => self.leave(&gone.key),
        }
    }

    /// Records that the watch has reported everything up to `version`.
    pub(crate) fn advance(&mut self, version: &Version) {
        if self
            .progress
            .as_ref()
            .is_none_or(|progress| version.is_newer_than(progress))
        {
            self.progress = Some(version.clone());
        }
    }

    /// Applies the response to our own write. Returns the present record of the object, and how it changed. A response that is
    /// older than the watch does not restore an object.
    pub(crate) fn answer(&mut self, record: R) -> (Option<Arc<R>>, Option<Change<R>>) {
        let Identity {
            key,
            resource_version,
            ..
        } = record.identity();
        let key = key.clone();
        // The caller's own write is no change that it waits for.
        self.expected.remove(&key);
        let news = match self.entries.get(&key) {
            Some(known) => {
                age(resource_version, &known.record.identity().resource_version) == Age::Newer
            }
            None => self
                .progress
                .as_ref()
                .is_none_or(|progress| resource_version.is_newer_than(progress)),
        };
        let change = if news {
            let echoes = self.echoes.entry(key.clone()).or_default();
            if echoes.len() == MOST_ECHOES {
                echoes.remove(0);
            }
            echoes.push(resource_version.clone());
            self.enter(record)
        } else {
            None
        };
        (self.get(&key), change)
    }

    /// Reports the next state of an object after `known` even if its record does not differ. Returns the change if that state is
    /// here already.
    pub(crate) fn expect(&mut self, key: &ObjectKey, known: &Version) -> Option<Change<R>> {
        let now = self.get(key)?;
        if now.identity().resource_version.is_newer_than(known) {
            return Some(reported_late(now));
        }
        self.expected.insert(key.clone(), known.clone());
        None
    }

    /// True if the object was expected to change from an earlier state than that one.
    fn is_expected(&mut self, id: &Identity) -> bool {
        let known = self.expected.get(&id.key);
        let is_newer = known.is_some_and(|known| id.resource_version.is_newer_than(known));
        if is_newer {
            self.expected.remove(&id.key);
        }
        is_newer
    }

    /// Applies the API server's report that the object with that uid is gone.
    pub(crate) fn gone(&mut self, key: &ObjectKey, uid: &Uid) -> Option<Change<R>> {
        let known = self.entries.get(key)?;
        if known.record.identity().uid == *uid {
            self.leave(key)
        } else {
            None
        }
    }

    /// Starts a list that shows the state at `version`. A list that was not ended is dropped.
    pub(crate) fn list_begin(&mut self, version: Version) {
        let rewound = self
            .progress
            .as_ref()
            .is_some_and(|progress| progress.is_newer_than(&version));
        self.epoch = self.epoch.wrapping_add(1);
        self.listing = Some(Listing {
            version,
            rewound,
            blind: false,
        });
    }

    /// Adds an object of the list.
    pub(crate) fn list_put(&mut self, record: R) -> Option<Change<R>> {
        // A list shows everything up to its version: a record from before that version that the list lacks belongs to another
        // history.
        let is_undone = |known: &Version| {
            let listing = self.listing.as_ref();
            listing.is_some_and(|list| list.rewound || !known.is_newer_than(&list.version))
        };
        let key = record.identity().key.clone();
        let wanted = self.get(&key).is_none_or(|known| {
            match age(
                &record.identity().resource_version,
                &known.identity().resource_version,
            ) {
                Age::Newer => true,
                // More fields may be kept of the same state than before.
                Age::Same => record.differs(&known),
                Age::Older => is_undone(&known.identity().resource_version),
            }
        });
        let change = if wanted { self.enter(record) } else { None };
        if let Some(entry) = self.entries.get(&key) {
            entry.epoch.set(self.epoch);
        }
        change
    }

    /// Keeps the record of an object of the list that is unreadable.
    pub(crate) fn list_keep(&self, key: &ObjectKey) {
        if let Some(entry) = self.entries.get(key) {
            entry.epoch.set(self.epoch);
        }
    }

    /// Notes an object of the list whose name is unreadable.
    pub(crate) fn list_blind(&mut self) {
        if let Some(listing) = &mut self.listing {
            listing.blind = true;
        }
    }

    /// Ends the list: objects that it lacks are gone, unless they are newer.
    pub(crate) fn list_end(&mut self) -> Vec<Change<R>> {
        let Some(Listing {
            version,
            rewound,
            blind,
        }) = self.listing.take()
        else {
            return Vec::new();
        };
        let is_gone = |entry: &&StoreEntry<R>| {
            entry.epoch.get() != self.epoch
                && !blind
                && (rewound
                    || !entry
                        .record
                        .identity()
                        .resource_version
                        .is_newer_than(&version))
        };
        let gone: Vec<ObjectKey> = self
            .entries
            .iter()
            .filter(is_gone)
            .map(|entry| entry.record.identity().key.clone())
            .collect();
        let mut changes: Vec<_> = gone.iter().filter_map(|key| self.leave(key)).collect();
        // Events that would have reported other clients' changes are lost; records that came from responses may include such
        // changes.
        let echoes = std::mem::take(&mut self.echoes);
        changes.extend(
            echoes
                .keys()
                .filter_map(|key| self.get(key))
                .map(reported_late),
        );
        self.shrink();
        self.progress = Some(version);
        changes
    }

    /// Removes an awaited echo. True if the event is another client's, and a later response is already known.
    fn hear(&mut self, key: &ObjectKey, version: &Version) -> bool {
        let Some(awaited) = self.echoes.get_mut(key) else {
            return false;
        };
        let is_echo = awaited.iter().any(|echo| echo == version);
        awaited.retain(|echo| echo.is_newer_than(version));
        if awaited.is_empty() {
            self.echoes.remove(key);
        }
        !is_echo
    }

    /// Inserts a record; returns a change only if it differs.
    fn enter(&mut self, record: R) -> Option<Change<R>> {
        let after = Arc::new(record);
        // Only the list itself marks an object as contained in it.
        let epoch = self
            .entries
            .get(&after.identity().key)
            .map_or(self.epoch.wrapping_sub(1), |known| known.epoch.get());
        let entry = StoreEntry {
            record: after.clone(),
            epoch: Cell::new(epoch),
        };
        let before = self.entries.replace(entry).map(|entry| entry.record);
        if let Some(before) = &before {
            self.disown(before);
        }
        self.bytes += bytes_of(&*after);
        self.owned.insert(&after);
        let is_expected = self.is_expected(after.identity());
        let news = is_expected || before.as_ref().is_none_or(|before| after.differs(before));
        news.then(|| Change {
            key: after.identity().key.clone(),
            before,
            after: Some(after),
        })
    }

    fn leave(&mut self, key: &ObjectKey) -> Option<Change<R>> {
        let before = self.entries.take(key)?.record;
        self.disown(&before);
        self.echoes.remove(key);
        self.expected.remove(key);
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            self.shrink();
        }
        Some(Change {
            key: key.clone(),
            before: Some(before),
            after: None,
        })
    }

    /// Frees unused capacity.
    fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        self.owned.shrink();
    }

    /// Removes a record from the byte count and the index by owner.
    fn disown(&mut self, record: &Arc<R>) {
        self.bytes -= bytes_of(&**record);
        self.owned.remove(record);
    }
}

/// The bytes of one record: itself, its heap data, its name, and its entries in the two indexes.
fn bytes_of<R: Record>(record: &R) -> usize {
    /// The two counters of an `Arc`.
    const COUNTS: usize = 2 * size_of::<usize>();
    let indexed = if record.owner().is_some() {
        Owned::<R>::BYTES
    } else {
        0
    };
    let name = record.identity().key.name.len();
    COUNTS + size_of::<R>() + record.heap_bytes() + name + size_of::<StoreEntry<R>>() + indexed
}

fn reported_late<R: Record>(known: Arc<R>) -> Change<R> {
    Change {
        key: known.identity().key.clone(),
        before: Some(known.clone()),
        after: Some(known),
    }
}
