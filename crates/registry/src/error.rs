//! Errors of requests to registries.

use http::StatusCode;

use super::Digest;

/// The reason why an operation on a registry failed. No message contains a credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry did not respond: a name without an address, a refused connection, a broken TLS handshake.
    #[error("cannot reach {host}: {why}")]
    Unreachable {
        /// Scheme, host and port.
        host: String,
        /// The innermost cause.
        why: String,
    },
    /// The request timed out.
    #[error("{host} did not answer completely within {seconds} s")]
    TimedOut {
        /// Scheme, host and port.
        host: String,
        /// The limit.
        seconds: u64,
    },
    /// The address must not be called.
    #[error("{host} is not contacted: {why}")]
    Refused {
        /// Scheme, host and port.
        host: String,
        /// The reason.
        why: String,
    },
    /// Credentials are missing, wrong, or do not permit this.
    #[error("{host} does not permit {what}: {why}")]
    Unauthorized {
        /// Host of the registry.
        host: String,
        /// The subject of the request.
        what: String,
        /// The registry's message, and the fix.
        why: String,
    },
    /// The object does not exist.
    #[error("{0} was not found")]
    NotFound(String),
    /// Any other unsuccessful response.
    #[error("{host} answered {status} to {what}{detail}")]
    Status {
        /// Host of the registry.
        host: String,
        /// The subject of the request.
        what: String,
        /// The status.
        status: StatusCode,
        /// The registry's message, after `: `; may be empty.
        detail: String,
    },
    /// A response violates the protocol or a limit.
    #[error("{what} is not valid: {why}")]
    Malformed {
        /// The subject of the request.
        what: String,
        /// The violation.
        why: String,
    },
    /// Content does not match its digest.
    #[error("{what} has the digest {actual}, expected {expected}")]
    Mismatch {
        /// The subject of the request.
        what: String,
        /// The expected digest.
        expected: Digest,
        /// The digest of the received content.
        actual: Digest,
    },
    /// Others changed the same tag between all attempts.
    #[error("{0} was changed by others during each of {1} attempts; try again")]
    Contended(String, u32),
    /// The configuration of credentials cannot be read or written.
    #[error("{file}: {why}")]
    Configuration {
        /// The file or the helper.
        file: String,
        /// The error.
        why: String,
    },
}

impl Error {
    /// True if the registry could not be reached, as opposed to an error response.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// True if the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}
