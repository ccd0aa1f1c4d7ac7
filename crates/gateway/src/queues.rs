//! Fair queues: a limited number of requests is evaluated at a time, and operators and peers share the seats, so that a flood
//! against the rules of one operator delays only its own requests, and one from a peer only those of that peer.
//!
//! ```text
//!  request of an operator ──► free seat, and operator ────┬─ yes ────────────────────────────────────────────► evaluated
//!    from a peer                and peer below their      ├─ no: the queue of operator and peer ── seat ───────┘
//!                               shares?                   └─ the queue is full: 429
//! ```
//!
//! One operator gets half of the seats at most. So even if all of its reviews wait for slow calls, others find a seat. One peer gets
//! three quarters: its requests for many operators leave seats for other peers.

use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The most requests that wait in the queue of one operator and peer.
pub(crate) const QUEUE_LENGTH: usize = 64;
/// The most queues: with more, the requests of further operators and peers do not wait.
const QUEUES: usize = 1024;

/// The seats, and all queues. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct FairQueues(Arc<Mutex<QueuesState>>);

/// The operator that requests are about, and their peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueKey {
    operator: Arc<str>,
    peer: IpAddr,
}

#[derive(Debug)]
struct QueuesState {
    /// Seats that are free: every operator and peer whose requests wait then has its share.
    free: usize,
    /// The most seats of one operator.
    share: usize,
    /// The most seats of one peer.
    peer_share: usize,
    /// The seats that each operator has, if it has any.
    taken: BTreeMap<Arc<str>, usize>,
    /// The seats that each peer has, if it has any.
    taken_by: BTreeMap<IpAddr, usize>,
    /// The waiting requests of each operator and peer that have any.
    queues: BTreeMap<QueueKey, VecDeque<oneshot::Sender<Seat>>>,
    /// The operators and peers with waiting requests, the next one first.
    order: VecDeque<QueueKey>,
}

/// A seat; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Option<(FairQueues, QueueKey)>);

/// Too many requests of the operator and peer wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl FairQueues {
    /// `seats` requests are evaluated at a time, two at least.
    pub(crate) fn new(seats: usize) -> Self {
        let seats = seats.max(2);
        Self(Arc::new(Mutex::new(QueuesState {
            free: seats,
            share: seats / 2,
            peer_share: seats - seats.div_ceil(4),
            taken: BTreeMap::new(),
            taken_by: BTreeMap::new(),
            queues: BTreeMap::new(),
            order: VecDeque::new(),
        })))
    }

    /// Waits for a seat for a request of that operator, from that peer.
    pub(crate) async fn seat(&self, operator: &str, peer: IpAddr) -> Result<Seat, QueueFull> {
        let waiting = {
            let mut state = self.0.lock();
            let key = QueueKey {
                operator: operator.into(),
                peer,
            };
            if state.free > 0 && state.is_below_share(&key) {
                state.free -= 1;
                state.take(&key);
                return Ok(Seat(Some((self.clone(), key))));
            }
            state.join(key)?
        };
        // The sender is dropped only with all queues.
        waiting.await.map_err(|_| QueueFull)
    }

    /// Returns how many requests of the operator wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self, operator: &str) -> usize {
        let state = self.0.lock();
        let queues = state.queues.iter();
        let of = queues.filter(|(key, _)| &*key.operator == operator);
        of.map(|(_, queue)| queue.len()).sum()
    }

    /// Passes the seat of an operator and peer on to the next in order that have less than their shares.
    fn release(&self, key: &QueueKey) {
        let mut state = self.0.lock();
        state.give_back(key);
        while let Some((next, request)) = state.next() {
            state.take(&next);
            match request.send(Seat(Some((self.clone(), next.clone())))) {
                Ok(()) => return,
                // The request was given up while it waited: the seat is not taken.
                Err(mut seat) => {
                    drop(seat.0.take());
                    state.give_back(&next);
                }
            }
        }
        state.free += 1;
    }
}

fn less_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl QueuesState {
    fn is_below_share(&self, key: &QueueKey) -> bool {
        let taken = self.taken.get(&key.operator).copied().unwrap_or_default();
        let taken_by = self.taken_by.get(&key.peer).copied().unwrap_or_default();
        taken < self.share && taken_by < self.peer_share
    }

    fn take(&mut self, key: &QueueKey) {
        *self.taken.entry(key.operator.clone()).or_default() += 1;
        *self.taken_by.entry(key.peer).or_default() += 1;
    }

    fn give_back(&mut self, key: &QueueKey) {
        less_one(&mut self.taken, &key.operator);
        less_one(&mut self.taken_by, &key.peer);
    }

    fn join(&mut self, key: QueueKey) -> Result<oneshot::Receiver<Seat>, QueueFull> {
        if self.queues.len() >= QUEUES && !self.queues.contains_key(&key) {
            return Err(QueueFull);
        }
        let queue = self.queues.entry(key.clone()).or_default();
        queue.retain(|waiting| !waiting.is_closed());
        if queue.len() >= QUEUE_LENGTH {
            return Err(QueueFull);
        }
        let (sender, receiver) = oneshot::channel();
        queue.push_back(sender);
        if !self.order.contains(&key) {
            self.order.push_back(key);
        }
        Ok(receiver)
    }

    /// Takes the first request of the next operator and peer that have less than their shares.
    fn next(&mut self) -> Option<(QueueKey, oneshot::Sender<Seat>)> {
        loop {
            let mut order = self.order.iter();
            let at = order.position(|key| self.is_below_share(key))?;
            let key = self.order.remove(at)?;
            let Some(queue) = self.queues.get_mut(&key) else {
                continue;
            };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&key);
            } else {
                self.order.push_back(key.clone());
            }
            if let Some(next) = next {
                return Some((key, next));
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((queues, key)) = self.0.take() {
            queues.release(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};

    use super::*;

    /// The peer number `last`.
    fn peer(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// Takes seats for requests of different peers.
    async fn taken<const N: usize>(queues: &FairQueues, operators: [&str; N]) -> Vec<Seat> {
        let mut last = 100;
        let seats = operators.map(|operator| {
            last += 1;
            queues.seat(operator, peer(last))
        });
        let seats = join_all(seats).await;
        seats.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn a_flood_of_one_operator_waits_in_its_own_queue_and_others_come_next() {
        let queues = FairQueues::new(2);
        let mut held = taken(&queues, ["flood", "third"]).await;
        let mut flood: Vec<_> = (0..QUEUE_LENGTH)
            .map(|_| Box::pin(queues.seat("flood", peer(1))))
            .collect();
        for waiting in &mut flood {
            assert!(waiting.now_or_never().is_none());
        }
        assert_eq!(queues.seat("flood", peer(1)).await.unwrap_err(), QueueFull);
        let mut other = Box::pin(queues.seat("other", peer(1)));
        assert!(other.as_mut().now_or_never().is_none());
        // A request of the flood was queued first and gets the seat; the next one goes to the other operator.
        drop(held.remove(0));
        let second = flood[0].as_mut().now_or_never().unwrap().unwrap();
        assert!(other.as_mut().now_or_never().is_none());
        drop(second);
        drop(other.as_mut().now_or_never().unwrap().unwrap());
    }

    #[tokio::test]
    async fn one_operator_gets_half_of_the_seats_and_others_find_one_at_once() {
        let queues = FairQueues::new(4);
        let mut slow = taken(&queues, ["slow", "slow"]).await;
        let mut third = Box::pin(queues.seat("slow", peer(1)));
        assert!(third.as_mut().now_or_never().is_none());
        let other = queues
            .seat("other", peer(1))
            .now_or_never()
            .unwrap()
            .unwrap();
        // The operator has its share, so it does not get a seat that another operator frees either.
        drop(other);
        assert!(third.as_mut().now_or_never().is_none());
        drop(slow.pop());
        drop(third.as_mut().now_or_never().unwrap().unwrap());
        drop(slow);
        assert_eq!(queues.0.lock().free, 4);
        assert!(queues.0.lock().taken.is_empty());
    }

    #[tokio::test]
    async fn one_peer_leaves_seats_for_others_and_comes_after_them_in_turn() {
        let queues = FairQueues::new(4);
        let mut flood = Vec::new();
        for operator in ["a", "b", "c"] {
            flood.push(queues.seat(operator, peer(1)).await.unwrap());
        }
        // Its requests for further operators wait, although a seat is free.
        let mut more = Box::pin(queues.seat("d", peer(1)));
        assert!(more.as_mut().now_or_never().is_none());
        let other = queues.seat("a", peer(2)).now_or_never().unwrap().unwrap();
        // A peer that waits for the same operator does not wait behind the whole flood.
        let mut behind: Vec<_> = (0..5)
            .map(|_| Box::pin(queues.seat("a", peer(1))))
            .collect();
        for waiting in &mut behind {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut patient = Box::pin(queues.seat("a", peer(3)));
        assert!(patient.as_mut().now_or_never().is_none());
        drop(other);
        drop(patient.as_mut().now_or_never().unwrap().unwrap());
        drop((flood, more, behind));
        assert_eq!(queues.0.lock().free, 4);
        assert!(queues.0.lock().taken_by.is_empty());
    }

    #[tokio::test]
    async fn requests_that_are_given_up_leave_no_seat_taken() {
        let queues = FairQueues::new(2);
        let held = taken(&queues, ["a", "b"]).await;
        let mut given_up = Box::pin(queues.seat("a", peer(1)));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        // This request is granted a seat, and is dropped before it is polled again.
        let mut unseen = Box::pin(queues.seat("a", peer(1)));
        assert!(unseen.as_mut().now_or_never().is_none());
        drop(held);
        drop(unseen);
        let all = taken(&queues, ["c", "d"]).await;
        assert_eq!(queues.0.lock().free, 0);
        drop(all);
        assert_eq!(queues.0.lock().free, 2);
        assert!(queues.0.lock().taken.is_empty());
    }
}
