//! Fair queues: a limited number of requests is evaluated at a time, and operators share the seats, so that a flood against the
//! rules of one delays only its own requests.
//!
//! ```text
//!  request of an operator ──► free seat, and fewer of its own than its share? ─┬─ yes ──────────────────────────► evaluated
//!                                                                              ├─ no: the operator's queue ─ seat ─┘
//!                                                                              └─ the queue is full: 429
//! ```
//!
//! One operator gets half of the seats at most. So even if all of its reviews wait for slow calls, others find a seat.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The most requests that wait in the queue of one operator.
pub(super) const QUEUE_LENGTH: usize = 64;

/// The seats, and the queues of all operators. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct FairQueues(Arc<Mutex<QueuesState>>);

#[derive(Debug)]
struct QueuesState {
    /// Seats that are free: every operator whose requests wait then has its share.
    free: usize,
    /// The most seats of one operator.
    share: usize,
    /// The seats that each operator has, if it has any.
    taken: BTreeMap<Arc<str>, usize>,
    /// The waiting requests of each operator that has any.
    queues: BTreeMap<Arc<str>, VecDeque<oneshot::Sender<Seat>>>,
    /// The operators with waiting requests, the next one first.
    order: VecDeque<Arc<str>>,
}

/// A seat; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat(Option<(FairQueues, Arc<str>)>);

/// Too many requests of the operator wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

impl FairQueues {
    /// `seats` requests are evaluated at a time, two at least.
    pub(super) fn new(seats: usize) -> Self {
        let seats = seats.max(2);
        Self(Arc::new(Mutex::new(QueuesState {
            free: seats,
            share: seats / 2,
            taken: BTreeMap::new(),
            queues: BTreeMap::new(),
            order: VecDeque::new(),
        })))
    }

    /// Waits for a seat for a request of that operator.
    pub(super) async fn seat(&self, operator: &str) -> Result<Seat, QueueFull> {
        let waiting = {
            let mut state = self.0.lock();
            let operator: Arc<str> = operator.into();
            if state.free > 0 && state.is_below_share(&operator) {
                state.free -= 1;
                state.take(&operator);
                return Ok(Seat(Some((self.clone(), operator))));
            }
            state.join(operator)?
        };
        // The sender is dropped only with all queues.
        waiting.await.map_err(|_| QueueFull)
    }

    /// Returns how many requests of the operator wait.
    #[cfg(test)]
    pub(super) fn waiting(&self, operator: &str) -> usize {
        self.0.lock().queues.get(operator).map_or(0, VecDeque::len)
    }

    /// Passes the seat of an operator on to the next one in order that has less than its share.
    fn release(&self, operator: &Arc<str>) {
        let mut state = self.0.lock();
        state.give_back(operator);
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

impl QueuesState {
    fn is_below_share(&self, operator: &Arc<str>) -> bool {
        self.taken
            .get(operator)
            .is_none_or(|taken| *taken < self.share)
    }

    fn take(&mut self, operator: &Arc<str>) {
        *self.taken.entry(operator.clone()).or_default() += 1;
    }

    fn give_back(&mut self, operator: &Arc<str>) {
        if let Some(taken) = self.taken.get_mut(operator) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(operator);
            }
        }
    }

    fn join(&mut self, operator: Arc<str>) -> Result<oneshot::Receiver<Seat>, QueueFull> {
        let queue = self.queues.entry(operator.clone()).or_default();
        queue.retain(|waiting| !waiting.is_closed());
        if queue.len() >= QUEUE_LENGTH {
            return Err(QueueFull);
        }
        let (sender, receiver) = oneshot::channel();
        queue.push_back(sender);
        if !self.order.contains(&operator) {
            self.order.push_back(operator);
        }
        Ok(receiver)
    }

    /// Takes the first request of the next operator that has less than its share.
    fn next(&mut self) -> Option<(Arc<str>, oneshot::Sender<Seat>)> {
        loop {
            let mut order = self.order.iter();
            let at = order.position(|operator| self.is_below_share(operator))?;
            let operator = self.order.remove(at)?;
            let Some(queue) = self.queues.get_mut(&operator) else {
                continue;
            };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&operator);
            } else {
                self.order.push_back(operator.clone());
            }
            if let Some(next) = next {
                return Some((operator, next));
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((queues, operator)) = self.0.take() {
            queues.release(&operator);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};

    use super::*;

    async fn taken<const N: usize>(queues: &FairQueues, operators: [&str; N]) -> Vec<Seat> {
        let seats = join_all(operators.map(|operator| queues.seat(operator))).await;
        seats.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn a_flood_of_one_operator_waits_in_its_own_queue_and_others_come_next() {
        let queues = FairQueues::new(2);
        let mut held = taken(&queues, ["flood", "third"]).await;
        let mut flood: Vec<_> = (0..QUEUE_LENGTH)
            .map(|_| Box::pin(queues.seat("flood")))
            .collect();
        for waiting in &mut flood {
            assert!(waiting.now_or_never().is_none());
        }
        assert_eq!(queues.seat("flood").await.unwrap_err(), QueueFull);
        let mut other = Box::pin(queues.seat("other"));
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
        let mut third = Box::pin(queues.seat("slow"));
        assert!(third.as_mut().now_or_never().is_none());
        let other = queues.seat("other").now_or_never().unwrap().unwrap();
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
    async fn requests_that_are_given_up_leave_no_seat_taken() {
        let queues = FairQueues::new(2);
        let held = taken(&queues, ["a", "b"]).await;
        let mut given_up = Box::pin(queues.seat("a"));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        // This request is granted a seat, and is dropped before it is polled again.
        let mut unseen = Box::pin(queues.seat("a"));
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
