//! External calls: the request, and its response.
//!
//! ```text
//!  CallPlan ── rendered ──► CallRequest ── Read::Call ──► the runtime ── answered ──► sources::Answer
//!     ▲                                                                                   │
//!     └── read by the next call ◄── .external.<name>: status body error called json ◄─────┘
//! ```

use std::{fmt, sync::Arc, time::Duration};

use orkestra_plan::{Piece, Retry};
use orkestra_wasm::{Limits, Module, RunError};

/// A call that a pass requests, with everything rendered. Two equal requests are one call.
///
/// Its `Debug` output omits what may be secret: the URL's path, headers, token and body.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallRequest {
    /// The index of the call in [`OperatorPlan::calls`](orkestra_plan::OperatorPlan::calls).
    pub place: usize,
    /// The call's key under `.external`, or the hook's under `.hook`.
    pub name: Box<str>,
    /// What is called.
    pub target: CallTarget,
    /// The request body; none is sent if it is empty.
    pub body: Box<str>,
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

/// What a call is made to.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallTarget {
    /// A server.
    Http(HttpTarget),
    /// A WebAssembly module; `None` if it is known in a cluster only.
    Module(Option<Arc<Module>>),
}

/// A request to a server, without its body.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HttpTarget {
    /// The HTTP method, in capitals.
    pub method: &'static str,
    /// The URL; not yet checked.
    pub url: Box<str>,
    /// Names and values of headers, sorted.
    pub headers: Box<[(Box<str>, Box<str>)]>,
    /// The bearer token, in pieces: texts, and variables that only the runtime resolves.
    pub token: Box<[Piece]>,
    /// The only status that counts as success; none accepts all except 4xx and 5xx.
    pub expected_status: Option<u16>,
}

/// The most bytes of an answer to an external call.
pub const MOST_ANSWER: usize = 256 * 1024;

impl CallRequest {
    /// Returns the only status that counts as success; none accepts all except 4xx and 5xx.
    pub fn expected_status(&self) -> Option<u16> {
        match &self.target {
            CallTarget::Http(http) => http.expected_status,
            CallTarget::Module(_) => None,
        }
    }

    /// True if an answer with that status counts as success.
    pub fn takes(&self, status: u16) -> bool {
        match self.expected_status() {
            Some(expected) => status == expected,
            None => status < 400,
        }
    }
}

/// Shows only the name, and the method or the digest.
impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CallRequest");
        shown.field("name", &self.name);
        match &self.target {
            CallTarget::Http(http) => shown.field("method", &http.method),
            CallTarget::Module(module) => shown.field("module", module),
        };
        shown.finish_non_exhaustive()
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

/// How long the failure of a module is kept: the same request fails again.
const FAILURE_KEPT: Duration = Duration::from_mins(10);
/// Why a module that only a cluster has cannot be called.
const NO_MODULE: &str = "its module is read in a cluster only: name its `file` beside `configMap`";

impl CallAnswer {
    /// Returns the answer of a call that failed.
    pub fn failed(message: impl Into<Box<str>>, permanent: bool) -> Self {
        Self {
            error: Some(CallFailure {
                message: message.into(),
                permanent,
                retry_after: None,
            }),
            ..Self::default()
        }
    }

    /// Returns the answer for a module that is not there.
    pub fn without_module() -> Self {
        Self::failed(NO_MODULE, true)
    }

    /// Returns the answer that a run of a module ended with.
    pub fn of_run(ended: Result<String, RunError>) -> Self {
        match ended {
            Ok(text) => Self {
                status: Some(200),
                body: text.into(),
                error: None,
            },
            Err(why) => {
                let mut failed = Self::failed(why.to_string(), true);
                if let Some(error) = &mut failed.error {
                    error.retry_after = Some(FAILURE_KEPT);
                }
                failed
            }
        }
    }
}

impl CallRequest {
    /// Returns the limits of a module that it calls.
    pub fn limits(&self) -> Limits {
        Limits {
            answer: self.most,
            ..Limits::default()
        }
    }

    /// Runs the module that it calls, on this thread and to the end; `None` if it calls a server, or a module that only a cluster has.
    /// A module is a function of its request, so this needs no operator.
    pub fn run_module(&self) -> Option<CallAnswer> {
        let CallTarget::Module(Some(module)) = &self.target else {
            return None;
        };
        let ended = module.run(Arc::from(&*self.body), self.limits());
        Some(CallAnswer::of_run(ended))
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
            target: CallTarget::Http(HttpTarget {
                method: "POST",
                url: "https://shop.example/planted".into(),
                headers: Box::new([("x".into(), "planted".into())]),
                token: Box::new([Piece::Text("planted".into())]),
                expected_status: None,
            }),
            body: "planted".into(),
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
