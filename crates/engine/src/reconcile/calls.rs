//! External calls: the request, and its response.
//!
//! ```text
//!  CallPlan ── rendered ──► CallRequest ── Read::Call ──► the runtime ── answered ──► sources::Answer
//!     ▲                                                                                   │
//!     └── read by the next call ◄── .external.<name>: status body error called json ◄─────┘
//! ```

use std::{fmt, time::Duration};

use orkestra_plan::{Piece, Retry};

/// A call that a pass requests, with everything rendered. Two equal requests are one call.
///
/// Its `Debug` output omits what may be secret: the URL's path, headers, token and body.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallRequest {
    /// The index of the call in [`OperatorPlan::calls`](orkestra_plan::OperatorPlan::calls).
    pub place: usize,
    /// The call's key under `.external`.
    pub name: Box<str>,
    /// The HTTP method, in capitals.
    pub method: &'static str,
    /// The URL; not yet checked.
    pub url: Box<str>,
    /// Names and values of headers, sorted.
    pub headers: Box<[(Box<str>, Box<str>)]>,
    /// The bearer token, in pieces: texts, and variables that only the runtime resolves.
    pub token: Box<[Piece]>,
    /// The request body; none is sent if it is empty.
    pub body: Box<str>,
    /// The only status that counts as success; none accepts all except 4xx and 5xx.
    pub expected_status: Option<u16>,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The retry rule.
    pub retry: Retry,
    /// How long a successful answer is reused.
    pub cache_for: Option<Duration>,
    /// The most bytes of an answer.
    pub most: usize,
    /// Whether calls for one custom resource are slowed if they follow one another without end.
    pub is_paced: bool,
}

/// The most bytes of an answer to an external call.
pub const MOST_ANSWER: usize = 256 * 1024;

impl CallRequest {
    /// True if an answer with that status counts as success.
    pub fn takes(&self, status: u16) -> bool {
        match self.expected_status {
            Some(expected) => status == expected,
            None => status < 400,
        }
    }
}

/// Shows only name and method.
impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("name", &self.name)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// The result of a call.
///
/// Its `Debug` output omits the body.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CallAnswer {
    /// The status; none if there was no answer.
    pub status: Option<u16>,
    /// The body as text.
    pub body: Box<str>,
    /// Why the call counts as failed; none if it succeeded.
    pub error: Option<CallFailure>,
}

impl fmt::Debug for CallAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallAnswer")
            .field("status", &self.status)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The problem and the fix, without any data that was sent or received.
    pub message: Box<str>,
    /// Whether only a change of the input or of the runtime's flags fixes it: a retry is pointless.
    pub permanent: bool,
    /// How long the server asks not to be called again. Source: RFC 9110, section 10.2.3.
    pub retry_after: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_longer_than_the_one_before_up_to_the_longest() {
        let retry = Retry {
            attempts: 5,
            initial: Duration::from_millis(500),
            most: Duration::from_secs(3),
            thousandths: 2000,
        };
        let waits: Vec<u128> = (1..5).map(|n| retry.wait(n).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 3000]);
        assert_eq!(retry.wait(u32::MAX), Duration::from_secs(3));
    }

    #[test]
    fn neither_requests_nor_answers_show_what_may_be_secret() {
        let request = CallRequest {
            place: 0,
            name: "shop".into(),
            method: "POST",
            url: "https://shop.example/planted".into(),
            headers: Box::new([("x".into(), "planted".into())]),
            token: Box::new([Piece::Text("planted".into())]),
            body: "planted".into(),
            expected_status: None,
            timeout: Duration::from_secs(5),
            retry: Retry::NONE,
            cache_for: None,
            most: MOST_ANSWER,
            is_paced: false,
        };
        let answer = CallAnswer {
            status: Some(200),
            body: "planted".into(),
            error: None,
        };
        let shown = format!("{request:?} {answer:?}");
        assert!(!shown.contains("planted"), "{shown}");
    }
}
