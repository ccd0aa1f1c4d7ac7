//! Errors of connections and exchanges.

use std::io;

use super::Refusal;

/// Why a connection or an exchange failed. Messages contain at most scheme, host and port.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target is not permitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
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

/// `256 KiB`.
fn size(bytes: usize) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
