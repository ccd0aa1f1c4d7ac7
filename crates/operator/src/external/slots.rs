//! Places for calls: limited for the process and for each host, in fair shares for operators and their namespaces.
//!
//! ```text
//!  caller (operator, namespace) ── take(host) ──► room at the host and in the process for this caller? ── yes ──► Place
//!                                                      │ no                                              dropped │
//!                                                      └── waits ◄── the caller with the fewest places is next ──┘
//! ```
//!
//! The number of places that a caller may hold depends on the number of free ones (dynamic thresholds): an operator may take more
//! while it holds fewer than three times the free places, a namespace while it holds fewer than one and a half times as many. A
//! caller whose calls hang thus leaves places to others, however many of its calls wait: alone, a namespace can hold 5 places of
//! 8, and an operator 6. A namespace without places gets one while its operator holds fewer than 7 of 8, and an operator without
//! places while any is free.
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The most concurrent calls of one process.
const CALLS: usize = 128;
/// The most concurrent calls to one host and port: a host that hangs takes no more places than this.
const CALLS_A_HOST: usize = 16;

/// The caller: an operator for a custom resource in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller {
    /// The operator, with its Katalog.
    pub(crate) operator: Arc<str>,
    /// The namespace; empty for cluster-scoped custom resources.
    pub(crate) namespace: Arc<str>,
}

/// Assigns places.
#[derive(Default)]
pub(crate) struct CallSlots(Mutex<SlotsState>);

/// Room for one call, at its host and in the process; released when it is dropped.
pub(crate) struct CallSlot {
    places: Arc<CallSlots>,
    at: At,
}

/// A host, as scheme, name and port, and its caller.
type At = (Arc<str>, Caller);

#[derive(Default)]
struct SlotsState {
    process: SlotCounts,
    hosts: BTreeMap<Arc<str>, SlotCounts>,
    /// Waiting calls, in the order of arrival.
    waiting: BTreeMap<At, BTreeMap<u64, oneshot::Sender<()>>>,
    next: u64,
}

/// The number of places that each caller holds.
#[derive(Default)]
struct SlotCounts {
    all: usize,
    operators: BTreeMap<Arc<str>, usize>,
    callers: BTreeMap<Caller, usize>,
}

impl SlotCounts {
    /// True if the caller may take one more place of `most`.
    fn has_room(&self, most: usize, caller: &Caller) -> bool {
        let free = most.saturating_sub(self.all);
        let operator = self.of_operator(caller);
        let own = self.of(caller);
        let newcomer = operator == 0 || (own == 0 && operator < most / 8 * 7);
        free > 0 && (newcomer || (operator < 3 * free && 2 * own < 3 * free))
    }

    fn of(&self, caller: &Caller) -> usize {
        self.callers.get(caller).copied().unwrap_or_default()
    }

    fn of_operator(&self, caller: &Caller) -> usize {
        let held = self.operators.get(&caller.operator);
        held.copied().unwrap_or_default()
    }

    fn take(&mut self, caller: &Caller) {
        self.all += 1;
        *self.operators.entry(caller.operator.clone()).or_default() += 1;
        *self.callers.entry(caller.clone()).or_default() += 1;
    }

    fn give_back(&mut self, caller: &Caller) {
        self.all = self.all.saturating_sub(1);
        decrease(&mut self.operators, &caller.operator);
        decrease(&mut self.callers, caller);
    }
}

fn decrease<K: Ord>(held: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = held.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            held.remove(key);
        }
    }
}

impl SlotsState {
    fn has_room(&self, (host, caller): &At) -> bool {
        let at_host = self.hosts.get(host);
        self.process.has_room(CALLS, caller)
            && at_host.is_none_or(|pool| pool.has_room(CALLS_A_HOST, caller))
    }

    fn take(&mut self, (host, caller): &At) {
        self.process.take(caller);
        self.hosts.entry(host.clone()).or_default().take(caller);
    }

    fn give_back(&mut self, (host, caller): &At) {
        self.process.give_back(caller);
        if let Some(pool) = self.hosts.get_mut(host) {
            pool.give_back(caller);
            if pool.all == 0 {
                self.hosts.remove(host);
            }
        }
    }

    /// Assigns places to waiting calls while there is room: the caller with the fewest places first, then the earliest call.
    fn hand_out(&mut self) {
        loop {
            let next = self.waiting.iter().filter(|(at, _)| self.has_room(at));
            let next = next.min_by_key(|((_, caller), all)| {
                let held = self.process.of(caller);
                (held, all.keys().next().copied().unwrap_or(u64::MAX))
            });
            let Some(at) = next.map(|(at, _)| at.clone()) else {
                return;
            };
            let first = self
                .waiting
                .get_mut(&at)
                .and_then(|all| all.pop_first().map(|(_, first)| first));
            self.forget_empty(&at);
            // A cancelled call is skipped.
            if first.is_some_and(|first| first.send(()).is_ok()) {
                self.take(&at);
            }
        }
    }

    fn forget_empty(&mut self, at: &At) {
        if self.waiting.get(at).is_some_and(BTreeMap::is_empty) {
            self.waiting.remove(at);
        }
    }
}

impl CallSlots {
    /// Waits for a place at the host. Dropping the future cancels the wait, or releases the place.
    pub(crate) async fn take(self: &Arc<Self>, host: &str, caller: &Caller) -> CallSlot {
        let at: At = (host.into(), caller.clone());
        let (mut waiting, granted) = {
            let mut state = self.0.lock();
            let id = state.next;
            state.next += 1;
            let (grant, granted) = oneshot::channel();
            let queue = state.waiting.entry(at.clone()).or_default();
            queue.insert(id, grant);
            state.hand_out();
            let waiting = WaitingCall {
                places: self.clone(),
                at,
                id: Some(id),
            };
            (waiting, granted)
        };
        // Only the waiting call itself drops the sender.
        let _ = granted.await;
        waiting.id = None;
        CallSlot {
            places: self.clone(),
            at: waiting.at.clone(),
        }
    }

    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.0.lock().waiting.values().map(BTreeMap::len).sum()
    }
}

/// A waiting call.
struct WaitingCall {
    places: Arc<CallSlots>,
    at: At,
    /// `None` once the place is passed on.
    id: Option<u64>,
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let mut state = self.places.0.lock();
        let queue = state.waiting.get_mut(&self.at);
        if queue.is_some_and(|queue| queue.remove(&id).is_some()) {
            state.forget_empty(&self.at);
            return;
        }
        // The place was assigned, but the call was cancelled.
        state.give_back(&self.at);
        state.hand_out();
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut state = self.places.0.lock();
        state.give_back(&self.at);
        state.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn caller(operator: &str, namespace: &str) -> Caller {
        Caller {
            operator: operator.into(),
            namespace: namespace.into(),
        }
    }

    /// Takes slots until the caller would have to wait, at most `most`.
    fn fill(places: &Arc<CallSlots>, host: &str, caller: &Caller, most: usize) -> Vec<CallSlot> {
        (0..most)
            .map_while(|_| places.take(host, caller).now_or_never())
            .collect()
    }

    #[test]
    fn who_hangs_leaves_places_to_other_namespaces_and_operators() {
        let places = Arc::default();
        let (first, second) = (caller("ponds", "a"), caller("ponds", "b"));
        let held = fill(&places, "h", &first, 500);
        assert!((8..=10).contains(&held.len()), "{}", held.len());
        let other = fill(&places, "h", &second, 500);
        assert!(!other.is_empty(), "another namespace has no slot");
        let many: Vec<CallSlot> = (0..100)
            .flat_map(|n| fill(&places, "h", &caller("ponds", &format!("n{n}")), 500))
            .collect();
        let all = held.len() + other.len() + many.len();
        assert!(all <= CALLS_A_HOST / 8 * 7, "{all} slots of one operator");
        assert!(!fill(&places, "h", &caller("lakes", "a"), 1).is_empty());
        assert_eq!(places.waiting(), 0, "a dropped request still waits");
    }

    #[test]
    fn hosts_that_hang_leave_places_of_the_process_to_others() {
        let places = Arc::default();
        let mut held = Vec::new();
        for host in 0..100 {
            held.extend(fill(
                &places,
                &format!("h{host}"),
                &caller("ponds", "a"),
                500,
            ));
        }
        assert!(held.len() <= CALLS / 8 * 5, "{}", held.len());
        for operator in 0..10 {
            let other = caller(&format!("o{operator}"), "a");
            let one = fill(&places, "quick", &other, 1);
            assert_eq!(one.len(), 1, "{operator}");
        }
    }

    #[test]
    fn no_more_than_a_hosts_places_are_taken_whoever_calls() {
        let places = Arc::default();
        let held: Vec<CallSlot> = (0..1000)
            .flat_map(|n| fill(&places, "h", &caller(&format!("o{n}"), "a"), 2))
            .collect();
        assert_eq!(held.len(), CALLS_A_HOST);
        drop(held);
        assert!(places.0.lock().hosts.is_empty());
        assert_eq!(places.0.lock().process.all, 0);
        assert!(places.0.lock().process.callers.is_empty());
    }

    #[tokio::test]
    async fn a_place_that_is_free_goes_to_who_holds_the_fewest() {
        let places: Arc<CallSlots> = Arc::default();
        let (hog, other) = (caller("ponds", "a"), caller("lakes", "b"));
        let mut held: Vec<CallSlot> = (0..CALLS_A_HOST)
            .flat_map(|n| fill(&places, "h", &caller(&format!("o{n}"), "a"), 1))
            .collect();
        let mut of_hog = fill(&places, "elsewhere", &hog, 3);
        let mut first = Box::pin(places.take("h", &hog));
        let mut second = Box::pin(places.take("h", &other));
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        held.pop();
        assert!((&mut first).now_or_never().is_none(), "it has three slots");
        let taken = second.await;
        of_hog.clear();
        drop(taken);
        drop(first.await);
    }

    #[tokio::test]
    async fn a_place_that_was_granted_and_not_taken_over_is_given_back() {
        let places: Arc<CallSlots> = Arc::default();
        let who = caller("ponds", "a");
        let mut held: Vec<CallSlot> = (0..CALLS_A_HOST)
            .flat_map(|n| fill(&places, "h", &caller(&format!("o{n}"), "a"), 1))
            .collect();
        let mut waiting = Box::pin(places.take("h", &who));
        assert!((&mut waiting).now_or_never().is_none());
        held.pop();
        assert_eq!(places.waiting(), 0, "not granted yet");
        drop(waiting);
        assert_eq!(places.0.lock().process.all, CALLS_A_HOST - 1);
    }
}
