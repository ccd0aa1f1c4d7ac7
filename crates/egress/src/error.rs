//! Errors of connections and exchanges.

use std::{io, time::Duration};

use super::{RedirectError, Refusal};

/// Why a connection or an exchange failed. Messages contain at most scheme, host and port.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target is not permitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A redirect leads to a target that is not permitted, or to too many.
    #[error("{from} redirects: {why}")]
    Redirect {
        /// Scheme, host and port of the redirecting server.
        from: String,
        /// The problem of the redirect.
        why: RedirectError,
    },
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
    #[error("{to} did not answer completely within {} s", within.as_secs())]
    TimedOut {
        /// Scheme, host and port.
        to: String,
        /// The limit.
        within: Duration,
    },
    /// The request cannot be sent.
    #[error("the request to {0} is not valid")]
    Request(String),
    /// The response is not HTTP, or ended too early.
    #[error("{0} did not send a valid HTTP response")]
    Broken(String),
    /// The response is too large.
    #[error("{to} answers with more than {}", size(*most))]
    TooLarge {
        /// Scheme, host and port.
        to: String,
        /// The limit, in bytes.
        most: usize,
    },
}

impl Error {
    /// True if the server does not speak TLS: the handshake failed for another reason than its certificate.
    pub fn is_not_tls(&self) -> bool {
        let Self::Tls { source, .. } = self else {
            return false;
        };
        let inner = source.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(inner) => matches!(inner, rustls::Error::InvalidMessage(_)),
            None => source.kind() == io::ErrorKind::UnexpectedEof,
        }
    }

    /// A copy of the error of a connection; `None` for another one.
    pub(crate) fn of_connection(&self) -> Option<Self> {
        match self {
            Self::Refused(why) => Some(Self::Refused(why.clone())),
            Self::Unresolved(host) => Some(Self::Unresolved(host.clone())),
            Self::Connect { to, source } => Some(Self::Connect {
                to: to.clone(),
                source: source.kind().into(),
            }),
            Self::Tls { to, source } => {
                let inner = source.get_ref();
                let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
                let source = match inner {
                    Some(inner) => io::Error::new(source.kind(), inner.clone()),
                    None => io::Error::new(source.kind(), source.to_string()),
                };
                Some(Self::Tls {
                    to: to.clone(),
                    source,
                })
            }
            _ => None,
        }
    }
}

/// `256 KiB`.
fn size(bytes: usize) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
