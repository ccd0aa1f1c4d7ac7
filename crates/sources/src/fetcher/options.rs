//! The options of a fetcher.

use orkestra_egress::{Guard, Resolver, Variables};
use orkestra_ground::Clock;
use orkestra_registry::Keychain;
use rustls::pki_types::CertificateDer;

use crate::{Limits, Policy};

/// The options of a fetcher.
pub struct Options {
    /// What may be called.
    pub guard: Guard,
    /// Resolves names.
    pub resolver: Resolver,
    /// Trusted certificates in addition to those of the machine.
    pub roots: Vec<CertificateDer<'static>>,
    /// Environment variables that sources may use.
    pub variables: Variables,
    /// Required signatures.
    pub policy: Policy,
    /// Uses plain HTTP for every registry; one on a loopback address is called so anyway if it does not speak TLS.
    pub plain_http: bool,
    /// Credentials of registries, for sources without their own.
    pub keychain: Keychain,
    /// Where the short names of Katalogs are: `ORK_REGISTRY`. If empty, there are none.
    pub katalogs: String,
    /// Where the short names of Motifs are: `ORK_MOTIFS_REGISTRY`. If empty, there are none.
    pub motifs: String,
    /// Whether files and repositories of this machine may be read.
    pub local: bool,
    /// The limits.
    pub limits: Limits,
    /// The time at which the certificates of signatures have to be valid.
    pub clock: Clock,
}

impl Options {
    /// The options of a process that calls what the guard permits, anonymously, without a policy.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            resolver: Resolver::system(),
            roots: Vec::new(),
            variables: Variables::default(),
            policy: Policy::default(),
            plain_http: false,
            keychain: Keychain::anonymous(),
            katalogs: String::new(),
            motifs: String::new(),
            local: false,
            limits: Limits::default(),
            clock: Clock::system(),
        }
    }
}
