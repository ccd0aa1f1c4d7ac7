//! Errors of fetches.

use std::io;

use orkestra_egress::{BadUrl, Refusal};

/// Why a source was not fetched. No message contains a credential or the content of a response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source is not valid as written.
    #[error("{0}: {1}")]
    Invalid(String, String),
    /// The URL is not valid.
    #[error("{0}: {1}")]
    Url(String, BadUrl),
    /// The source is of a kind that is not fetched here.
    #[error("{0}")]
    Unsupported(String),
    /// The target is not permitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A redirect leads to a target that is not permitted, or to too many.
    #[error("{from} redirects: {why}")]
    Redirect {
        /// Scheme, host and port of the redirecting server.
        from: String,
        /// The reason.
        why: String,
    },
    /// An environment variable is not permitted or not set.
    #[error("{0}")]
    Variable(String),
    /// The credentials cannot be used.
    #[error("the credentials of {0} {1}")]
    Credential(String, String),
    /// The server wants other credentials.
    #[error("{host} does not permit access to {what}: it answers with status {status}")]
    Unauthorized {
        /// Scheme, host and port.
        host: String,
        /// The source.
        what: String,
        /// The status: 401 or 403.
        status: u16,
    },
    /// The object does not exist.
    #[error("{0} was not found")]
    NotFound(String),
    /// The server answered with an error.
    #[error("{host} answers with status {status} to {what}")]
    Status {
        /// Scheme, host and port.
        host: String,
        /// The source.
        what: String,
        /// The status.
        status: u16,
    },
    /// The server could not be reached, or did not speak the protocol.
    #[error("{0}")]
    Unreachable(String),
    /// The server did not answer in time.
    #[error("{host} did not answer completely within {seconds} s")]
    TimedOut {
        /// Scheme, host and port.
        host: String,
        /// The limit.
        seconds: u64,
    },
    /// The content violates its format or a limit.
    #[error("{0}: {1}")]
    Malformed(String, String),
    /// Content does not have the required digest.
    #[error("{what} has the digest {actual}, expected {expected}")]
    Mismatch {
        /// The source.
        what: String,
        /// The required digest.
        expected: String,
        /// The digest of the content.
        actual: String,
    },
    /// No valid signature.
    #[error("{what} is not accepted: {why}")]
    Unverified {
        /// The artifact, with its digest.
        what: String,
        /// The reason.
        why: String,
    },
    /// A registry failed.
    #[error(transparent)]
    Registry(#[from] orkestra_registry::Error),
    /// A chart cannot be rendered.
    #[error("{0}: {1}")]
    Chart(String, Box<orkestra_charts::Error>),
    /// A local file or repository cannot be read.
    #[error("cannot read {what}")]
    Local {
        /// The file.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The task that did it ended.
    #[error("the fetch of {0} ended early")]
    Ended(String),
}

impl Error {
    /// True if only a change of the source, of the flags or of the server's content can fix it.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Invalid(..)
            | Self::Url(..)
            | Self::Unsupported(_)
            | Self::Refused(_)
            | Self::Variable(_)
            | Self::Credential(..) => true,
            Self::Registry(error) => matches!(error, orkestra_registry::Error::Refused { .. }),
            _ => false,
        }
    }

    /// The name of the failure, for conditions and metrics.
    pub fn reason(&self) -> &'static str {
        use orkestra_registry::Error as Registry;
        match self {
            Self::Invalid(..) | Self::Url(..) | Self::Unsupported(_) => "SourceInvalid",
            Self::Refused(_)
            | Self::Redirect { .. }
            | Self::Variable(_)
            | Self::Registry(Registry::Refused { .. }) => "SourceNotPermitted",
            Self::Credential(..)
            | Self::Unauthorized { .. }
            | Self::Registry(Registry::Unauthorized { .. } | Registry::Configuration { .. }) => {
                "SourceUnauthorized"
            }
            Self::NotFound(_) | Self::Registry(Registry::NotFound(_)) => "SourceNotFound",
            Self::Malformed(..)
            | Self::Mismatch { .. }
            | Self::Chart(..)
            | Self::Registry(Registry::Malformed { .. } | Registry::Mismatch { .. }) => {
                "SourceMalformed"
            }
            Self::Unverified { .. } => "SourceUnverified",
            Self::Status { .. }
            | Self::Unreachable(_)
            | Self::TimedOut { .. }
            | Self::Local { .. }
            | Self::Ended(_)
            | Self::Registry(_) => "SourceUnreachable",
        }
    }
}
