//! External calls, which never block a worker.
//!
//! ```text
//!  pass ── Read::Call ──► in progress: its own task ──► done: kept, and the custom resource queued ──► the next pass takes it
//! ```
//!
//! Answers are kept until the pass that asked is decided, however many calls it needs: it makes each call once, and uses one
//! moment throughout. The next pass calls again, unless the call declares how long an answer is valid.

mod kept;
mod pace;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    calls::{self, CallFailure, CallRequest},
    external::answered,
    sources::Answer,
};
use orkestra_ground::tasks::{self, Ends, Task};
use orkestra_plan::ObjectKey;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use self::{kept::CachedAnswers, pace::CallPace};
use crate::{
    external::Client,
    queue::{Lane, WorkQueue},
};

/// The calls of one operator.
pub(crate) struct OperatorCalls {
    client: Client,
    queue: WorkQueue<ObjectKey>,
    state: Arc<Mutex<CallsState>>,
}

#[derive(Default)]
struct CallsState {
    /// Undecided passes, by custom resource.
    passes: HashMap<ObjectKey, WaitingPass>,
    kept: CachedAnswers,
    pace: CallPace,
}

/// A pass that waits for calls.
struct WaitingPass {
    /// The present time for templates until it is decided.
    now: Timestamp,
    /// By the call's position in the plan: Motifs may have calls of the same name.
    calls: BTreeMap<usize, (CallRequest, Progress)>,
}

enum Progress {
    /// Aborted when dropped.
    UnderWay(#[expect(dead_code, reason = "held, not read")] AbortOnDropHandle<()>),
    Done(Answer),
}

impl OperatorCalls {
    pub(crate) fn new(client: Client, queue: WorkQueue<ObjectKey>) -> Self {
        Self {
            client,
            queue,
            state: Arc::default(),
        }
    }

    /// Starts or continues a pass over `key`; returns the moment that it uses as the present.
    pub(crate) fn begin(&self, key: &ObjectKey, now: Timestamp) -> Timestamp {
        self.state
            .lock()
            .passes
            .get(key)
            .map_or(now, |pass| pass.now)
    }

    /// Ends the pass over `key`, decided or abandoned: its answers are dropped, and calls in progress are aborted.
    pub(crate) fn end(&self, key: &ObjectKey) {
        self.state.lock().passes.remove(key);
    }

    /// Ends all passes.
    pub(crate) fn clear(&self) {
        self.state.lock().passes.clear();
    }

    /// Returns the answer to a call of the pass over `key` that began at `now`; none while it is in progress.
    pub(crate) fn answer(
        &self,
        key: &ObjectKey,
        request: &CallRequest,
        now: Timestamp,
    ) -> Option<Answer> {
        let state = &mut *self.state.lock();
        let pass = state.passes.get(key);
        // A different request was made at this position before the custom resource changed.
        match pass.and_then(|pass| pass.calls.get(&request.place)) {
            Some((known, Progress::Done(answer))) if known == request => {
                return Some(answer.clone());
            }
            Some((known, Progress::UnderWay(_))) if known == request => return None,
            _ => {}
        }
        if let Some(answer) = state.kept.get(request) {
            return Some(answer);
        }
        // It cannot report before the lock is released, and then it is found.
        let named = tasks::named(Task::ExternalCall, key);
        let delay = state.pace.delay(key, request);
        let call = self.call(key.clone(), request.clone(), delay);
        // A failed task is answered too, or the custom resource would wait for it forever.
        let ended = self.ended(key.clone(), request.clone());
        let call = named.start_or(Ends::freely(), call, move |_| ended());
        let task = AbortOnDropHandle::new(call);
        let waiting = WaitingPass {
            now,
            calls: BTreeMap::new(),
        };
        let pass = state.passes.entry(key.clone()).or_insert(waiting);
        let progress = Progress::UnderWay(task);
        pass.calls
            .insert(request.place, (request.clone(), progress));
        None
    }

    /// Makes the call after a delay, then queues the custom resource.
    fn call(
        &self,
        key: ObjectKey,
        request: CallRequest,
        delay: Duration,
    ) -> impl Future<Output = ()> + use<> {
        let client = self.client.in_namespace(key.namespace.as_deref());
        let answered = self.answered();
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let answer = client.call(&request).await;
            answered(key, &request, &answer);
        }
    }

    /// Returns the function that answers a call whose task failed.
    fn ended(&self, key: ObjectKey, request: CallRequest) -> impl FnOnce() + Send + use<> {
        let answered = self.answered();
        move || answered(key, &request, &panicked())
    }

    /// Returns the function that records an answer, and queues the custom resource if its pass waits for it.
    fn answered(&self) -> impl FnOnce(ObjectKey, &CallRequest, &calls::CallAnswer) + Send + use<> {
        let queue = self.queue.clone();
        // The task must not keep its own state alive.
        let state = Arc::downgrade(&self.state);
        move |key, request, answer| {
            let Some(state) = state.upgrade() else { return };
            if state.lock().done(&key, request, answer) {
                queue.add(key, Lane::Changed);
            }
        }
    }
}

impl CallsState {
    /// Records an answer; true if a pass waits for it.
    fn done(&mut self, key: &ObjectKey, request: &CallRequest, answer: &calls::CallAnswer) -> bool {
        let reported = answered(answer);
        // A failure is kept as long as the server asks not to be called again.
        let kept_for = match &answer.error {
            None => request.cache_for,
            Some(error) => error.retry_after,
        };
        if let Some(time) = kept_for {
            self.kept.put(request, time, answer.body.len(), &reported);
        }
        let pass = self.passes.get_mut(key);
        let waiting = pass.and_then(|pass| pass.calls.get_mut(&request.place));
        match waiting.filter(|(known, _)| known == request) {
            Some((_, progress)) => {
                *progress = Progress::Done(reported);
                true
            }
            None => false,
        }
    }
}

/// The answer for a bug in Orkestra: the pass reports it, and the next one retries.
fn panicked() -> calls::CallAnswer {
    calls::CallAnswer {
        error: Some(CallFailure {
            message: "the call ended in a panic".into(),
            permanent: false,
            retry_after: None,
        }),
        ..calls::CallAnswer::default()
    }
}

#[cfg(test)]
mod tests {
    use orkestra_plan::Retry;

    use orkestra_ground::Entropy;

    use super::*;

    fn request(url: &str, cache_for: Option<Duration>) -> CallRequest {
        CallRequest {
            place: 0,
            name: "flags".into(),
            method: "GET",
            url: url.into(),
            headers: Box::default(),
            token: Box::default(),
            body: Box::default(),
            expected_status: None,
            timeout: Duration::from_secs(5),
            retry: Retry::NONE,
            cache_for,
            most: calls::MOST_ANSWER,
            is_paced: false,
        }
    }

    /// Returns the calls of an operator. None is permitted, so each ends immediately with an error.
    fn calls() -> (OperatorCalls, ObjectKey) {
        let key = ObjectKey {
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        (
            OperatorCalls::new(Client::closed(), WorkQueue::new(Entropy::system())),
            key,
        )
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    async fn answered_to(calls: &OperatorCalls, key: &ObjectKey, request: &CallRequest) -> Answer {
        loop {
            if let Some(answer) = calls.answer(key, request, at(1)) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_pass_makes_a_call_once_and_keeps_answer_and_moment_until_it_is_decided() {
        let (calls, key) = calls();
        let request = request("https://a.example", None);
        assert_eq!(calls.begin(&key, at(1)), at(1));
        assert_eq!(calls.answer(&key, &request, at(1)), None);
        assert_eq!(calls.begin(&key, at(2)), at(1), "the pass is the same");
        let taken = calls.queue.take().await;
        assert_eq!(
            taken.map(|taken| taken.key.clone()),
            Some(key.clone()),
            "not queued"
        );
        let first = calls.answer(&key, &request, at(1));
        assert!(first.is_some());
        assert_eq!(calls.answer(&key, &request, at(1)), first);
        calls.end(&key);
        assert_eq!(calls.begin(&key, at(2)), at(2));
        assert_eq!(
            calls.answer(&key, &request, at(2)),
            None,
            "the next pass calls again"
        );
    }

    #[tokio::test]
    async fn what_a_changed_resource_asks_takes_the_place_of_what_it_asked_before() {
        let (calls, key) = calls();
        let (before, after) = (
            request("https://a.example", None),
            request("https://b.example", None),
        );
        answered_to(&calls, &key, &before).await;
        assert_eq!(calls.answer(&key, &after, at(1)), None);
        let answer = answered_to(&calls, &key, &after).await;
        let Answer::Ready(reported) = answer else {
            panic!("{answer:?}")
        };
        assert!(
            reported.to_json().to_string().contains("b.example"),
            "{reported:?}"
        );
        assert_eq!(calls.state.lock().passes[&key].calls.len(), 1);
    }

    #[tokio::test]
    async fn calls_of_one_name_in_two_motifs_are_two_calls() {
        let (calls, key) = calls();
        let first = request("https://a.example", None);
        let second = CallRequest {
            place: 1,
            url: "https://b.example".into(),
            ..first.clone()
        };
        answered_to(&calls, &key, &first).await;
        answered_to(&calls, &key, &second).await;
        assert!(calls.answer(&key, &first, at(1)).is_some(), "it is lost");
        assert!(calls.answer(&key, &second, at(1)).is_some());
    }

    #[tokio::test]
    async fn calls_under_way_end_with_who_asked() {
        let (calls, key) = calls();
        assert_eq!(
            calls.answer(&key, &request("https://a.example", None), at(1)),
            None
        );
        calls.end(&key);
        tokio::task::yield_now().await;
        assert_eq!(calls.queue.depth(), 0, "queued again");
        assert!(calls.state.lock().passes.is_empty());
    }
}
