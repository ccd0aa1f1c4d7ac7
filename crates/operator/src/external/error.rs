//! Errors of calls.

use std::{io, time::Duration};

use orkestra_engine::reconcile::calls::CallFailure;

use orkestra_egress::{BadUrl, RedirectError, Refusal};

use crate::metrics::CallResult;

/// Why a call failed. Messages contain at most scheme, host and port: no path, header or body.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The URL is not valid.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The call is not permitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A redirect leads to a target that is not permitted.
    #[error("{from} redirects: {why}")]
    Redirect {
        /// Scheme, host and port of the redirecting server.
        from: String,
        /// The problem of the redirect.
        why: RedirectError,
    },
    /// The token uses a variable that is not permitted.
    #[error(
        "the token names the variable {0}, which is not permitted: start with --external-env {0}"
    )]
    Variable(String),
    /// The token uses a variable that has no value.
    #[error("the token names the variable {0}, which is not set in the environment of the process")]
    Unset(String),
    /// A header cannot be sent.
    #[error(
        "the header {0} cannot be sent: it has a line break or another character that headers cannot contain"
    )]
    Header(String),
    /// The token cannot be sent.
    #[error(
        "the token cannot be sent: it has a line break or another character that headers cannot contain"
    )]
    Token,
    /// The host name has no address.
    #[error("{0}: the host name has no address")]
    Unresolved(String),
    /// The connection failed.
    #[error("{to} cannot be reached: {}", source.kind())]
    Connect {
        /// Scheme, host and port.
        to: String,
        /// The cause.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("{to} cannot be trusted: {source}")]
    Tls {
        /// Scheme, host and port.
        to: String,
        /// The cause.
        source: io::Error,
    },
    /// The server did not answer in time.
    #[error("{to} did not answer within {} s", within.as_secs_f32())]
    Timeout {
        /// Scheme, host and port.
        to: String,
        /// The deadline.
        within: Duration,
    },
    /// The response is not HTTP, or ended too early.
    #[error("{0} did not send a valid HTTP response")]
    Broken(String),
    /// The response is too large.
    #[error("{0} answers with more than 256 KiB")]
    TooLarge(String),
    /// Too many calls wait for the same host, or in total.
    #[error("{0} was not called: too many calls are in flight")]
    Busy(String),
    /// The response has another status than expected.
    #[error("{to} answers with status {status}{}", wanted(*expected))]
    Status {
        /// Scheme, host and port.
        to: String,
        /// The status.
        status: u16,
        /// The expected status; `None` for all but 4xx and 5xx.
        expected: Option<u16>,
    },
}

impl From<orkestra_egress::Error> for CallError {
    fn from(error: orkestra_egress::Error) -> Self {
        match error {
            orkestra_egress::Error::Refused(why) => Self::Refused(why),
            orkestra_egress::Error::Redirect { from, why } => Self::Redirect { from, why },
            orkestra_egress::Error::TimedOut { to, within } => Self::Timeout { to, within },
            orkestra_egress::Error::Unresolved(host) => Self::Unresolved(host),
            orkestra_egress::Error::Connect { to, source } => Self::Connect { to, source },
            orkestra_egress::Error::Tls { to, source } => Self::Tls { to, source },
            orkestra_egress::Error::Request(_) => Self::Token,
            orkestra_egress::Error::Broken(host) => Self::Broken(host),
            orkestra_egress::Error::TooLarge { to, .. } => Self::TooLarge(to),
        }
    }
}

impl CallError {
    /// The result for metrics.
    pub(crate) fn result(&self) -> CallResult {
        match self {
            Self::Url(_)
            | Self::Refused(_)
            | Self::Redirect { .. }
            | Self::Variable(_)
            | Self::Unset(_)
            | Self::Header(_)
            | Self::Token => CallResult::Refused,
            Self::Unresolved(_) | Self::Connect { .. } | Self::Tls { .. } => {
                CallResult::Unreachable
            }
            Self::Timeout { .. } => CallResult::Timeout,
            Self::Broken(_) | Self::TooLarge(_) => CallResult::Broken,
            Self::Busy(_) => CallResult::Busy,
            Self::Status { .. } => CallResult::Status,
        }
    }

    /// True if only a change of the input or of the flags can fix it.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::Refused(_)
            | Self::Variable(_)
            | Self::Unset(_)
            | Self::Header(_)
            | Self::Token => true,
            Self::Redirect { .. }
            | Self::Unresolved(_)
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Timeout { .. }
            | Self::Broken(_)
            | Self::TooLarge(_)
            | Self::Busy(_)
            | Self::Status { .. } => false,
        }
    }

    /// The same, in the form for passes.
    pub(crate) fn failure(&self) -> CallFailure {
        CallFailure {
            message: self.to_string().into(),
            permanent: self.is_permanent(),
            retry_after: None,
        }
    }
}

fn wanted(expected: Option<u16>) -> String {
    expected.map_or_else(String::new, |status| format!(", not {status}"))
}
