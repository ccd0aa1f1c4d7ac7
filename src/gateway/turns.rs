//! The turns of requests: a limited number is evaluated at a time, and operators take turns, so that a flood against the rules
//! of one delays only its own requests.
//!
//! ```text
//!  request of an operator ──► free place? ─┬─ yes ─────────────────────────────► evaluated
//!                                          ├─ no: its operator's line ─ its turn ─┘
//!                                          └─ its line is full: 429
//! ```

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// The most requests that wait in the line of one operator.
const LINE: usize = 64;

/// The turns of all operators. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Places that are free; while any is, nobody waits.
    free: usize,
    /// The waiting requests of each operator that has any.
    lines: BTreeMap<Arc<str>, VecDeque<oneshot::Sender<Turn>>>,
    /// The operators with waiting requests, the next one first.
    order: VecDeque<Arc<str>>,
}

/// A place; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Option<Turns>);

/// Too many requests of the operator wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Busy;

impl Turns {
    /// `places` requests are evaluated at a time.
    pub(super) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: places.max(1),
            lines: BTreeMap::new(),
            order: VecDeque::new(),
        })))
    }

    /// Waits for the turn of a request of that operator.
    pub(super) async fn turn(&self, operator: &str) -> Result<Turn, Busy> {
        let waiting = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Turn(Some(self.clone())));
            }
            state.join(operator)?
        };
        // The sender is dropped only with all turns.
        waiting.await.map_err(|_| Busy)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a place on to the next operator in order.
    fn release(&self) {
        let mut state = self.state();
        while let Some(next) = state.next() {
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // The request was given up while it waited: the place is not free yet.
                Err(mut turn) => drop(turn.0.take()),
            }
        }
        state.free += 1;
    }
}

impl State {
    fn join(&mut self, operator: &str) -> Result<oneshot::Receiver<Turn>, Busy> {
        let key: Arc<str> = operator.into();
        let line = self.lines.entry(key.clone()).or_default();
        line.retain(|waiting| !waiting.is_closed());
        if line.len() >= LINE {
            return Err(Busy);
        }
        let (sender, receiver) = oneshot::channel();
        line.push_back(sender);
        if !self.order.contains(&key) {
            self.order.push_back(key);
        }
        Ok(receiver)
    }

    /// Takes the first request of the next operator.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        loop {
            let operator = self.order.pop_front()?;
            let Some(line) = self.lines.get_mut(&operator) else {
                continue;
            };
            let next = line.pop_front();
            if line.is_empty() {
                self.lines.remove(&operator);
            } else {
                self.order.push_back(operator);
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test]
    async fn a_flood_of_one_operator_waits_in_its_own_line_and_others_come_next() {
        let turns = Turns::new(1);
        let first = turns.turn("flood").await.unwrap();
        let mut flood: Vec<_> = (0..LINE).map(|_| Box::pin(turns.turn("flood"))).collect();
        for waiting in &mut flood {
            assert!(waiting.now_or_never().is_none());
        }
        assert_eq!(turns.turn("flood").await.unwrap_err(), Busy);
        let mut other = Box::pin(turns.turn("other"));
        assert!(other.as_mut().now_or_never().is_none());
        // One of the flood was first in line; the other operator is next.
        drop(first);
        let second = flood[0].as_mut().now_or_never().unwrap().unwrap();
        assert!(other.as_mut().now_or_never().is_none());
        drop(second);
        drop(other.as_mut().now_or_never().unwrap().unwrap());
    }

    #[tokio::test]
    async fn requests_that_are_given_up_leave_no_place_taken() {
        let turns = Turns::new(2);
        let held = [
            turns.turn("a").await.unwrap(),
            turns.turn("b").await.unwrap(),
        ];
        let mut given_up = Box::pin(turns.turn("a"));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        // This one has its turn and is dropped before it looks.
        let mut unseen = Box::pin(turns.turn("a"));
        assert!(unseen.as_mut().now_or_never().is_none());
        drop(held);
        drop(unseen);
        let all = join_all((0..2).map(|_| turns.turn("c"))).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(turns.state().free, 0);
        drop(all);
        assert_eq!(turns.state().free, 2);
    }
}
