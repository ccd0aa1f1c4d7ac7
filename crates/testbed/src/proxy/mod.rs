//! A proxy between one client and the API server that breaks what it carries, as asked.
//!
//! ```text
//! client ── TLS: HTTP/1.1, HTTP/2 ──► front ── fate of the request ──► kube::Client of the identity ──► API server
//!                                       ▲ faults, cuts, stalls, partitions: the test
//! ```
//!
//! Whoever comes is taken for the identity that the proxy was made for, so a controller is given [`Proxy::identity`]: the same
//! user, the proxy's address. The API server's log tells that user, and only of what was forwarded.

mod body;
mod faults;
mod front;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use self::faults::Faults;
use crate::control_plane::ControlPlane;
use crate::identity::Identity;

/// How watches end when they are cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// In order, as by a server that has had enough of them.
    #[default]
    Ended,
    /// In the middle, as by a cable.
    Broken,
}

/// What the proxy does to everything that it carries.
#[derive(Debug, Clone, Copy, Default)]
struct Behaviour {
    faults: Faults,
    /// Grows with each cut.
    cuts: u64,
    how: Cut,
    /// Watches are carried no further.
    stalled: bool,
    /// Nothing is.
    partitioned: bool,
}

/// The end of a connection that was to go on.
#[derive(Debug, Clone, Copy)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the proxy breaks the connection")
    }
}

impl std::error::Error for Broken {}

/// What the connections share.
struct State {
    upstream: kube::Client,
    seed: u64,
    numbers: AtomicU64,
    behaviours: watch::Sender<Behaviour>,
    fates: Mutex<BTreeMap<&'static str, u64>>,
}

impl State {
    fn count(&self, what: &'static str) {
        let mut fates = self.fates.lock();
        *fates.entry(what).or_default() += 1;
    }
}

/// A running proxy. It ends with this value.
pub struct Proxy {
    address: SocketAddr,
    identity: Identity,
    state: Arc<State>,
    /// Ends the connections with it.
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// A proxy in front of this control plane that forwards as `identity`; which request meets what follows from `seed`. It
    /// belongs to the runtime that calls this.
    pub async fn proxy(&self, identity: &Identity, seed: u64) -> Result<Proxy> {
        let mut config = identity.config()?;
        // What the API server answers is the answer.
        config.default_retry = false;
        let upstream = Identity::client_of(config)?;
        Proxy::start(upstream, &self.site().pki(), identity, seed).await
    }
}

impl Proxy {
    /// `pki` has the certificate that the proxy shows.
    async fn start(
        upstream: kube::Client,
        pki: &std::path::Path,
        identity: &Identity,
        seed: u64,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            upstream,
            seed,
            numbers: AtomicU64::new(0),
            behaviours: watch::Sender::default(),
            fates: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(front::accept(listener, acceptor(pki)?, state.clone()));
        Ok(Self {
            address,
            identity: identity.at(&format!("https://{address}"))?,
            state,
            _tasks: tasks,
        })
    }

    /// The same user as upstream, whose configurations and kubeconfig lead to the proxy.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// From now on so much goes wrong. What is hung already stays so until its client goes, or the proxy.
    pub fn set(&self, faults: Faults) {
        self.state
            .behaviours
            .send_modify(|behaviour| behaviour.faults = faults);
    }

    /// Ends all watches that run.
    pub fn cut_watches(&self, how: Cut) {
        self.state.behaviours.send_modify(|behaviour| {
            behaviour.cuts += 1;
            behaviour.how = how;
        });
    }

    /// Whether watches stand still: what happens meanwhile is told afterwards.
    pub fn stall_watches(&self, stalled: bool) {
        self.state
            .behaviours
            .send_modify(|behaviour| behaviour.stalled = stalled);
    }

    /// Whether nothing gets through, in either direction, with all connections open: afterwards it goes on.
    pub fn partition(&self, partitioned: bool) {
        let change = |behaviour: &mut Behaviour| behaviour.partitioned = partitioned;
        self.state.behaviours.send_modify(change);
    }

    /// How many requests met what: the names are those of [`Faults`], and `passed`, and `down` for those that the API server did not
    /// answer.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let fates = &self.state.fates;
        fates.lock().clone()
    }

    /// How many requests came.
    pub fn requests(&self) -> u64 {
        self.state.numbers.load(Ordering::Relaxed)
    }
}

fn acceptor(pki: &std::path::Path) -> Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_file(pki.join("server.crt"))?;
    let key = PrivateKeyDer::from_pem_file(pki.join("server.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("the proxy's certificate")?;
    config.alpn_protocols = [front::H2, front::H1].map(<[u8]>::to_vec).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
