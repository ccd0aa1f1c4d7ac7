//! The readers of an informer, and the state of the watch as each of them sees it.

use std::{sync::Arc, time::Duration};

use orkestra_object::value::Path;
use tokio::{sync::watch, time::Instant};

use super::{Reading, Record, Subscriber, WatchProblem, WatchState};

/// A kind that has been unavailable for this long, while the API server is reachable, is reported as not served.
const LASTING: Duration = Duration::from_mins(1);

/// The readers of an informer, and their state.
pub(crate) struct Readers<R> {
    pub(crate) reading: Arc<Reading>,
    /// Grows with the set of fields that are kept; a list made for one generation serves every reader up to it.
    pub(crate) generation: u64,
    pub(crate) synced: Option<u64>,
    problem: Option<WatchProblem>,
    /// When this kind began to be unavailable while the API server itself was reachable, and the number of outages until then.
    unavailable_since: Option<(Instant, u64)>,
    last_subscription: u64,
    pub(crate) subscriptions: Vec<Subscription<R>>,
    /// The state as published to the subscriptions, shared by all that have the same needs.
    states: Vec<SharedState>,
}

/// The state of the watch, for the subscriptions that need a generation.
struct SharedState {
    needs: u64,
    state: watch::Sender<WatchState>,
}

/// The place of one handle.
pub(crate) struct Subscription<R> {
    pub(crate) number: u64,
    /// The generation of the spec that covers the fields it reads.
    needs: u64,
    subscriber: Option<Subscriber<R>>,
}

impl<R: Record> Readers<R> {
    /// Adds a subscription for a reader of `paths`: whether it needs more than is kept so far, its number, and the state of the watch
    /// for it.
    pub(crate) fn subscribe(
        &mut self,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> (bool, (u64, watch::Receiver<WatchState>)) {
        let is_wider = !self.reading.spec.covers(paths);
        if is_wider {
            let mut spec = self.reading.spec.clone();
            spec.widen(paths);
            self.reading = Reading::new::<R>(spec);
            self.generation += 1;
        }
        self.last_subscription += 1;
        let (number, needs) = (self.last_subscription, self.generation);
        let state = self.notify(needs);
        self.subscriptions.push(Subscription {
            number,
            needs,
            subscriber,
        });
        (is_wider, (number, state))
    }
}

impl<R> Readers<R> {
    /// Without subscriptions.
    pub(crate) fn new(reading: Arc<Reading>) -> Self {
        Self {
            reading,
            generation: 0,
            synced: None,
            problem: None,
            unavailable_since: None,
            last_subscription: 0,
            subscriptions: Vec::new(),
            states: Vec::new(),
        }
    }

    pub(crate) fn recovered(&mut self) {
        (self.problem, self.unavailable_since) = (None, None);
    }

    pub(crate) fn fail(&mut self, mut problem: WatchProblem, outages: Option<u64>) {
        if let WatchProblem::Unavailable { is_lasting, .. } = &mut problem {
            *is_lasting = self.was_lasting() || outages.is_some_and(|now| self.lasts(now));
        } else {
            self.unavailable_since = None;
        }
        self.problem = Some(problem);
    }

    /// True if the last problem was lasting: it is until the kind is read again.
    fn was_lasting(&self) -> bool {
        let lasting = |problem: &WatchProblem| match problem {
            WatchProblem::Unavailable { is_lasting, .. } => *is_lasting,
            WatchProblem::NotServed | WatchProblem::Forbidden { .. } => false,
        };
        self.problem.as_ref().is_some_and(lasting)
    }

    /// True if the kind has been unavailable for a minute without an outage of the API server, which the circuit breaker reports.
    fn lasts(&mut self, outages: u64) -> bool {
        let now = Instant::now();
        let begun = self.unavailable_since.filter(|(_, then)| *then == outages);
        let (since, _) = *self
            .unavailable_since
            .insert(begun.unwrap_or((now, outages)));
        now.duration_since(since) >= LASTING
    }

    pub(crate) fn subscribers(&self, except: Option<u64>) -> Vec<Subscriber<R>> {
        let subscriptions = self
            .subscriptions
            .iter()
            .filter(|subscription| Some(subscription.number) != except);
        subscriptions
            .filter_map(|subscription| subscription.subscriber.clone())
            .collect()
    }

    pub(crate) fn publish(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        for states in &self.states {
            let state = self.state_for(states.needs);
            states.state.send_if_modified(|last| {
                let differs = *last != state;
                *last = state;
                differs
            });
        }
    }

    /// Subscribes to the state of the watch for readers that need that generation.
    fn notify(&mut self, needs: u64) -> watch::Receiver<WatchState> {
        if let Some(states) = self.states.iter().find(|states| states.needs == needs) {
            return states.state.subscribe();
        }
        let (sender, state) = watch::channel(self.state_for(needs));
        self.states.push(SharedState {
            needs,
            state: sender,
        });
        state
    }

    pub(crate) fn leave(&mut self, number: u64) {
        let subscriptions = &mut self.subscriptions;
        subscriptions.retain(|subscription| subscription.number != number);
        self.states.retain(|states| {
            subscriptions
                .iter()
                .any(|subscription| subscription.needs == states.needs)
        });
    }

    fn state_for(&self, needs: u64) -> WatchState {
        let was_synced = self.synced.is_some_and(|synced| synced >= needs);
        match &self.problem {
            Some(problem) => WatchState::Failing {
                problem: problem.clone(),
                was_synced,
            },
            None if was_synced => WatchState::Synced,
            None => WatchState::Starting,
        }
    }
}
