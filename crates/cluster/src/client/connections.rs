//! Assigns requests to connections: accounting only, without I/O and without a clock of its own.
//!
//! ```text
//!  reserve ─► an open one with room ──────────► Taken, released by `leave`
//!      ├─► one being opened, with room ────► Wait, then reserve again
//!      └─► none ───────────────────────────► Make ─► opened ─► idle for IDLE ─► closed
//! ```

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

/// How long an unused connection is kept.
pub(crate) const IDLE: Duration = Duration::from_secs(90);

/// What a connection is used for. The two uses share no connection: a request never waits behind watches, and closing an idle
/// connection of one use does not disturb the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Responses that take minutes.
    Watches,
    /// Requests that are answered at once.
    Singles,
}

impl Use {
    /// The most concurrent requests on one connection. A genuine API server allows 100 streams (observed with 1.34): watches
    /// leave some of them unused; single requests are spread, since one connection is one byte stream and one task of the server.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Watches => 80,
            Self::Singles => 32,
        }
    }
}

/// Identifies a connection, as long as it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u64);

/// The sending half of a connection.
pub(crate) trait Sender: Clone {
    /// True if it takes no more requests.
    fn is_closed(&self) -> bool;
}

/// The place of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamSlot<S> {
    /// This connection; the place is held until [`Connections::leave`].
    Taken(Id, S),
    /// A connection is being opened that will probably have room: call `reserve` again then.
    Wait(Id),
    /// The caller opens a connection, and reports the outcome with [`Connections::opened`] or [`Connections::remove`].
    Make(Id),
}

/// All connections of one client.
#[derive(Debug)]
pub(crate) struct Connections<S> {
    entries: BTreeMap<Id, ConnectionEntry<S>>,
    last: u64,
    /// The number of concurrent requests that the last connection took: the estimate for the next one.
    usual: usize,
}

#[derive(Debug)]
struct ConnectionEntry<S> {
    used_for: Use,
    /// `None` while the connection is being opened.
    sender: Option<S>,
    /// The number of concurrent requests that the server takes.
    limit: usize,
    /// Requests on the connection; while it is being opened, those that wait for it.
    taken: usize,
    idle_since: Instant,
}

impl<S> ConnectionEntry<S> {
    fn has_room(&self) -> bool {
        self.taken < self.limit.min(self.used_for.most())
    }
}

impl<S: Sender> Connections<S> {
    /// No connections; the server is assumed to multiplex until it shows otherwise.
    pub(crate) fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            last: 0,
            usual: usize::MAX,
        }
    }

    /// Finds a place: the fullest connection with room, so that others can become idle.
    pub(crate) fn reserve(&mut self, used_for: Use, now: Instant) -> StreamSlot<S> {
        let is_usable =
            |entry: &ConnectionEntry<S>| !entry.sender.as_ref().is_some_and(S::is_closed);
        self.entries.retain(|_, entry| is_usable(entry));
        let fit = (self.entries.iter_mut())
            .filter(|(_, entry)| entry.used_for == used_for && entry.has_room())
            // An open connection before one that is being opened.
            .max_by_key(|(_, entry)| (entry.sender.is_some(), entry.taken));
        if let Some((id, entry)) = fit {
            entry.taken += 1;
            return match &entry.sender {
                Some(sender) => StreamSlot::Taken(*id, sender.clone()),
                None => StreamSlot::Wait(*id),
            };
        }
        self.last += 1;
        let id = Id(self.last);
        let entry = ConnectionEntry {
            used_for,
            sender: None,
            limit: self.usual,
            taken: 1,
            idle_since: now,
        };
        self.entries.insert(id, entry);
        StreamSlot::Make(id)
    }

    /// A connection is open, for `limit` concurrent requests. It has no requests yet: those that waited for it call `reserve` again.
    pub(crate) fn opened(&mut self, id: Id, sender: S, limit: usize, now: Instant) {
        self.usual = limit;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.sender = Some(sender);
            entry.limit = limit;
            entry.taken = 0;
            entry.idle_since = now;
        }
    }

    /// The server changed the number of concurrent requests.
    pub(crate) fn limit(&mut self, id: Id, limit: usize) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.limit = limit;
        }
    }

    /// A request has finished.
    pub(crate) fn leave(&mut self, id: Id, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.taken = entry.taken.saturating_sub(1);
            entry.idle_since = now;
        }
    }

    /// Removes a connection that failed or is closed. Its requests end by themselves.
    pub(crate) fn remove(&mut self, id: Id) {
        self.entries.remove(&id);
    }

    /// Removes a connection that has been unused for [`IDLE`].
    pub(crate) fn close_idle(&mut self, id: Id, now: Instant) {
        let is_idle = |entry: &ConnectionEntry<S>| {
            entry.taken == 0 && now.saturating_duration_since(entry.idle_since) >= IDLE
        };
        if self.entries.get(&id).is_some_and(is_idle) {
            self.entries.remove(&id);
        }
    }

    /// The number of connections for a use.
    #[cfg(test)]
    pub(crate) fn count(&self, used_for: Use) -> usize {
        let same = |entry: &&ConnectionEntry<S>| entry.used_for == used_for;
        self.entries.values().filter(same).count()
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc};

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Cluster(Rc<Cell<bool>>);

    impl PartialEq for Cluster {
        fn eq(&self, other: &Self) -> bool {
            Rc::ptr_eq(&self.0, &other.0)
        }
    }
    impl Eq for Cluster {}

    impl Sender for Cluster {
        fn is_closed(&self) -> bool {
            self.0.get()
        }
    }

    struct Case {
        connections: Connections<Cluster>,
        now: Instant,
    }

    impl Case {
        fn new() -> Self {
            Self {
                connections: Connections::new(),
                now: Instant::now(),
            }
        }

        fn reserve(&mut self, used_for: Use) -> StreamSlot<Cluster> {
            self.connections.reserve(used_for, self.now)
        }

        /// Opens the connection that `reserve` requests, and takes a stream on it.
        fn make(&mut self, used_for: Use, limit: usize) -> (Id, Cluster) {
            let StreamSlot::Make(id) = self.reserve(used_for) else {
                panic!("no new connection requested");
            };
            let cluster = Cluster::default();
            self.connections
                .opened(id, cluster.clone(), limit, self.now);
            assert_eq!(
                self.reserve(used_for),
                StreamSlot::Taken(id, cluster.clone())
            );
            (id, cluster)
        }
    }

    #[test]
    fn eighty_watches_share_a_connection_and_the_next_one_asks_for_another() {
        let mut case = Case::new();
        let (first, cluster) = case.make(Use::Watches, 100);
        for _ in 1..80 {
            assert_eq!(
                case.reserve(Use::Watches),
                StreamSlot::Taken(first, cluster.clone())
            );
        }
        let (second, _) = case.make(Use::Watches, 100);
        assert_ne!(first, second);
        // A watch that ends frees its stream.
        case.connections.leave(first, case.now);
        assert_eq!(
            case.reserve(Use::Watches),
            StreamSlot::Taken(first, cluster)
        );
    }

    #[test]
    fn a_single_request_never_shares_with_watches() {
        let mut case = Case::new();
        let (watches, _) = case.make(Use::Watches, 100);
        let (singles, cluster) = case.make(Use::Singles, 100);
        assert_ne!(watches, singles);
        for _ in 1..32 {
            assert_eq!(
                case.reserve(Use::Singles),
                StreamSlot::Taken(singles, cluster.clone())
            );
        }
        assert!(matches!(case.reserve(Use::Singles), StreamSlot::Make(_)));
    }

    #[test]
    fn a_server_that_takes_fewer_streams_gets_no_more() {
        let mut case = Case::new();
        let (first, cluster) = case.make(Use::Watches, 3);
        for _ in 1..3 {
            assert_eq!(
                case.reserve(Use::Watches),
                StreamSlot::Taken(first, cluster.clone())
            );
        }
        let StreamSlot::Make(second) = case.reserve(Use::Watches) else {
            panic!("a fourth stream was granted");
        };
        // While it is being opened, two more requests wait for it: its limit is assumed to be that of the first connection.
        assert_eq!(case.reserve(Use::Watches), StreamSlot::Wait(second));
        assert_eq!(case.reserve(Use::Watches), StreamSlot::Wait(second));
        assert!(matches!(case.reserve(Use::Watches), StreamSlot::Make(_)));
        // The server raises its limit.
        case.connections.limit(first, 4);
        assert_eq!(
            case.reserve(Use::Watches),
            StreamSlot::Taken(first, cluster)
        );
    }

    #[test]
    fn at_the_start_all_wait_for_one_connection_and_each_makes_its_own_where_that_takes_one() {
        let mut case = Case::new();
        let StreamSlot::Make(first) = case.reserve(Use::Watches) else {
            panic!("there is none yet");
        };
        for _ in 0..20 {
            assert_eq!(case.reserve(Use::Watches), StreamSlot::Wait(first));
        }
        // The connection is HTTP/1.1, so it takes one request at a time.
        let cluster = Cluster::default();
        case.connections.opened(first, cluster.clone(), 1, case.now);
        assert_eq!(
            case.reserve(Use::Watches),
            StreamSlot::Taken(first, cluster)
        );
        for _ in 0..19 {
            assert!(matches!(case.reserve(Use::Watches), StreamSlot::Make(_)));
        }
    }

    #[test]
    fn the_fullest_connection_is_taken_and_the_other_closes_when_it_is_idle() {
        let mut case = Case::new();
        let (first, cluster) = case.make(Use::Singles, 2);
        assert_eq!(
            case.reserve(Use::Singles),
            StreamSlot::Taken(first, cluster.clone())
        );
        let (second, _) = case.make(Use::Singles, 2);
        case.connections.leave(first, case.now);
        case.connections.leave(second, case.now);
        case.now += IDLE.saturating_sub(Duration::from_secs(1));
        case.connections.close_idle(second, case.now);
        assert_eq!(case.connections.count(Use::Singles), 2);
        assert_eq!(
            case.reserve(Use::Singles),
            StreamSlot::Taken(first, cluster)
        );
        case.connections.leave(first, case.now);
        case.now += Duration::from_secs(1);
        for id in [first, second] {
            case.connections.close_idle(id, case.now);
        }
        assert_eq!(case.connections.count(Use::Singles), 1);
    }

    #[test]
    fn a_connection_that_is_closed_takes_nobody() {
        let mut case = Case::new();
        let (first, cluster) = case.make(Use::Watches, 100);
        cluster.0.set(true);
        let (second, _) = case.make(Use::Watches, 100);
        assert_ne!(first, second);
        // The requests on the closed connection finish without effect on the other connection.
        case.connections.leave(first, case.now);
        assert_eq!(case.connections.count(Use::Watches), 1);
    }

    #[test]
    fn a_connection_that_cannot_be_made_leaves_nothing() {
        let mut case = Case::new();
        let StreamSlot::Make(first) = case.reserve(Use::Singles) else {
            panic!("there is none yet");
        };
        case.connections.remove(first);
        assert_eq!(case.connections.count(Use::Singles), 0);
        assert!(matches!(case.reserve(Use::Singles), StreamSlot::Make(_)));
    }
}
