//! Reasons why a connection is not made.

use std::net::IpAddr;

/// What a guard permits: it decides the words of messages, and the flag that they name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The `external` calls of Katalogs.
    #[default]
    Calls,
    /// The sources of Komposers.
    Sources,
}

impl Purpose {
    /// The flag with the entries.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Calls => "--external-allow",
            Self::Sources => "--source-allow",
        }
    }

    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Calls => "external calls",
            Self::Sources => "remote sources",
        }
    }
}

/// Why a connection is not made. Only a change of the flags or of the URL fixes it; a retry does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No connections are permitted.
    #[error("{what} are off: to permit this one, start with {flag} {entry}")]
    Off {
        /// The purpose of the connection.
        what: &'static str,
        /// The flag that permits it.
        flag: &'static str,
        /// The entry that would permit it.
        entry: String,
    },
    /// Neither the host nor its address is permitted.
    #[error("{host} is not permitted: {flag} {entry} would permit it")]
    NotAllowed {
        /// Scheme, host and port.
        host: String,
        /// The flag that permits it.
        flag: &'static str,
        /// The entry that would permit it.
        entry: String,
    },
    /// The host is permitted only with TLS.
    #[error("{host} is permitted only over https: {flag} {entry} would permit plain HTTP")]
    Plain {
        /// Scheme, host and port.
        host: String,
        /// The flag that permits it.
        flag: &'static str,
        /// The entry that would permit it.
        entry: String,
    },
    /// The host is permitted, but it has an address that is not public.
    #[error("{host} has the address {address}, which is {what}: {flag} {address} would permit it")]
    Closed {
        /// Scheme, host and port.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The use of the address.
        what: &'static str,
        /// The flag that permits it.
        flag: &'static str,
    },
    /// A server leads to the host, which has an address of a kind that the server does not have.
    #[error("{host} has the address {address}, which is {what}, and {by} leads there")]
    Led {
        /// Scheme, host and port.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The use of the address.
        what: &'static str,
        /// The server that leads there.
        by: String,
    },
    /// The host is the cluster's API server.
    #[error(
        "{host} is the API server of the cluster, which requires an entry with its port: {flag} {entry}"
    )]
    ApiServer {
        /// Scheme, host and port.
        host: String,
        /// The flag that permits it.
        flag: &'static str,
        /// The entry that would permit it.
        entry: String,
    },
}

impl Refusal {
    /// The target that is not called: scheme, host and port, or its entry.
    pub fn host(&self) -> &str {
        match self {
            Self::Off { entry, .. } => entry,
            Self::NotAllowed { host, .. }
            | Self::Plain { host, .. }
            | Self::Closed { host, .. }
            | Self::Led { host, .. }
            | Self::ApiServer { host, .. } => host,
        }
    }
}
