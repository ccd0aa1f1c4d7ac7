//! Why a call failed.

use std::{io, time::Duration};

use orkestra_core::reconcile::calls::Trouble;

use super::{BadUrl, Refusal};
use crate::metrics::CallResult;

/// Why a call failed. Messages hold scheme, host and port at most: no path, no header, no body.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The URL is none.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// It may not be called.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A redirect leads to where nothing may be called.
    #[error("{from} redirects: {why}")]
    Redirect {
        /// Scheme, host and port that was called.
        from: String,
        /// What is wrong with where it leads.
        why: RedirectError,
    },
    /// The token names a variable that is not permitted.
    #[error(
        "the token names the variable {0}, which may not be read: start with --external-env {0}"
    )]
    Variable(String),
    /// The token names a variable that has no value.
    #[error("the token names the variable {0}, which is not set where the runtime was started")]
    Unset(String),
    /// A header cannot be sent.
    #[error(
        "the header {0} cannot be sent: it has a line break or another letter that headers cannot hold"
    )]
    Header(String),
    /// The token cannot be sent.
    #[error(
        "the token cannot be sent: it has a line break or another letter that headers cannot hold"
    )]
    Token,
    /// The host has no address.
    #[error("{0}: its name has no address")]
    Unresolved(String),
    /// No connection came about.
    #[error("{to} cannot be reached: {}", source.kind())]
    Connect {
        /// Scheme, host and port.
        to: String,
        /// Why.
        source: io::Error,
    },
    /// No TLS connection came about.
    #[error("{to} cannot be trusted: {source}")]
    Tls {
        /// Scheme, host and port.
        to: String,
        /// Why.
        source: io::Error,
    },
    /// It did not answer in time.
    #[error("{to} did not answer within {} s", within.as_secs_f32())]
    Timeout {
        /// Scheme, host and port.
        to: String,
        /// How long it had.
        within: Duration,
    },
    /// What it answered is not HTTP, or ended too early.
    #[error("{0} does not answer as HTTP does")]
    Broken(String),
    /// It answered too much.
    #[error("{0} answers with more than 256 KiB")]
    TooLarge(String),
    /// Too many calls wait for the same host, or in all.
    #[error("{0} was not called: too many calls are under way")]
    Busy(String),
    /// It answered with another status than it should.
    #[error("{to} answers with status {status}{}", wanted(*expected))]
    Status {
        /// Scheme, host and port.
        to: String,
        /// The status.
        status: u16,
        /// The one that it should answer with; none for all but 4xx and 5xx.
        expected: Option<u16>,
    },
}

/// What is wrong with a redirect.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    /// Where it leads may not be called.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Where it leads is no URL.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// There are too many.
    #[error("more than five times")]
    TooMany,
    /// It would send what was meant for one host to another.
    #[error("to another host, and what is sent is meant for this one alone")]
    Elsewhere,
    /// It does not say where to.
    #[error("without saying where to")]
    Nowhere,
}

impl CallError {
    /// What is counted.
    pub(super) fn result(&self) -> CallResult {
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

    /// Whether only a change of the input or of the flags mends it.
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

    /// The same, as a pass is told.
    pub(super) fn trouble(&self) -> Trouble {
        Trouble {
            message: self.to_string().into(),
            permanent: self.is_permanent(),
        }
    }
}

fn wanted(expected: Option<u16>) -> String {
    expected.map_or_else(String::new, |status| format!(", not {status}"))
}
