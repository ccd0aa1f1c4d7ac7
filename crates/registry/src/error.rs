//! Why a request to a registry failed.

use http::StatusCode;

use super::Digest;

/// Why something of a registry could not be read or written. No message holds a credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry did not answer: a name without an address, a refused connection, a broken TLS handshake.
    #[error("cannot reach {host}: {why}")]
    Unreachable {
        /// Scheme, host and port.
        host: String,
        /// The innermost cause.
        why: String,
    },
    /// It took longer than it may.
    #[error("{host} did not answer completely within {seconds} s")]
    TimedOut {
        /// Scheme, host and port.
        host: String,
        /// The limit.
        seconds: u64,
    },
    /// A place that must not be called.
    #[error("{host} is not called: {why}")]
    Refused {
        /// Scheme, host and port.
        host: String,
        /// Why not.
        why: String,
    },
    /// Credentials are missing, wrong, or do not permit this.
    #[error("{host} does not permit {what}: {why}")]
    Unauthorized {
        /// Host of the registry.
        host: String,
        /// What was asked for.
        what: String,
        /// What the registry says, and what to do.
        why: String,
    },
    /// There is no such thing.
    #[error("{0} was not found")]
    NotFound(String),
    /// Any other answer that is not a success.
    #[error("{host} answered {status} to {what}{detail}")]
    Status {
        /// Host of the registry.
        host: String,
        /// What was asked for.
        what: String,
        /// The answer.
        status: StatusCode,
        /// What the registry says of it, after `: `; or nothing.
        detail: String,
    },
    /// An answer breaks the protocol or a bound.
    #[error("{what} is not valid: {why}")]
    Malformed {
        /// What was read.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Content is not what its digest says.
    #[error("{what} has the digest {actual}, expected {expected}")]
    Mismatch {
        /// What was read.
        what: String,
        /// The digest that it must have.
        expected: Digest,
        /// The digest of what came.
        actual: Digest,
    },
    /// Others changed the same tag each time in between.
    #[error("{0} was changed by others during each of {1} attempts; try again")]
    Contended(String, u32),
    /// The configuration of credentials cannot be read or written.
    #[error("{file}: {why}")]
    Configuration {
        /// The file or the helper.
        file: String,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// Whether the registry could not be reached, as opposed to what it answered.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// Whether the thing does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}
