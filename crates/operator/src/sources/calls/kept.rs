//! Answers that are used again.

use std::{collections::HashMap, time::Duration};

use orkestra_engine::reconcile::{calls::CallRequest, sources::Answer};
use tokio::time::Instant;

/// The maximum size, in bytes, of the bodies that one operator keeps for `cacheFor`.
const MOST_KEPT: usize = 16 * 1024 * 1024;

/// Successful answers that are reused.
#[derive(Default)]
pub(crate) struct CachedAnswers {
    answers: HashMap<CallRequest, (Instant, usize, Answer)>,
    bytes: usize,
}

impl CachedAnswers {
    pub(crate) fn get(&self, request: &CallRequest) -> Option<Answer> {
        let (until, _, answer) = self.answers.get(request)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    pub(crate) fn put(
        &mut self,
        request: &CallRequest,
        time: Duration,
        bytes: usize,
        answer: &Answer,
    ) {
        let now = Instant::now();
        let Some(until) = now.checked_add(time) else {
            return;
        };
        let bytes = request.body.len() + 3 * bytes;
        self.answers.retain(|_, (until, ..)| now < *until);
        self.answers
            .insert(request.clone(), (until, bytes, answer.clone()));
        self.count();
        // Evict the answers that expire first.
        while self.bytes > MOST_KEPT {
            let first = self.answers.iter().min_by_key(|(_, (until, ..))| *until);
            let Some(first) = first.map(|(request, _)| request.clone()) else {
                return;
            };
            self.answers.remove(&first);
            self.count();
        }
    }

    fn count(&mut self) {
        // An answer is kept as text and in parsed form, beside its request.
        self.bytes = self.answers.values().map(|(_, bytes, _)| bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use orkestra_engine::reconcile::{calls, external::answered};
    use orkestra_plan::Retry;

    use super::*;

    fn request(url: &str) -> CallRequest {
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
            cache_for: None,
            most: calls::MOST_ANSWER,
            is_paced: false,
        }
    }

    fn reported(text: &str) -> Answer {
        answered(&calls::CallAnswer {
            status: Some(200),
            body: text.into(),
            error: None,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_answer_is_kept_as_long_as_the_call_says() {
        let mut kept = CachedAnswers::default();
        let minute = request("https://a.example");
        kept.put(&minute, Duration::from_mins(1), 4, &reported("good"));
        assert_eq!(kept.get(&minute), Some(reported("good")));
        assert_eq!(kept.get(&request("https://b.example")), None);
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(kept.get(&minute), None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let mut kept = CachedAnswers::default();
        let of = |n: usize| request(&format!("https://{n}.example"));
        for n in 0..100 {
            kept.put(&of(n), Duration::from_hours(1), 256 * 1024, &reported("x"));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(kept.bytes <= MOST_KEPT);
        assert!(kept.get(&of(0)).is_none() && kept.get(&of(99)).is_some());
    }
}
