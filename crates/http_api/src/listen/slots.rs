//! The places of a port's connections: the progress of each one, and which one is closed for another.
//!
//! ```text
//!            first bytes          end of the head               end of the response
//!   Waiting ────────────► Head ────────────────────► Answering ───────────────────┐
//!      ▲                                                                          │
//!      └──────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Any connection can be closed for another unless its request is in progress. This includes a connection that sends its head
//! byte by byte, since only the end of a response resets its idle time, and one whose peer accepts no byte of its response.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::Limits;

/// The phase of a connection's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No bytes of a request were received.
    Waiting,
    /// A part of a request's head was received.
    Head,
    /// A request is in progress, or its response is being written.
    Answering,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    phase: Phase,
    /// The start of the phase.
    since: Instant,
    /// When the connection was opened, or its last response ended.
    idle_since: Instant,
    /// Since when the peer accepts no byte.
    stalled_since: Option<Instant>,
    /// Requests in progress: several, if the connection has streams.
    active: usize,
    /// Whether requests are streams of one connection: between them, bytes are not the head of a request.
    streams: bool,
}

/// A connection's place in its port's [`ConnectionLimit`]; released when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) peer: IpAddr,
    serial: u64,
    state: Arc<ConnectionState>,
    room: Arc<Shared>,
}

#[derive(Debug)]
struct ConnectionState {
    progress: Mutex<Progress>,
    /// Cancelled when another connection needs the place.
    closed: CancellationToken,
}

impl ConnectionState {
    /// Since when it can be closed for another; `None` while a request is in progress.
    fn idle_since(&self) -> Option<Instant> {
        let progress = self.progress.lock();
        let idle = (progress.phase != Phase::Answering).then_some(progress.idle_since);
        progress.stalled_since.or(idle)
    }
}

/// The connections of one port.
#[derive(Debug)]
pub(crate) struct ConnectionLimit(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    places: Mutex<Places>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Places {
    last: u64,
    taken: HashMap<u64, (IpAddr, Arc<ConnectionState>)>,
}

impl Places {
    /// Returns the connection that has been idle for longest, of the peer with the most connections.
    fn longest_idle(&self) -> Option<u64> {
        let mut of_peer: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (peer, _) in self.taken.values() {
            *of_peer.entry(*peer).or_default() += 1;
        }
        let idle = self.taken.iter().filter_map(|(serial, (peer, state))| {
            let since = state.idle_since()?;
            Some((std::cmp::Reverse(of_peer.get(peer)), since, *serial))
        });
        idle.min().map(|(_, _, serial)| serial)
    }
}

impl ConnectionLimit {
    /// A room with `most` places.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Shared {
            most,
            places: Mutex::default(),
            left: Notify::new(),
        }))
    }

    /// Takes a place, if necessary that of an idle connection; `None` if all are taken and none is idle.
    pub(crate) fn enter(&self, peer: IpAddr) -> Option<ConnectionSlot> {
        let mut places = self.0.places.lock();
        if places.taken.len() >= self.0.most {
            let idle = places.longest_idle()?;
            if let Some((_, state)) = places.taken.remove(&idle) {
                state.closed.cancel();
            }
        }
        places.last += 1;
        let serial = places.last;
        let now = Instant::now();
        let state = Arc::new(ConnectionState {
            progress: Mutex::new(Progress {
                phase: Phase::Head,
                since: now,
                idle_since: now,
                stalled_since: None,
                active: 0,
                streams: false,
            }),
            closed: CancellationToken::new(),
        });
        places.taken.insert(serial, (peer, state.clone()));
        Some(ConnectionSlot {
            peer,
            serial,
            state,
            room: self.0.clone(),
        })
    }

    /// Waits until a connection has left.
    pub(crate) async fn left(&self) {
        self.0.left.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.room.places.lock().taken.remove(&self.serial);
        self.room.left.notify_one();
    }
}

impl ConnectionSlot {
    /// Records bytes from the peer.
    pub(crate) fn received(&self) {
        let mut progress = self.state.progress.lock();
        if progress.phase == Phase::Waiting && !progress.streams {
            (progress.phase, progress.since) = (Phase::Head, Instant::now());
        }
    }

    /// Records a write, and whether the peer accepted no bytes.
    pub(crate) fn wrote(&self, stalled: bool) {
        let mut progress = self.state.progress.lock();
        progress.stalled_since = match (stalled, progress.stalled_since) {
            (false, _) => None,
            (true, None) => Some(Instant::now()),
            (true, since) => since,
        };
    }

    /// Records that the head of a request is complete.
    pub(crate) fn begin(&self) {
        let mut progress = self.state.progress.lock();
        progress.active += 1;
        (progress.phase, progress.since) = (Phase::Answering, Instant::now());
    }

    /// Records that requests are streams of this connection, as in HTTP/2.
    pub(crate) fn has_streams(&self) {
        self.state.progress.lock().streams = true;
    }

    /// True if requests are streams of this connection: it is closed with a farewell.
    pub(crate) fn is_closed_gently(&self) -> bool {
        self.state.progress.lock().streams
    }

    /// Records that the response is complete.
    pub(crate) fn end(&self) {
        let now = Instant::now();
        let mut progress = self.state.progress.lock();
        progress.active = progress.active.saturating_sub(1);
        progress.since = now;
        if progress.active == 0 {
            (progress.phase, progress.idle_since) = (Phase::Waiting, now);
        }
    }

    /// True if another connection has taken the place.
    #[cfg(test)]
    pub(crate) fn is_closed(&self) -> bool {
        self.state.closed.is_cancelled()
    }

    /// Returns the deadline that has passed.
    fn overdue(&self, limits: &Limits) -> Option<&'static str> {
        let progress = *self.state.progress.lock();
        let (limit, what) = match progress.phase {
            Phase::Waiting => (limits.idle, "idle"),
            Phase::Head => (
                limits.head,
                "the head of the request did not arrive in time",
            ),
            Phase::Answering => (limits.answer, "the response took too long"),
        };
        if progress.since.elapsed() >= limit {
            return Some(what);
        }
        let stalled = progress.stalled_since?;
        (stalled.elapsed() >= limits.stall).then_some("the client does not read the response")
    }

    /// Waits until the connection has to end, because a deadline passed or another connection needs the place; returns the cause.
    pub(crate) async fn until_closed(&self, limits: &Limits) -> &'static str {
        // A tenth late is acceptable.
        let shortest = [limits.head, limits.idle, limits.answer, limits.stall];
        let look = shortest.into_iter().min().unwrap_or(limits.head) / 10;
        loop {
            if let Some(why) = self.overdue(limits) {
                return why;
            }
            tokio::select! {
                () = self.state.closed.cancelled() => return "replaced by another connection",
                () = tokio::time::sleep(look) => {}
            }
        }
    }
}
